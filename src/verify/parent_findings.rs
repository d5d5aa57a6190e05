//! The rules about the parent alone: its id, its tooling, its kind, and the form of its values.
//!
//! `applyset::parent` decides which values can be read. Each fault that it returns stops a run and is a finding here,
//! so `verify` and `apply` cannot disagree about a parent.

use super::finding::{Finding, Rule, Severity};
use super::{Examined, ParentEligibility};
use crate::model::applyset::parent::{ANNOTATIONS_LIMIT, Pairs, ParentFault, Reading};
use crate::model::applyset::record::{InvalidValue, parse_group_kinds, parse_namespaces};
use crate::model::applyset::{
    ADDITIONAL_NAMESPACES_ANNOTATION, GROUP_KINDS_ANNOTATION, GROUP_RESOURCES_ANNOTATION,
    IS_PARENT_TYPE_LABEL, PART_OF_LABEL, Record,
};
use crate::model::live::Presence;

/// The percentage of the server's limit above which annotations are reported to be large.
const LARGE_ANNOTATIONS_PERCENT: usize = 80;

/// Applies the rules to the parent.
pub(super) fn check_parent(set: &Examined) -> Vec<Finding> {
    let kind_finding = check_kind(set);
    if set.kind == ParentEligibility::Forbidden {
        // Such an object has a copy of a parent's label, so the rules about parents do not apply.
        return kind_finding.into_iter().collect();
    }
    let mut findings = check_record_is_readable(set);
    findings.extend(kind_finding);
    findings.extend(check_canonical_form(set));
    let key = &set.parent.identity;
    if set.parent.object.presence == Presence::Terminating {
        let message = "being deleted; remaining members will have no parent";
        findings.push(Finding::new(Rule::TerminatingParent, key, message).with_hint(
            "check its finalizers with `kubectl get -o yaml`; apply the set again when it is gone",
        ));
    }
    if set.parent.labels.get(PART_OF_LABEL).map(String::as_str) == Some(set.found.id.as_str()) {
        let message =
            "labeled as a member of its own set; a tool that prunes by this label would delete the record";
        findings.push(
            Finding::new(Rule::ParentInOwnSet, key, message).with_hint(format!(
                "remove the label with `kubectl label {} {PART_OF_LABEL}-`",
                super::name_for_kubectl(key)
            )),
        );
    }
    let size = annotations_size(&set.parent.object.annotations);
    if size * 100 > ANNOTATIONS_LIMIT * LARGE_ANNOTATIONS_PERCENT {
        let message =
            format!("its annotations have {size} bytes of the {ANNOTATIONS_LIMIT} that the server allows");
        findings.push(
            Finding::new(Rule::LargeAnnotations, key, message)
                .with_hint("split the set, or remove other annotations from the parent"),
        );
    }
    findings
}

/// Returns the number of bytes of all keys and values, which the server limits.
pub(super) fn annotations_size(annotations: &Pairs) -> usize {
    annotations
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum()
}

/// Reports the faults for which a run is refused, and a missing or unfinished record.
fn check_record_is_readable(set: &Examined) -> Vec<Finding> {
    let key = &set.parent.identity;
    match &set.parent.object.reading {
        Reading::Parent(_) => Vec::new(),
        Reading::Faulty(faults) => faults.iter().map(|fault| fault_finding(set, fault)).collect(),
        Reading::Unfinished(tooling) => {
            let message = format!("{tooling} started to create the set and recorded no kinds");
            vec![Finding::new(Rule::UnfinishedParent, key, message).with_hint("apply the set again")]
        }
        Reading::NoRecord => vec![missing_record_finding(set)],
    }
}

fn fault_finding(set: &Examined, fault: &ParentFault) -> Finding {
    let key = &set.parent.identity;
    let newer = "upgrade kubectl-applyset";
    let (rule, hint) = match fault {
        ParentFault::IdMissing => (
            Rule::MissingId,
            "compare it with a backup: it may be a copy, or have lost its label",
        ),
        ParentFault::WrongId { .. } => (
            Rule::WrongId,
            "compare it with a backup: it may be a copy of another parent",
        ),
        ParentFault::LaterIdFormat(_)
        | ParentFault::InvalidValue {
            fault: InvalidValue::LaterFormat(_),
            ..
        } => (Rule::LaterFormat, newer),
        ParentFault::ToolingMissing | ParentFault::InvalidTooling(_) => (
            Rule::InvalidTooling,
            "restore the name of the tool that manages the set",
        ),
        ParentFault::KindsMissing => (
            Rule::MissingKinds,
            "restore it from a backup, or verify as a user who can list everything",
        ),
        ParentFault::InvalidValue { .. }
        | ParentFault::NoNamespaceFor(_)
        | ParentFault::MisspelledKind { .. } => (
            Rule::MalformedValue,
            "restore it from a backup, or verify as a user who can list everything",
        ),
    };
    Finding::new(rule, key, fault.to_string()).with_hint(hint)
}

