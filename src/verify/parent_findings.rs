//! The rules about the parent alone: its id, its tooling, its kind, and the form of its values.
//!
//! `applyset::parent` decides which values can be read. Each fault that it returns stops a run and is a finding here,
//! so `verify` and `apply` cannot disagree about a parent.

use super::finding::{Finding, Rule, Severity};
use super::{ExaminedSet, ParentEligibility};
use crate::model::applyset::parent::{ANNOTATIONS_LIMIT, Pairs, ParentFault, Reading};
use crate::model::applyset::record::InvalidValue;
use crate::model::applyset::{GROUP_RESOURCES_ANNOTATION, ID_LABEL, IS_PARENT_TYPE_LABEL, PART_OF_LABEL};
use crate::model::live::Presence;

/// The percentage of the server's limit above which annotations are reported to be large.
const LARGE_ANNOTATIONS_PERCENT: usize = 80;

/// The hint for a value of the record that is missing or invalid.
const RESTORE_VALUE: &str = "restore it from a backup, or verify as a user who can list everything";

/// Applies the rules to the parent.
pub(super) fn check_parent(set: &ExaminedSet) -> Vec<Finding> {
    let kind_finding = check_kind(set);
    if set.eligibility == ParentEligibility::Forbidden {
        // Such an object has a copy of a parent's label, so the rules about parents do not apply.
        return kind_finding.into_iter().collect();
    }
    let mut findings = check_record_is_readable(set);
    findings.extend(kind_finding);
    findings.extend(check_no_deprecated_annotation(set));
    findings.extend(check_not_terminating(set));
    findings.extend(check_not_in_own_set(set));
    findings.extend(check_annotations_size(set));
    findings
}

fn check_not_terminating(set: &ExaminedSet) -> Option<Finding> {
    (set.parent.object.presence == Presence::Terminating).then(|| {
        let message = "being deleted; remaining members will have no parent";
        Finding::new(Rule::TerminatingParent, &set.parent.live.key, message)
            .with_hint("check its finalizers with `kubectl get -o yaml`; apply the set again when it is gone")
    })
}

fn check_not_in_own_set(set: &ExaminedSet) -> Option<Finding> {
    let identity = &set.parent.live.key;
    let part_of = set.parent.labels.get(PART_OF_LABEL)?;
    (part_of == set.found.id.as_str()).then(|| {
        let message =
            "labeled as a member of its own set; a tool that prunes by this label would delete the record";
        Finding::new(Rule::ParentInOwnSet, identity, message).with_hint(format!(
            "remove the label with `kubectl label {} {PART_OF_LABEL}-`",
            identity.shell_arguments()
        ))
    })
}

fn check_annotations_size(set: &ExaminedSet) -> Option<Finding> {
    let size = annotations_size(&set.parent.object.annotations);
    let is_large = size * 100 > ANNOTATIONS_LIMIT * LARGE_ANNOTATIONS_PERCENT;
    is_large.then(|| {
        let message =
            format!("its annotations have {size} bytes of the {ANNOTATIONS_LIMIT} that the server allows");
        Finding::new(Rule::LargeAnnotations, &set.parent.live.key, message)
            .with_hint("split the set, or remove other annotations from the parent")
    })
}

/// Returns the size that the server limits: the bytes of all keys and values.
pub(super) fn annotations_size(annotations: &Pairs) -> usize {
    annotations
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum()
}

/// Reports the faults for which a run is refused, and a missing or unfinished record.
fn check_record_is_readable(set: &ExaminedSet) -> Vec<Finding> {
    let identity = &set.parent.live.key;
    match &set.parent.object.reading {
        Reading::Parent(_) => Vec::new(),
        Reading::Faulty(faults) => faults.iter().map(|fault| fault_finding(set, fault)).collect(),
        Reading::Unfinished(tooling) => {
            let message = format!("{tooling} started to create the set and recorded no kinds");
            vec![Finding::new(Rule::UnfinishedParent, identity, message).with_hint("apply the set again")]
        }
        Reading::Unrecorded(tooling) => {
            let message =
                format!("{tooling} manages the set and records no kinds: its members are not checked");
            vec![Finding {
                severity: Severity::Info,
                ..Finding::new(Rule::NoRecord, identity, message)
            }]
        }
        Reading::NoRecord => vec![missing_record_finding(set)],
    }
}

fn fault_finding(set: &ExaminedSet, fault: &ParentFault) -> Finding {
    let identity = &set.parent.live.key;
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
        } => (Rule::LaterFormat, "upgrade kubectl-applyset"),
        ParentFault::ToolingMissing | ParentFault::InvalidTooling(_) => (
            Rule::InvalidTooling,
            "restore the name of the tool that manages the set",
        ),
        ParentFault::KindsMissing => (Rule::MissingKinds, RESTORE_VALUE),
        ParentFault::InvalidValue { .. }
        | ParentFault::NoNamespaceFor(_)
        | ParentFault::MisspelledKind { .. } => (Rule::MalformedValue, RESTORE_VALUE),
    };
    Finding::new(rule, identity, fault.to_string()).with_hint(hint)
}

