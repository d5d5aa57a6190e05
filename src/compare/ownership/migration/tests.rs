use super::*;
use crate::compare::ownership::CLIENT_SIDE_APPLY;

/// The annotation as a key of a field set.
const OWNED_LAST_APPLIED: &str = "f:kubectl.kubernetes.io/last-applied-configuration";

/// Returns the patch that moves the fields of client-side apply, and those of `former`, to `manager`.
fn migration_patch(
    metadata: &Value,
    manager: &str,
    former: Option<&str>,
    last_applied: LastAppliedTreatment,
) -> Option<Value> {
    let former = OwnershipMigration {
        manager,
        tool: former,
        writers: &[],
        last_applied,
    };
    Some(patch_to_replace_managed_fields(
        &migrated_managed_fields(metadata, &former)?,
        metadata,
    ))
}

/// Returns the patch that moves fields of a Secret.
fn secret_migration_patch(metadata: &Value, former: &OwnershipMigration) -> Option<Value> {
    Some(patch_to_replace_managed_fields(
        &migrated_secret_managed_fields(metadata, former)?,
        metadata,
    ))
}

#[test]
fn client_side_ownership_moves_to_server_side_apply() {
    let metadata = json!({"resourceVersion": "5", "managedFields": [
        {"manager": CLIENT_SIDE_APPLY, "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:old": {}}}},
        {"manager": "ours", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:new": {}}}},
        {"manager": "controller", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
    ]});
    assert!(has_fields_of_client_side_apply(&metadata));
    let patch =
        migration_patch(&metadata, "ours", None, LastAppliedTreatment::Moved).expect("something to move");
    assert_eq!(patch[1]["value"], "5");
    let fields = &patch[0]["value"];
    assert_eq!(fields.as_array().map(Vec::len), Some(2));
    assert_eq!(
        fields[1]["fieldsV1"],
        json!({"f:data": {"f:old": {}, "f:new": {}}})
    );
}

#[test]
fn an_entry_of_server_side_apply_is_made_where_there_is_none() {
    let metadata = json!({"resourceVersion": "5", "managedFields": [
        {"manager": CLIENT_SIDE_APPLY, "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:old": {}}}},
    ]});
    let patch =
        migration_patch(&metadata, "ours", None, LastAppliedTreatment::Moved).expect("something to move");
    let entry = &patch[0]["value"][0];
    assert_eq!(
        (&entry["manager"], &entry["operation"]),
        (&json!("ours"), &json!("Apply"))
    );
}

