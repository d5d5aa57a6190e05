//! Tables: which records are repaired, how, and which are not.

use super::super::fixtures::{
    beside_a_run, changed, examined, findings_and_repairs, findings_and_repairs_with, found_rules,
    with_members,
};
use super::super::{Extent, FixStatus, NewNamespaces, Rule};
use super::*;
use crate::compare::ownership::{
    FOREIGN_PARENT_FIELD_MANAGER, KUBECTL_PARENT_FIELD_MANAGER, PARENT_FIELD_MANAGER,
};
use crate::model::live::Live;
use crate::plan::fixtures::live;

fn config_map(namespace: &str) -> Live {
    live("ConfigMap", Some(namespace), "one")
}

/// The record of the one repair.
fn repaired(set: &ExaminedSet, extent: Extent) -> Option<String> {
    let repairs = findings_and_repairs(set, extent).repairs;
    let [repair] = &repairs[..] else {
        return None;
    };
    let record = &repair.record;
    Some(format!(
        "{}|{}",
        record.group_kinds_value(),
        record.namespaces_value()
    ))
}

#[test]
fn a_record_is_narrowed_only_where_everything_was_looked_at() {
    let set = |kinds: &[&str], namespaces: &[&str], members: &[Live]| {
        with_members(examined(kinds, namespaces), members)
    };
    let wide = set(&["ConfigMap", "Secret"], &["away"], &[config_map("shop")]);
    assert_eq!(repaired(&wide, Extent::Whole).as_deref(), Some("ConfigMap|"));
    assert_eq!(repaired(&wide, Extent::Part), None);
    let narrow = set(&["Secret"], &[], &[config_map("away")]);
    assert_eq!(
        repaired(&narrow, Extent::Whole).as_deref(),
        Some("ConfigMap|away")
    );
    assert_eq!(
        repaired(&narrow, Extent::Part).as_deref(),
        Some("ConfigMap,Secret|away")
    );
    let sound = set(&["ConfigMap"], &[], &[config_map("shop")]);
    assert_eq!(repaired(&sound, Extent::Whole), None);
}

#[test]
fn a_repair_beside_a_run_removes_nothing_that_the_run_has_recorded() {
    // The first member is outside the record. The run may have yet to create the CRD of the second kind.
    let set = with_members(examined(&["Gone.example.com"], &["away"]), &[config_map("shop")]);
    assert_eq!(repaired(&set, Extent::Whole).as_deref(), Some("ConfigMap|"));
    let set = beside_a_run(set);
    assert_eq!(
        repaired(&set, Extent::Whole).as_deref(),
        Some("ConfigMap,Gone.example.com|away")
    );
}

#[test]
fn a_label_alone_adds_no_namespace() {
    let rules_and_repairs = |set: &ExaminedSet, extent| {
        let found = findings_and_repairs_with(set, extent, NewNamespaces::Excluded);
        let rules = found
            .findings
            .iter()
            .map(|finding| (finding.rule, finding.fix_status));
        (rules.collect::<Vec<_>>(), found.repairs.len())
    };
    let strange = with_members(
        examined(&["ConfigMap"], &[]),
        &[config_map("shop"), config_map("victim")],
    );
    for extent in [Extent::Part, Extent::Whole] {
        let (rules, repairs) = rules_and_repairs(&strange, extent);
        assert!(
            rules.contains(&(Rule::UnrecordedMember, FixStatus::ByHand)),
            "{rules:?}"
        );
        assert!(
            rules.contains(&(Rule::RecordTooNarrow, FixStatus::ByHand)),
            "{rules:?}"
        );
        assert_eq!(repairs, 0);
    }
    // Kinds within the namespaces of the record are added, and only those.
    let narrow = with_members(
        examined(&["ConfigMap"], &["away"]),
        &[
            config_map("shop"),
            live("Secret", Some("away"), "one"),
            live("Service", Some("victim"), "one"),
        ],
    );
    let found = findings_and_repairs_with(&narrow, Extent::Whole, NewNamespaces::Excluded);
    let [repair] = &found.repairs[..] else {
        panic!("{:?}", found.findings);
    };
    assert_eq!(repair.record.group_kinds_value(), "ConfigMap,Secret");
    assert_eq!(repair.record.namespaces_value(), "away");
}