/// Returns the finding about an object without a record. If objects have the label of its set, the object was a parent
/// and has lost its record. Otherwise, a custom resource may have been created as a parent before its first run, while
/// a ConfigMap or a Secret is not a parent.
fn missing_record_finding(set: &Examined) -> Finding {
    let key = &set.parent.identity;
    let count = set.found.members.len();
    if count > 0 {
        let objects = crate::model::text::counted(count, "object");
        let message = format!("no ApplySet metadata, but {objects} are members of its set");
        return Finding::new(Rule::NoBookkeeping, key, message)
            .with_hint("apply the set again with `kubectl applyset apply --take-over-set`");
    }
    if key.group_kind.group.is_empty() {
        let message = "not the parent of a set";
        return Finding::new(Rule::NoBookkeeping, key, message)
            .with_hint("list all sets with `kubectl applyset list -A`");
    }
    Finding {
        severity: Severity::Info,
        ..Finding::new(Rule::NoBookkeeping, key, "no set recorded yet")
    }
}

fn check_kind(set: &Examined) -> Option<Finding> {
    let key = &set.parent.identity;
    let resource = &set.parent.resource;
    match set.kind {
        ParentEligibility::Permitted | ParentEligibility::Unknown => None,
        ParentEligibility::Unlabeled => {
            let message = format!(
                "its kind cannot be a parent: its CustomResourceDefinition lacks the label {IS_PARENT_TYPE_LABEL}"
            );
            Some(Finding::new(Rule::ParentKind, key, message).with_hint(format!(
                "allow it with `kubectl label crd {}.{} {IS_PARENT_TYPE_LABEL}=true`",
                resource.plural, resource.group
            )))
        }
        ParentEligibility::Forbidden => {
            let message = "has the id of a set, but its kind cannot be a parent";
            Some(
                Finding::new(Rule::ParentKind, key, message)
                    .with_hint("remove the label applyset.kubernetes.io/id; it may be a copy of its owner's"),
            )
        }
    }
}

/// Reports values that are valid, but that the next apply would write differently.
fn check_canonical_form(set: &Examined) -> Vec<Finding> {
    let key = &set.parent.identity;
    let annotations = &set.parent.object.annotations;
    let mut findings = Vec::new();
    for annotation in [GROUP_KINDS_ANNOTATION, ADDITIONAL_NAMESPACES_ANNOTATION] {
        let value = annotations.get(annotation);
        let canonical = value.and_then(|value| to_canonical(annotation, value, key.namespace.as_ref()));
        if let (Some(value), Some(canonical)) = (value, canonical)
            && *value != canonical
        {
            let message = format!("annotation {annotation} is {value:?}, should be {canonical:?}");
            findings.push(Finding::new(Rule::UnsortedValue, key, message).with_hint("apply the set again"));
        }
    }
    if annotations.contains_key(GROUP_RESOURCES_ANNOTATION) {
        let message = format!("has the deprecated annotation {GROUP_RESOURCES_ANNOTATION}");
        findings.push(
            Finding::new(Rule::DeprecatedKinds, key, message)
                .with_hint("upgrade the tool that manages the set; it should write contains-group-kinds"),
        );
    }
    findings
}