/// Returns the finding about an object without a record.
fn missing_record_finding(set: &ExaminedSet) -> Finding {
    let identity = &set.parent.live.key;
    let count = set.found.members.len();
    if count > 0 {
        // The object was a parent, and has lost its record.
        let objects = crate::model::text::counted(count, "object");
        let message = format!("no ApplySet metadata, but {objects} are members of its set");
        return Finding::new(Rule::NoRecord, identity, message).with_hint(
            "apply the set again with `kubectl applyset apply SET -n NAMESPACE -f … --take-over-set --yes`",
        );
    }
    // Of the kinds that can be parents, ConfigMap and Secret are in the core group, and all others are custom.
    let is_custom_resource = !identity.group_kind.group.is_empty();
    if !is_custom_resource {
        let message = "not the parent of a set";
        return Finding::new(Rule::NoRecord, identity, message)
            .with_hint("list all sets with `kubectl applyset list -A`");
    }
    // A custom resource may have been created as a parent before the first run of its set.
    Finding {
        severity: Severity::Info,
        ..Finding::new(Rule::NoRecord, identity, "no set recorded yet")
    }
}

fn check_kind(set: &ExaminedSet) -> Option<Finding> {
    let identity = &set.parent.live.key;
    let resource = &set.parent.live.resource;
    match set.eligibility {
        ParentEligibility::Permitted | ParentEligibility::Unknown => None,
        ParentEligibility::Unlabeled if matches!(set.found.reading, Reading::Unrecorded(_)) => None,
        ParentEligibility::Unlabeled => {
            let message = format!(
                "its kind cannot be a parent: its CustomResourceDefinition lacks the label {IS_PARENT_TYPE_LABEL}"
            );
            Some(
                Finding::new(Rule::ParentKind, identity, message).with_hint(format!(
                    "allow it with `kubectl label crd {}.{} {IS_PARENT_TYPE_LABEL}=true`",
                    resource.plural, resource.group
                )),
            )
        }
        ParentEligibility::Forbidden => {
            let message = "has the id of a set, but its kind cannot be a parent";
            Some(
                Finding::new(Rule::ParentKind, identity, message).with_hint(format!(
                    "remove the label {ID_LABEL}; it may be a copy of its owner's"
                )),
            )
        }
    }
}

fn check_no_deprecated_annotation(set: &ExaminedSet) -> Option<Finding> {
    let annotations = &set.parent.object.annotations;
    annotations.contains_key(GROUP_RESOURCES_ANNOTATION).then(|| {
        let message = format!("has the deprecated annotation {GROUP_RESOURCES_ANNOTATION}");
        Finding::new(Rule::DeprecatedKinds, &set.parent.live.key, message)
            .with_hint("upgrade the tool that manages the set; it should write contains-group-kinds")
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{changed, examined, found_rules, with_members};
    use super::super::{Extent, FixStatus, fixtures};
    use super::*;
    use crate::model::applyset::{
        ADDITIONAL_NAMESPACES_ANNOTATION, GROUP_KINDS_ANNOTATION, TOOLING_ANNOTATION,
    };
    use crate::plan::fixtures::live;

    type Changes<'a> = &'a [(&'a str, Option<&'a str>)];

    /// A set of one `ConfigMap`, as this program leaves it.
    fn sound() -> ExaminedSet {
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
        // Changed labels, changed annotations, and the rules that find something; `+` marks the findings that `--fix`
        // repairs.
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
                // The next apply sorts it.
                &[(GROUP_KINDS_ANNOTATION, Some("ConfigMap,ConfigMap"))],
                &[],
            ),
            (
                none,
                &[(ADDITIONAL_NAMESPACES_ANNOTATION, Some("a b"))],
                &["malformed-value+"],
            ),
            (none, &[(ADDITIONAL_NAMESPACES_ANNOTATION, Some("shop"))], &[]),
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
        let no_record: Changes = &[
            (GROUP_KINDS_ANNOTATION, None),
            (ADDITIONAL_NAMESPACES_ANNOTATION, None),
        ];
        let unfinished = changed(&examined(&[], &[]), &[(ID_LABEL, None)], no_record);
        assert_eq!(found_rules(&unfinished, Extent::Whole), ["unfinished-parent"]);
        let without_metadata = |set: &ExaminedSet| {
            let set = changed(set, &[(ID_LABEL, None)], no_record);
            changed(&set, &[], &[(TOOLING_ANNOTATION, None)])
        };
        for set in [examined(&[], &[]), sound()] {
            let findings = fixtures::findings_and_repairs(&without_metadata(&set), Extent::Whole).findings;
            assert_eq!(
                (findings[0].rule, findings[0].severity),
                (Rule::NoRecord, Severity::Error)
            );
            assert_eq!(findings[0].fix_status, FixStatus::ByHand);
        }
        let mut custom = without_metadata(&examined(&[], &[]));
        custom.parent.live.key.group_kind.group = "example.com".to_owned();
        let findings = fixtures::findings_and_repairs(&custom, Extent::Whole).findings;
        assert_eq!(findings[0].severity, Severity::Info);
    }

    #[test]
    fn a_parent_that_is_being_deleted_or_may_not_be_one_is_reported() {
        let mut set = changed(&sound(), &[], &[(GROUP_KINDS_ANNOTATION, Some("ConfigMap,"))]);
        set.parent.object.presence = Presence::Terminating;
        assert_eq!(
            found_rules(&set, Extent::Whole),
            ["malformed-value", "terminating-parent"]
        );
        set.parent.object.presence = Presence::Present;
        for (eligibility, rules) in [
            (
                ParentEligibility::Unlabeled,
                &["malformed-value", "parent-kind"][..],
            ),
            (ParentEligibility::Forbidden, &["parent-kind"]),
            (ParentEligibility::Unknown, &["malformed-value+"]),
        ] {
            set.eligibility = eligibility;
            assert_eq!(found_rules(&set, Extent::Whole), rules, "{eligibility:?}");
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