#[test]
fn namespaces_that_are_recorded_survive_the_loss_of_the_kinds() {
    let set = with_members(
        examined(&["ConfigMap"], &["away"]),
        &[config_map("shop"), config_map("away")],
    );
    for lost in [None, Some("a/b")] {
        let spoilt = changed(&set, &[], &[(GROUP_KINDS_ANNOTATION, lost)]);
        let repairs = findings_and_repairs_with(&spoilt, Extent::Whole, NewNamespaces::Excluded).repairs;
        let namespaces = repairs.iter().map(|repair| repair.record.namespaces_value());
        assert!(
            namespaces.clone().all(|value| value == "away"),
            "{lost:?}: {:?}",
            namespaces.collect::<Vec<_>>()
        );
        let [repair] =
            &findings_and_repairs_with(&spoilt, Extent::Whole, NewNamespaces::Included).repairs[..]
        else {
            panic!("no repair");
        };
        assert_eq!(repair.record.namespaces_value(), "away");
    }
}

#[test]
fn changes_are_described_by_what_is_lost_and_gained() {
    let list = GROUP_KINDS_ANNOTATION;
    let table = [
        (list, Some("a,b"), "a,b", None),
        (list, Some("a,b"), "a", Some("remove b from KEY")),
        (list, Some(""), "a,b", Some("add a, b to KEY")),
        (
            list,
            Some("a, b,"),
            "a,c",
            Some("remove \" b\", \"\" from KEY and add c"),
        ),
        (
            list,
            Some("b,a"),
            "a,b",
            Some("change KEY from \"b,a\" to \"a,b\""),
        ),
        (list, None, "a", Some("add KEY \"a\"")),
        (
            ID_LABEL,
            Some("a,b"),
            "a",
            Some("change KEY from \"a,b\" to \"a\""),
        ),
    ];
    for (key, found, value, text) in table {
        let found = found.map(|found| (key.to_owned(), found.to_owned()));
        let expected = text.map(|text| text.replace("KEY", key));
        assert_eq!(
            describe_change(&found.into_iter().collect(), key, value),
            expected
        );
    }
}

#[test]
fn a_kind_that_is_not_served_is_dropped_and_one_that_is_misspelled_is_kept() {
    let set = with_members(
        examined(&["ConfigMap", "secrets", "Gone.example.com"], &[]),
        &[config_map("shop")],
    );
    assert_eq!(repaired(&set, Extent::Part).as_deref(), Some("ConfigMap,Secret|"));
    assert_eq!(repaired(&set, Extent::Whole).as_deref(), Some("ConfigMap|"));
}

#[test]
fn a_kind_whose_objects_cannot_be_listed_is_kept_with_every_namespace() {
    let set = with_members(
        examined(&["Dormant.example.com"], &["away"]),
        &[config_map("shop")],
    );
    let unheard = with_members(examined(&["Unheard.example.com"], &[]), &[config_map("shop")]);
    for extent in [Extent::Part, Extent::Whole] {
        let kept = "ConfigMap,Dormant.example.com|away";
        assert_eq!(repaired(&set, extent).as_deref(), Some(kept));
        let kept = "ConfigMap,Unheard.example.com|";
        assert_eq!(repaired(&unheard, extent).as_deref(), Some(kept));
    }
}

#[test]
fn what_makes_no_sense_is_only_replaced_by_what_is_certain() {
    let sound = with_members(examined(&["ConfigMap"], &[]), &[config_map("shop")]);
    let table = [
        (Some("ConfigMap,a/b"), "malformed-value", "malformed-value+"),
        (Some("ConfigMap, Secret"), "malformed-value+", "malformed-value+"),
        (None, "missing-kinds", "missing-kinds+"),
    ];
    for (value, in_part, whole) in table {
        let set = changed(&sound, &[], &[(GROUP_KINDS_ANNOTATION, value)]);
        assert!(
            found_rules(&set, Extent::Part).contains(&in_part.to_owned()),
            "{value:?}"
        );
        assert!(
            found_rules(&set, Extent::Whole).contains(&whole.to_owned()),
            "{value:?}"
        );
    }
}

