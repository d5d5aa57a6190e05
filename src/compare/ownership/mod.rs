//! The way of field ownership from client-side to server-side apply.
//!
//! Pure: metadata in, a patch out. The rule is that of client-go's `csaupgrade`
//! (`UpgradeManagedFieldsPatch`): what client-side apply owns is moved to the manager of
//! server-side apply, so that a field that leaves the manifest leaves the object, too.

mod bookkeeping;
mod leftovers;
mod maker;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

pub use bookkeeping::with_bookkeeping;
pub use leftovers::{merge_patch, without_leftovers};
pub use maker::{Maker, maker};

use crate::model::applyset::Tooling;

/// The field manager of `kubectl apply` without `--server-side`.
pub const CLIENT_SIDE_APPLY: &str = "kubectl-client-side-apply";

/// The field manager of members, unless `--field-manager` or `--tooling` names another one. It
/// owns the bookkeeping of no parent, so a member that is the parent of another set can be
/// applied under it.
pub const MEMBER_FIELD_MANAGER: &str = "applyset";

/// The field manager under which kubectl writes the bookkeeping of its parents. It applies
/// members as `kubectl`, so no part-of label of a member is written under this name.
pub const KUBECTL_PARENT_FIELD_MANAGER: &str = "kubectl-applyset";

/// The field manager of the bookkeeping on our parents.
pub const PARENT_FIELD_MANAGER: &str = "kubectl-applyset-parent";

/// The same on the parents of sets that stay another tool's. A parent that has lost its tooling
/// annotation shows by it that the set is not ours.
pub const FOREIGN_PARENT_FIELD_MANAGER: &str = "kubectl-applyset-foreign-parent";

/// The field manager of the bookkeeping of a set that this tool manages.
pub fn parent_field_manager(tooling: &Tooling) -> &'static str {
    if tooling.is_same_program(&Tooling::ours()) {
        PARENT_FIELD_MANAGER
    } else {
        FOREIGN_PARENT_FIELD_MANAGER
    }
}

/// Returns the field manager under which a tool applies the members of its sets. Other tools,
/// kubectl among them, apply under their own name; fields stay free of conflicts only if the
/// same name is used for a set that such a tool also operates.
pub fn member_field_manager(tooling: &Tooling) -> &str {
    if tooling.is_same_program(&Tooling::ours()) {
        MEMBER_FIELD_MANAGER
    } else {
        &tooling.name
    }
}

/// Field managers whose part-of labels are those of an applier: ours and kubectl's.
pub const APPLIERS: [&str; 3] = [MEMBER_FIELD_MANAGER, "kubectl", CLIENT_SIDE_APPLY];

/// The annotation in which client-side apply keeps what it applied last. It stays with its
/// owner: kubectl needs it as long as it goes on applying from the client's side.
const LAST_APPLIED: &str = "f:kubectl.kubernetes.io/last-applied-configuration";

/// Whoever applies `stringData` from the server's side owns that, and not the `data` that the
/// server makes of it.
const STRING_DATA: &str = "f:stringData";

/// Whether fields of the object are owned by client-side apply, that annotation and the
/// bookkeeping of a parent excepted.
pub fn has_client_side_apply(metadata: &Value) -> bool {
    entries(metadata)
        .iter()
        .any(|entry| is_client_side(entry) && has_something_to_move(entry))
}

/// The field managers that own anything of the object outside of its metadata, its status
/// excepted; each once, sorted.
pub fn content_writers(metadata: &Value) -> Vec<String> {
    let has_contents = |entry: &&Value| {
        let fields = entry["fieldsV1"].as_object();
        is_whole_object(entry)
            && fields.is_some_and(|fields| fields.keys().any(|field| field != "f:metadata"))
    };
    let writers = entries(metadata)
        .iter()
        .filter(has_contents)
        .filter_map(|entry| entry["manager"].as_str().map(str::to_owned));
    let writers: BTreeSet<String> = writers.collect();
    writers.into_iter().collect()
}