/// Returns the canonical form of a list; `None` if the list is invalid. The list of additional namespaces does not have
/// the parent's own namespace.
fn to_canonical(annotation: &str, value: &str, parent_namespace: Option<&String>) -> Option<String> {
    let mut record = Record::default();
    if annotation == GROUP_KINDS_ANNOTATION {
        record.group_kinds = parse_group_kinds(value).ok()?;
        return Some(record.group_kinds_value());
    }
    record.additional_namespaces = parse_namespaces(value).ok()?;
    record
        .additional_namespaces
        .retain(|namespace| Some(namespace) != parent_namespace);
    Some(record.namespaces_value())
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{changed, examined, found_rules, with_members};
    use super::super::{Extent, FixStatus, fixtures};
    use super::*;
    use crate::model::applyset::{ID_LABEL, TOOLING_ANNOTATION};
    use crate::plan::fixtures::live;

    type Changes<'a> = &'a [(&'a str, Option<&'a str>)];

    /// A set of one `ConfigMap`, as this program leaves it.
    fn sound() -> Examined {
        with_members(
            examined(&["ConfigMap"], &[]),
            &[live("ConfigMap", Some("shop"), "one")],
        )
    }

    #[test]
    fn a_sound_parent_has_no_findings() {
        assert_eq!(found_rules(&sound(), Extent::Whole), [""; 0]);
    }

    #[test]
    fn each_fault_of_a_parent_has_its_rule() {
        let id = fixtures::examined(&[], &[]).found.id.to_string();
        let none: Changes = &[];
        let later = "v2:x";
        let table: [(Changes, Changes, &[&str]); 17] = [
            (&[(ID_LABEL, Some("other"))], none, &["wrong-id+"]),
            (&[(ID_LABEL, None)], none, &["missing-id+"]),
            (&[(ID_LABEL, Some("v2.x"))], none, &["later-format"]),
            (
                &[(PART_OF_LABEL, Some(id.as_str()))],
                none,
                &["parent-in-own-set+"],
            ),
            (&[(PART_OF_LABEL, Some("another"))], none, &[]),
            (none, &[(TOOLING_ANNOTATION, None)], &["invalid-tooling"]),
            (none, &[(TOOLING_ANNOTATION, Some("/v1"))], &["invalid-tooling"]),
            (none, &[(TOOLING_ANNOTATION, Some(later))], &["later-format"]),
            (none, &[(GROUP_KINDS_ANNOTATION, Some(later))], &["later-format"]),
            (none, &[(GROUP_KINDS_ANNOTATION, None)], &["missing-kinds+"]),
            (
                none,
                &[(GROUP_KINDS_ANNOTATION, Some("ConfigMap,"))],
                &["malformed-value+"],
            ),
            (
                none,
                &[(GROUP_KINDS_ANNOTATION, Some("configmaps"))],
                &["malformed-value+"],
            ),
            (
                none,
                &[(GROUP_KINDS_ANNOTATION, Some("ConfigMap.v1"))],
                &["malformed-value+"],
            ),
            (
                none,
                &[(GROUP_KINDS_ANNOTATION, Some("ConfigMap,ConfigMap"))],
                &["unsorted-value+"],
            ),
            (
                none,
                &[(ADDITIONAL_NAMESPACES_ANNOTATION, Some("a b"))],
                &["malformed-value+"],
            ),
            (
                none,
                &[(ADDITIONAL_NAMESPACES_ANNOTATION, Some("shop"))],
                &["unsorted-value+"],
            ),
            (
                none,
                &[
                    (GROUP_KINDS_ANNOTATION, None),
                    (GROUP_RESOURCES_ANNOTATION, Some("configmaps")),
                ],
                &["deprecated-kinds+"],
            ),
        ];
        for (labels, annotations, rules) in table {
            let set = changed(&sound(), labels, annotations);
            assert_eq!(
                found_rules(&set, Extent::Whole),
                rules,
                "{labels:?} {annotations:?}"
            );
        }
    }

    #[test]
    fn a_future_parent_is_distinguished_from_a_former_one() {
        let bare: Changes = &[
            (GROUP_KINDS_ANNOTATION, None),
            (ADDITIONAL_NAMESPACES_ANNOTATION, None),
        ];
        let begun = changed(&examined(&[], &[]), &[(ID_LABEL, None)], bare);
        assert_eq!(found_rules(&begun, Extent::Whole), ["unfinished-parent"]);
        let without = |set: &Examined| {
            let set = changed(set, &[(ID_LABEL, None)], bare);
            changed(&set, &[], &[(TOOLING_ANNOTATION, None)])
        };
        for (set, severity) in [(examined(&[], &[]), Severity::Error), (sound(), Severity::Error)] {
            let findings = fixtures::verdict(&without(&set), Extent::Whole).findings;
            assert_eq!(
                (findings[0].rule, findings[0].severity),
                (Rule::NoBookkeeping, severity)
            );
            assert_eq!(findings[0].fix_status, FixStatus::ByHand);
        }
        let mut custom = without(&examined(&[], &[]));
        custom.parent.identity.group_kind.group = "example.com".to_owned();
        let findings = fixtures::verdict(&custom, Extent::Whole).findings;
        assert_eq!(findings[0].severity, Severity::Info);
    }

    #[test]
    fn a_parent_that_is_being_deleted_or_may_not_be_one_is_reported() {
        let mut going = changed(&sound(), &[], &[(GROUP_KINDS_ANNOTATION, Some("ConfigMap,"))]);
        going.parent.object.presence = Presence::Terminating;
        assert_eq!(
            found_rules(&going, Extent::Whole),
            ["malformed-value", "terminating-parent"]
        );
        for (kind, rules) in [
            (
                ParentEligibility::Unlabeled,
                &["malformed-value", "parent-kind"][..],
            ),
            (ParentEligibility::Forbidden, &["parent-kind"]),
            (ParentEligibility::Unknown, &["malformed-value+"]),
        ] {
            going.parent.object.presence = Presence::Present;
            going.kind = kind;
            assert_eq!(found_rules(&going, Extent::Whole), rules, "{kind:?}");
        }
    }

    #[test]
    fn annotations_are_large_before_the_server_refuses_them() {
        for (length, rules) in [(200_000, &[][..]), (220_000, &["large-annotations"])] {
            let note = "x".repeat(length);
            let set = changed(&sound(), &[], &[("note", Some(&note))]);
            assert_eq!(found_rules(&set, Extent::Whole), rules, "{length}");
        }
    }
}