#[test]
fn sets_of_other_tools_and_of_unknown_tools_are_kept() {
    let wide = examined(&["ConfigMap"], &[]);
    for (tooling, reason) in [
        (Some("kubectl/v1.36.3"), "managed by kubectl/v1.36.3"),
        (Some("kro/v0.9.0"), "managed by kro/v0.9.0"),
        (Some("v2:x"), "newer format"),
        (None, "is unknown"),
    ] {
        let set = changed(&wide, &[], &[(TOOLING_ANNOTATION, tooling)]);
        let found = findings_and_repairs(&set, Extent::Whole);
        assert_eq!(found.repairs, [], "{tooling:?}");
        let refused = found
            .findings
            .iter()
            .find(|finding| finding.hint.contains(reason));
        assert!(refused.is_some(), "{:?}", found.findings);
    }
    let mut ours = changed(&wide, &[], &[(TOOLING_ANNOTATION, None)]);
    ours.parent.writers.insert(PARENT_FIELD_MANAGER.to_owned());
    assert_eq!(
        found_rules(&ours, Extent::Whole),
        ["invalid-tooling+", "record-too-wide+"]
    );
    ours.parent.appliers.insert(PARENT_FIELD_MANAGER.to_owned());
    // A user has edited it.
    ours.parent.writers.insert("kubectl-annotate".to_owned());
    assert!(found_rules(&ours, Extent::Whole).contains(&"invalid-tooling+".to_owned()));
    let mut taken = ours.clone();
    taken
        .parent
        .appliers
        .insert(KUBECTL_PARENT_FIELD_MANAGER.to_owned());
    let mut foreign = ours;
    foreign
        .parent
        .writers
        .insert(FOREIGN_PARENT_FIELD_MANAGER.to_owned());
    for set in [taken, foreign] {
        assert_eq!(
            found_rules(&set, Extent::Whole),
            ["invalid-tooling", "record-too-wide"]
        );
    }
}

#[test]
fn an_id_is_written_only_on_what_certainly_is_a_parent() {
    let copy = changed(&examined(&[], &[]), &[(ID_LABEL, Some("of-the-original"))], &[]);
    assert_eq!(found_rules(&copy, Extent::Whole), ["wrong-id"]);
    let original = with_members(examined(&["ConfigMap"], &[]), &[config_map("shop")]);
    let original = changed(&original, &[(ID_LABEL, Some("spoilt"))], &[]);
    assert_eq!(found_rules(&original, Extent::Whole), ["wrong-id+"]);
}

#[test]
fn a_repaired_parent_is_not_repaired_again() {
    let set = with_members(examined(&["Secret"], &[]), &[config_map("away")]);
    let set = changed(
        &set,
        &[(PART_OF_LABEL, Some(set.found.id.as_str()))],
        &[(GROUP_RESOURCES_ANNOTATION, Some("secrets"))],
    );
    let [repair] = &findings_and_repairs(&set, Extent::Whole).repairs[..] else {
        panic!("no repair");
    };
    assert_eq!(repair.removals.len(), 2);
    assert_eq!(found_rules(&repair.repaired_set(&set), Extent::Whole), [""; 0]);
}

#[test]
fn a_record_that_would_not_fit_is_not_written() {
    let note = "x".repeat(ANNOTATIONS_LIMIT - 300);
    let set = with_members(examined(&[], &[]), &[config_map(&"n".repeat(60))]);
    let set = changed(&set, &[], &[("note", Some(&note))]);
    assert!(found_rules(&set, Extent::Whole).contains(&"record-too-narrow+".to_owned()));
    let note = "x".repeat(ANNOTATIONS_LIMIT - 150);
    let set = changed(&set, &[], &[("note", Some(&note))]);
    assert!(found_rules(&set, Extent::Whole).contains(&"record-too-narrow".to_owned()));
}