/// Whether this field manager has made the object by applying it from the server's side, and
/// not changed it since. Which run of it that was, and who came first within the same second,
/// cannot be told.
pub fn was_made_by(metadata: &Value, manager: &str) -> bool {
    let is_first_apply =
        |entry: &Value| is_ours(entry, manager) && entry["time"] == metadata["creationTimestamp"];
    metadata["creationTimestamp"].is_string() && entries(metadata).iter().any(is_first_apply)
}

/// Whether somebody has applied the object, from the client's side or the server's. Labels
/// that a controller copied do not tell.
fn was_applied(metadata: &Value) -> bool {
    let note = LAST_APPLIED.trim_start_matches("f:");
    metadata["annotations"].get(note).is_some()
        || entries(metadata)
            .iter()
            .any(|entry| entry["operation"] == "Apply" && is_whole_object(entry))
}

/// A JSON patch that moves to `manager` what client-side apply owns, and what `former` has
/// applied from the server's side, but for the bookkeeping of a parent, which the next apply
/// would take off then; `None` where there is nothing to move. Bound to the
/// resourceVersion of `metadata`.
pub fn migration(
    metadata: &Value,
    manager: &str,
    former: Option<&str>,
    last_applied: LastApplied,
) -> Option<Value> {
    let former = Former {
        manager,
        tool: former,
        last_applied,
    };
    let (moved, mut others): (Vec<Value>, Vec<Value>) = entries(metadata)
        .iter()
        .cloned()
        .partition(|entry| is_moved(entry, &former));
    if moved.is_empty() {
        return None;
    }
    let mut ours = match others.iter().position(|entry| is_ours(entry, manager)) {
        Some(place) => others.remove(place),
        None => empty_entry(&moved[0], manager),
    };
    for mut entry in moved {
        if let Some(kept) = take_kept(&mut entry, last_applied) {
            let mut rest = entry.clone();
            rest["fieldsV1"] = kept;
            others.push(rest);
        }
        let has_fields = ours["fieldsV1"]
            .as_object()
            .is_some_and(|fields| !fields.is_empty());
        ours["fieldsV1"] = if has_fields {
            union(&ours["fieldsV1"], &entry["fieldsV1"])
        } else {
            entry["fieldsV1"].clone()
        };
    }
    others.push(ours);
    Some(replacement(&json!(others), metadata))
}

fn replacement(entries: &Value, metadata: &Value) -> Value {
    json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
    ])
}

/// As [`migration`], of a Secret: what was applied as `stringData` is owned as the `data` that
/// the server made of it, so that a key that leaves the manifest leaves the object.
pub fn migration_of_secret(metadata: &Value, former: &Former) -> Option<Value> {
    let mut owned = metadata.clone();
    let entries = owned["managedFields"].as_array_mut().into_iter().flatten();
    let mut folded = false;
    for entry in entries.filter(|entry| is_ours(entry, former.manager) || is_moved(entry, former)) {
        folded |= own_as_data(entry);
    }
    let moved = migration(&owned, former.manager, former.tool, former.last_applied);
    moved.or_else(|| folded.then(|| replacement(&owned["managedFields"], metadata)))
}

/// Whether this manager has applied `stringData` to a Secret.
pub fn has_string_data(metadata: &Value, manager: &str) -> bool {
    let mut entries = entries(metadata).iter();
    entries.any(|entry| is_ours(entry, manager) && entry["fieldsV1"].get(STRING_DATA).is_some())
}

/// What a run is about to own as `data`, as entries of their own.
fn applied_string_data(metadata: &Value, former: &Former) -> Vec<Value> {
    let entries = entries(metadata).iter();
    entries
        .filter(|entry| is_ours(entry, former.manager) || is_moved(entry, former))
        .filter_map(|entry| entry["fieldsV1"].get(STRING_DATA))
        .filter(|typed| typed.as_object().is_some_and(|typed| !typed.is_empty()))
        .map(|typed| json!({"fieldsV1": {"f:data": typed}}))
        .collect()
}