#[test]
fn what_a_former_tool_applied_is_taken_from_it() {
    let metadata = json!({"resourceVersion": "5", "managedFields": [
        {"manager": "kubectl", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:old": {}}}},
    ]});
    assert_eq!(
        migration_patch(&metadata, "ours", None, LastAppliedTreatment::Moved),
        None
    );
    assert_eq!(
        migration_patch(&metadata, "kubectl", Some("kubectl"), LastAppliedTreatment::Moved),
        None
    );
    let patch = migration_patch(&metadata, "ours", Some("kubectl"), LastAppliedTreatment::Moved)
        .expect("something to move");
    assert_eq!(patch[0]["value"].as_array().map(Vec::len), Some(1));
    assert_eq!(patch[0]["value"][0]["manager"], "ours");
    assert_eq!(patch[0]["value"][0]["fieldsV1"], json!({"f:data": {"f:old": {}}}));
}

#[test]
fn kubectl_keeps_the_annotation_that_it_still_needs() {
    let metadata = json!({"resourceVersion": "5", "managedFields": [
        {"manager": CLIENT_SIDE_APPLY, "operation": "Update", "apiVersion": "v1", "fieldsV1": {
            "f:metadata": {"f:annotations": {".": {}, (OWNED_LAST_APPLIED): {}}}, "f:data": {"f:old": {}},
        }},
    ]});
    let patch = migration_patch(&metadata, "kubectl", None, LastAppliedTreatment::LeftToItsOwner)
        .expect("something to move");
    let migrated = json!({"managedFields": patch[0]["value"]});
    assert_eq!(migrated["managedFields"].as_array().map(Vec::len), Some(2));
    assert!(
        !has_fields_of_client_side_apply(&migrated),
        "nothing is left to move"
    );
    assert_eq!(
        migration_patch(&migrated, "kubectl", None, LastAppliedTreatment::LeftToItsOwner),
        None
    );
}

#[test]
fn applyset_metadata_stays_with_its_owner() {
    let id = json!({"f:metadata": {"f:labels": {"f:applyset.kubernetes.io/id": {}}}});
    let with = |more: &Value| union(&id, more);
    let note = json!({"f:metadata": {"f:annotations": {".": {}, (OWNED_LAST_APPLIED): {}}}});
    let data = json!({"f:data": {"f:a": {}}});
    let table = [
        (id.clone(), None),
        (with(&note), None),
        (with(&data), Some((data.clone(), id.clone()))),
        (
            with(&union(&data, &note)),
            Some((union(&data, &note), id.clone())),
        ),
    ];
    for (manager, operation) in [(CLIENT_SIDE_APPLY, "Update"), ("tool", "Apply")] {
        for (fields, expected) in &table {
            let metadata = json!({"resourceVersion": "5", "managedFields": [
                {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields},
            ]});
            let patch = migration_patch(&metadata, "ours", Some("tool"), LastAppliedTreatment::Moved);
            let moved = patch.map(|patch| {
                let entries = &patch[0]["value"];
                assert_eq!(
                    (&entries[0]["manager"], &entries[1]["manager"]),
                    (&json!(manager), &json!("ours"))
                );
                (entries[1]["fieldsV1"].clone(), entries[0]["fieldsV1"].clone())
            });
            assert_eq!(&moved, expected, "{metadata}");
        }
    }
}

#[test]
fn string_data_that_was_applied_is_owned_as_data() {
    let former = OwnershipMigration {
        manager: "ours",
        tool: Some("tool"),
        writers: &[],
        last_applied: LastAppliedTreatment::Moved,
    };
    let entry = |manager: &str, fields: &Value| json!({"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields});
    let typed = json!({"f:stringData": {"f:a": {}}});
    let table = [
        (vec![entry("ours", &typed)], Some(json!({"f:data": {"f:a": {}}}))),
        (
            vec![entry(
                "ours",
                &json!({"f:stringData": {"f:a": {}}, "f:data": {"f:b": {}}}),
            )],
            Some(json!({"f:data": {"f:a": {}, "f:b": {}}})),
        ),
        (
            vec![
                entry("ours", &json!({"f:data": {"f:b": {}}})),
                entry("tool", &typed),
            ],
            Some(json!({"f:data": {"f:a": {}, "f:b": {}}})),
        ),
        (vec![entry("ours", &json!({"f:stringData": {}}))], Some(json!({}))),
        (vec![entry("ours", &json!({"f:data": {}}))], None),
        (vec![entry("another", &typed)], None),
    ];
    for (entries, expected) in table {
        let metadata = json!({"resourceVersion": "5", "managedFields": entries});
        let patch = secret_migration_patch(&metadata, &former);
        let fields = patch.map(|patch| patch[0]["value"][0]["fieldsV1"].clone());
        assert_eq!(fields, expected, "{metadata}");
    }
}

#[test]
fn what_the_managers_of_a_former_tool_own_is_taken_whatever_they_did() {
    let fields = |name: &str| json!({"f:data": {(format!("f:{name}")): {}}});
    let entry = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields});
    let mut status = entry("helm", "Update", json!({"f:status": {}}));
    status["subresource"] = json!("status");
    let label = json!({"f:metadata": {"f:labels": {(format!("f:{PART_OF_LABEL}")): {}}}});
    let table = [
        (entry("helm", "Update", fields("a")), "ours", true),
        (entry("helm", "Apply", fields("a")), "ours", true),
        (entry("kubectl", "Update", fields("a")), "ours", true),
        (entry("kubectl", "Update", fields("a")), "kubectl", true),
        (entry("kubectl", "Apply", fields("a")), "kubectl", false),
        (entry("kubectl", "Update", label.clone()), "kubectl", false),
        (entry("helm", "Update", label), "ours", true),
        (entry(CLIENT_SIDE_APPLY, "Update", fields("a")), "ours", true),
        (status, "ours", false),
        (
            entry("kube-controller-manager", "Update", fields("a")),
            "ours",
            false,
        ),
    ];
    for (entry, manager, expected) in table {
        let metadata = json!({"resourceVersion": "5", "managedFields": [entry]});
        let former = OwnershipMigration {
            manager,
            tool: None,
            writers: &["helm", "kubectl"],
            last_applied: LastAppliedTreatment::Moved,
        };
        let moved = migrated_managed_fields(&metadata, &former);
        assert_eq!(moved.is_some(), expected, "{metadata}");
        if let Some(moved) = moved {
            assert_eq!(moved[0]["manager"], manager, "{metadata}");
            assert_eq!(moved[0]["operation"], "Apply", "{metadata}");
            let again = json!({"managedFields": moved});
            assert_eq!(migrated_managed_fields(&again, &former), None, "{metadata}");
        }
    }
}

#[test]
fn other_managers_are_left_alone() {
    for entry in [
        json!({"manager": "kubectl", "operation": "Apply", "fieldsV1": {}}),
        json!({"manager": CLIENT_SIDE_APPLY, "operation": "Update", "subresource": "status", "fieldsV1": {}}),
    ] {
        let metadata = json!({"resourceVersion": "5", "managedFields": [entry]});
        assert_eq!(
            migration_patch(&metadata, "ours", None, LastAppliedTreatment::Moved),
            None
        );
    }
}