/// Whether there was anything to do.
fn own_as_data(entry: &mut Value) -> bool {
    let Some(fields) = entry["fieldsV1"].as_object_mut() else {
        return false;
    };
    let Some(typed) = fields.remove(STRING_DATA) else {
        return false;
    };
    let is_empty = typed.as_object().is_none_or(Map::is_empty);
    if !is_empty {
        let data = match fields.get("f:data") {
            Some(data) => union(data, &typed),
            None => typed,
        };
        fields.insert("f:data".to_owned(), data);
    }
    true
}

fn is_ours(entry: &Value, manager: &str) -> bool {
    entry["manager"] == manager && entry["operation"] == "Apply" && is_whole_object(entry)
}

/// What becomes of the annotation in which client-side apply keeps what it applied last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastApplied {
    /// It moves with the rest, and leaves the object with the next apply.
    Moved,
    /// It stays: kubectl goes on applying this object.
    LeftToItsOwner,
}

/// From whom fields are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Former<'a> {
    /// Who gets them.
    pub manager: &'a str,
    /// The field manager of a tool that a set is taken over from.
    pub tool: Option<&'a str>,
    /// What becomes of the annotation of client-side apply.
    pub last_applied: LastApplied,
}

fn is_moved(entry: &Value, former: &Former) -> bool {
    let is_tools = former
        .tool
        .is_some_and(|tool| tool != former.manager && entry["manager"] == tool);
    let is_applied = entry["operation"] == "Apply" && is_whole_object(entry);
    (is_client_side(entry) || (is_tools && is_applied)) && has_something_to_move(entry)
}

fn empty_entry(like: &Value, manager: &str) -> Value {
    json!({
        "manager": manager,
        "operation": "Apply",
        "apiVersion": like["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": {},
    })
}

/// Whether an entry has more than the annotation of client-side apply and bookkeeping.
fn has_something_to_move(entry: &Value) -> bool {
    let mut rest = entry.clone();
    take_kept(&mut rest, LastApplied::LeftToItsOwner);
    let has_other = |fields: &Value, containers: &[&str]| {
        let fields = fields.as_object();
        fields.is_some_and(|fields| fields.keys().any(|key| !containers.contains(&key.as_str())))
    };
    let fields = &rest["fieldsV1"];
    let metadata = &fields["f:metadata"];
    has_other(fields, &["f:metadata"])
        || has_other(metadata, &["f:labels", "f:annotations"])
        || ["f:labels", "f:annotations"]
            .into_iter()
            .any(|field| has_other(&metadata[field], &["."]))
}

/// Takes what stays with its owner out of an entry, as a field set of its own.
fn take_kept(entry: &mut Value, last_applied: LastApplied) -> Option<Value> {
    let annotation = match last_applied {
        LastApplied::LeftToItsOwner => take_last_applied(entry),
        LastApplied::Moved => None,
    };
    let bookkeeping = bookkeeping::take_bookkeeping(entry);
    // An empty node would own all that is below it.
    if let Some(fields) = entry["fieldsV1"].as_object_mut()
        && fields
            .get("f:metadata")
            .and_then(Value::as_object)
            .is_some_and(Map::is_empty)
    {
        fields.remove("f:metadata");
    }
    match (annotation, bookkeeping) {
        (Some(annotation), Some(bookkeeping)) => Some(union(&annotation, &bookkeeping)),
        (annotation, bookkeeping) => annotation.or(bookkeeping),
    }
}

/// Takes the annotation out of an entry, as a field set of its own.
fn take_last_applied(entry: &mut Value) -> Option<Value> {
    let annotations = entry
        .pointer_mut("/fieldsV1/f:metadata/f:annotations")?
        .as_object_mut()?;
    annotations.remove(LAST_APPLIED)?;
    if annotations.is_empty() {
        entry
            .pointer_mut("/fieldsV1/f:metadata")?
            .as_object_mut()?
            .remove("f:annotations");
    }
    Some(json!({"f:metadata": {"f:annotations": {(LAST_APPLIED): {}}}}))
}

fn entries(metadata: &Value) -> &[Value] {
    metadata["managedFields"].as_array().map_or(&[], Vec::as_slice)
}

fn is_client_side(entry: &Value) -> bool {
    entry["manager"] == CLIENT_SIDE_APPLY && entry["operation"] == "Update" && is_whole_object(entry)
}

fn is_whole_object(entry: &Value) -> bool {
    entry["subresource"].as_str().unwrap_or_default().is_empty()
}

/// The union of two FieldsV1 trees. An empty node owns its path; a node with children
/// owns its path only where it has the child `.`.
fn union(one: &Value, other: &Value) -> Value {
    let empty = Map::new();
    let one = one.as_object().unwrap_or(&empty);
    let other = other.as_object().unwrap_or(&empty);
    let mut merged = one.clone();
    if one.is_empty() != other.is_empty() {
        merged.insert(".".to_owned(), json!({}));
    }
    for (key, child) in other {
        let merged_child = match one.get(key) {
            Some(mine) if key != "." => union(mine, child),
            _ => child.clone(),
        };
        merged.insert(key.clone(), merged_child);
    }
    Value::Object(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_applied_under_the_name_of_the_tool() {
        let table = [
            (Tooling::ours().to_string(), "applyset"),
            ("kubectl-applyset/v0.0.1".to_owned(), "applyset"),
            ("kubectl/v1.36.3".to_owned(), "kubectl"),
            ("example.com/tool/v2".to_owned(), "example.com/tool"),
        ];
        for (tooling, manager) in table {
            let tooling = Tooling::parse(&tooling).expect("a valid value");
            assert_eq!(member_field_manager(&tooling), manager);
        }
    }

    #[test]
    fn whoever_applied_at_the_time_of_creation_has_made_it() {
        let made = |created: &str, manager: &str, operation: &str, time: &str| {
            let entry = json!({"manager": manager, "operation": operation, "time": time});
            was_made_by(
                &json!({"creationTimestamp": created, "managedFields": [entry]}),
                "us",
            )
        };
        let (then, later) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
        assert!(made(then, "us", "Apply", then));
        assert!(!made(then, "us", "Apply", later));
        assert!(!made(then, "us", "Update", then));
        assert!(!made(then, "them", "Apply", then));
        assert!(!was_made_by(&json!({}), "us"));
    }

    #[test]
    fn fields_are_united_by_path() {
        let table = [
            (
                json!({"f:a": {}}),
                json!({"f:b": {}}),
                json!({"f:a": {}, "f:b": {}}),
            ),
            (json!({"f:a": {}}), json!({"f:a": {}}), json!({"f:a": {}})),
            (
                json!({"f:a": {}}),
                json!({"f:a": {"f:b": {}}}),
                json!({"f:a": {".": {}, "f:b": {}}}),
            ),
            (
                json!({"f:a": {".": {}, "f:b": {}}}),
                json!({"f:a": {"f:c": {}}}),
                json!({"f:a": {".": {}, "f:b": {}, "f:c": {}}}),
            ),
        ];
        for (one, other, united) in table {
            assert_eq!(union(&one, &other), united);
            assert_eq!(union(&other, &one), united);
        }
    }

    #[test]
    fn who_applies_leaves_a_trace() {
        let note = LAST_APPLIED.trim_start_matches("f:");
        let table = [
            (json!({}), false),
            (json!({"annotations": {(note): "{}"}}), true),
            (
                json!({"managedFields": [{"manager": "a", "operation": "Apply", "fieldsV1": {}}]}),
                true,
            ),
            (
                json!({"managedFields": [{"manager": "a", "operation": "Update", "fieldsV1": {}}]}),
                false,
            ),
            (
                json!({"managedFields": [{"manager": "a", "operation": "Apply", "subresource": "status"}]}),
                false,
            ),
        ];
        for (metadata, expected) in table {
            assert_eq!(was_applied(&metadata), expected, "{metadata}");
        }
    }

    #[test]
    fn client_side_ownership_moves_to_server_side_apply() {
        let metadata = json!({"resourceVersion": "5", "managedFields": [
            {"manager": CLIENT_SIDE_APPLY, "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:old": {}}}},
            {"manager": "ours", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:new": {}}}},
            {"manager": "controller", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
        ]});
        assert!(has_client_side_apply(&metadata));
        let patch = migration(&metadata, "ours", None, LastApplied::Moved).expect("something to move");
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
        let patch = migration(&metadata, "ours", None, LastApplied::Moved).expect("something to move");
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
        assert_eq!(migration(&metadata, "ours", None, LastApplied::Moved), None);
        assert_eq!(
            migration(&metadata, "kubectl", Some("kubectl"), LastApplied::Moved),
            None
        );
        let patch =
            migration(&metadata, "ours", Some("kubectl"), LastApplied::Moved).expect("something to move");
        assert_eq!(patch[0]["value"].as_array().map(Vec::len), Some(1));
        assert_eq!(patch[0]["value"][0]["manager"], "ours");
        assert_eq!(patch[0]["value"][0]["fieldsV1"], json!({"f:data": {"f:old": {}}}));
    }

    #[test]
    fn kubectl_keeps_the_annotation_that_it_goes_on_to_need() {
        let metadata = json!({"resourceVersion": "5", "managedFields": [
            {"manager": CLIENT_SIDE_APPLY, "operation": "Update", "apiVersion": "v1", "fieldsV1": {
                "f:metadata": {"f:annotations": {".": {}, (LAST_APPLIED): {}}}, "f:data": {"f:old": {}},
            }},
        ]});
        let patch =
            migration(&metadata, "kubectl", None, LastApplied::LeftToItsOwner).expect("something to move");
        let migrated = json!({"managedFields": patch[0]["value"]});
        assert_eq!(migrated["managedFields"].as_array().map(Vec::len), Some(2));
        assert!(!has_client_side_apply(&migrated), "nothing is left to move");
        assert_eq!(
            migration(&migrated, "kubectl", None, LastApplied::LeftToItsOwner),
            None
        );
    }

    #[test]
    fn bookkeeping_stays_with_its_owner() {
        let id = json!({"f:metadata": {"f:labels": {"f:applyset.kubernetes.io/id": {}}}});
        let with = |more: &Value| union(&id, more);
        let note = json!({"f:metadata": {"f:annotations": {".": {}, (LAST_APPLIED): {}}}});
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
                let patch = migration(&metadata, "ours", Some("tool"), LastApplied::Moved);
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
        let former = Former {
            manager: "ours",
            tool: Some("tool"),
            last_applied: LastApplied::Moved,
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
            let patch = migration_of_secret(&metadata, &former);
            let fields = patch.map(|patch| patch[0]["value"][0]["fieldsV1"].clone());
            assert_eq!(fields, expected, "{metadata}");
        }
    }

    #[test]
    fn other_managers_are_left_alone() {
        for entry in [
            json!({"manager": "kubectl", "operation": "Apply", "fieldsV1": {}}),
            json!({"manager": CLIENT_SIDE_APPLY, "operation": "Update", "subresource": "status", "fieldsV1": {}}),
        ] {
            let metadata = json!({"resourceVersion": "5", "managedFields": [entry]});
            assert_eq!(migration(&metadata, "ours", None, LastApplied::Moved), None);
        }
    }
}
