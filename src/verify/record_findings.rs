//! The rules about the record of a parent: the record names exactly the kinds and namespaces of the members, and the
//! server serves its kinds. `list` and `view` compute the status of a set by the same rules.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Finding, Rule};
use crate::cluster::discovery::{Discovery, ReasonToKeepKind};
use crate::compare::ownership::APPLIERS;
use crate::model::applyset::Record;
use crate::model::applyset::parent::{ParentAnnotations, ParentFault, Reading};
use crate::model::expiry::describe_invalid_expiry;
use crate::model::live::{Live, Presence};
use crate::model::resource::Scope;
use crate::model::text::first_names_and_more;
use crate::plan::reason_not_a_member;
use crate::plan::recorded_kinds::RecordedKind;
use crate::read::ListTarget;
use crate::read::found_set::{FoundSet, RecordStatus, recorded_kinds_with_shown_names, served_record};

/// Applies the rules to the record. Returns nothing if the parent has no valid record: the rules about the parent
/// report that.
///
/// `appliers` are the field managers whose part-of labels make an object a member.
pub(super) fn check_record(
    set: &FoundSet,
    discovery: &Discovery,
    appliers: &BTreeSet<String>,
) -> Vec<Finding> {
    let Some(applyset_record) = set.recorded() else {
        return Vec::new();
    };
    let mut findings: Vec<Finding> = recorded_kinds_with_shown_names(applyset_record, discovery)
        .into_iter()
        .filter_map(|(name, entry)| check_entry(set, applyset_record, &name, entry))
        .collect();
    let are_all_kinds_known = findings
        .iter()
        .all(|finding| finding.rule != Rule::UnknowableKind);
    let recorded = served_record(applyset_record, discovery);
    findings.extend(check_not_too_narrow(
        set,
        &recorded,
        &needed_record(set, appliers),
    ));
    findings.extend(find_unread_collections(set));
    // In a collection that was not listed, there may be members for which the record has to stay.
    if are_all_kinds_known && set.unread.is_empty() {
        findings.extend(check_not_too_wide(set, &recorded));
    }
    findings
}

/// Checks that the server serves a recorded kind, and that the record has a namespace for it.
fn check_entry(
    set: &FoundSet,
    applyset_record: &ParentAnnotations,
    name: &str,
    entry: RecordedKind<'_>,
) -> Option<Finding> {
    let key = &set.identity;
    let is_without_namespace = key.namespace.is_none() && applyset_record.additional_namespaces.is_empty();
    let unknowable = |reason: String, hint: &str| {
        let message = format!("recorded kind {name}: its members cannot be listed: {reason}");
        Finding::new(Rule::UnknowableKind, key, message).with_hint(hint)
    };
    Some(match entry {
        RecordedKind::Kept(kept) if kept.reason == ReasonToKeepKind::BuiltIn => unknowable(
            kept.reason.to_string(),
            "wait until all API servers are upgraded; if Kubernetes has dropped the kind, remove it from the annotation",
        ),
        RecordedKind::Kept(kept) => unknowable(
            kept.reason.to_string(),
            "fix or delete its CustomResourceDefinition, or ask for the permission",
        ),
        RecordedKind::UnexpectedlyMissing(expected) => unknowable(
            expected.map_or_else(|| "discovery does not list it".to_owned(), ToString::to_string),
            "run the same command again; `kubectl api-resources` shows which kinds are served",
        ),
        RecordedKind::Unknowable(failure) => unknowable(
            failure.to_string(),
            "restore the API that `kubectl get apiservices` shows as unavailable",
        ),
        // The run may have yet to create the CRD.
        RecordedKind::Gone if set.is_being_added_to() => return None,
        RecordedKind::Gone => {
            let message = format!("recorded kind {name}: not served by the cluster");
            Finding::new(Rule::UnservedKind, key, message)
                .with_hint("apply the set again: the next apply removes it from the record")
        }
        RecordedKind::Misspelled(resource) => {
            let fault = ParentFault::MisspelledKind {
                entry: name.to_owned(),
                meant: resource.group_kind().to_string(),
            };
            Finding::new(Rule::MalformedValue, key, fault.to_string())
                .with_hint("fix the entry; apply is refused until then")
        }
        RecordedKind::Served(resource) if is_without_namespace && resource.scope == Scope::Namespaced => {
            let fault = ParentFault::NoNamespaceFor(resource.group_kind());
            Finding::new(Rule::MissingNamespaces, key, fault.to_string())
                .with_hint("restore it from a backup, or verify as a user who can list everything")
        }
        RecordedKind::Served(_) => return None,
    })
}

fn check_not_too_narrow(set: &FoundSet, recorded: &Record, needed: &Record) -> Option<Finding> {
    let missing = names_beyond(needed, recorded);
    (!missing.is_empty()).then(|| {
        let message = format!("members outside the record: {missing}");
        Finding::new(Rule::RecordTooNarrow, &set.identity, message)
            .with_hint("record their kinds with --fix, and their namespaces with --fix --include-namespaces")
    })
}

/// Checks that the record has no kinds and namespaces without objects. While a run is under way that may add members,
/// the record has kinds and namespaces of objects that the run has yet to create, so nothing is reported.
fn check_not_too_wide(set: &FoundSet, recorded: &Record) -> Option<Finding> {
    if set.is_being_added_to() {
        return None;
    }
    let unused = names_beyond(recorded, &labeled_record(set));
    (!unused.is_empty()).then(|| {
        let message = format!("recorded, but without members: {unused}");
        Finding::new(Rule::RecordTooWide, &set.identity, message)
            .with_hint("ignore it, or apply the set again, which narrows the record unless an object there lost its label")
    })
}

/// Lists the kinds and namespaces of `one` that `other` lacks.
fn names_beyond(one: &Record, other: &Record) -> String {
    let kinds = one
        .group_kinds
        .difference(&other.group_kinds)
        .map(ToString::to_string);
    let namespaces = one
        .additional_namespaces
        .difference(&other.additional_namespaces)
        .map(|namespace| format!("namespace {namespace}"));
    first_names_and_more(kinds.chain(namespaces))
}

/// Reports the recorded collections that could not be listed.
fn find_unread_collections(set: &FoundSet) -> Option<Finding> {
    let mut namespaces: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for ListTarget { resource, namespace } in &set.unread {
        namespaces
            .entry(resource.group_resource())
            .or_default()
            .extend(namespace.as_deref());
    }
    if namespaces.is_empty() {
        return None;
    }
    let places: Vec<String> = namespaces
        .into_iter()
        .map(|(name, namespaces)| match &namespaces[..] {
            [] => name,
            _ => format!("{name} in {}", first_names_and_more(namespaces)),
        })
        .collect();
    let message = format!("members cannot be listed: {}", places.join("; "));
    Some(
        Finding::new(Rule::UnreadPlace, &set.identity, message)
            .with_hint("verify as a user who can list them"),
    )
}

/// Returns the kinds and namespaces of the members. Objects with a copied label are no members: otherwise, a controller
/// that mirrors Services would widen the record of every set with a Service.
pub(super) fn needed_record(set: &FoundSet, appliers: &BTreeSet<String>) -> Record {
    Record::from_members(
        present_members(set, appliers).map(|live| &live.key),
        &set.identity,
    )
}

/// Returns the members that are not being deleted.
pub(super) fn present_members<'s>(
    set: &'s FoundSet,
    appliers: &'s BTreeSet<String>,
) -> impl Iterator<Item = &'s Live> {
    set.members.iter().filter(|live| {
        live.presence == Presence::Present
            && reason_not_a_member(live, Some(&set.parent_uid), appliers).is_none()
    })
}

/// Returns the kinds and namespaces of all objects with the label. These include objects that are being deleted, and
/// objects with a copy of the label, which an apply finds and keeps.
pub(super) fn labeled_record(set: &FoundSet) -> Record {
    Record::from_members(set.members.iter().map(|live| &live.key), &set.identity)
}

impl FoundSet {
    /// Returns the status of the set, which its worst finding decides.
    pub fn status(&self, discovery: &Discovery) -> RecordStatus {
        match &self.reading {
            Reading::Parent(_) => {}
            Reading::Unfinished(_) => return RecordStatus::Unfinished,
            Reading::Unrecorded(_) => return RecordStatus::Unknown,
            Reading::NoRecord | Reading::Faulty(_) => return RecordStatus::Invalid,
        }
        check_record(self, discovery, &default_appliers())
            .iter()
            .map(|finding| match finding.rule {
                // The next run narrows the record by itself.
                Rule::RecordTooWide | Rule::UnservedKind => RecordStatus::Unfinished,
                Rule::UnreadPlace | Rule::UnknowableKind => RecordStatus::Unknown,
                _ => RecordStatus::Invalid,
            })
            .max_by_key(|status| match status {
                RecordStatus::Invalid => 3,
                RecordStatus::Unknown => 2,
                RecordStatus::Unfinished => 1,
                RecordStatus::Consistent => 0,
            })
            .unwrap_or(RecordStatus::Consistent)
    }

    /// Describes the kinds and namespaces that are recorded although no member is there, which makes a set unfinished;
    /// `None` without any.
    pub fn describe_unused_record(&self, discovery: &Discovery) -> Option<String> {
        let mut findings = check_record(self, discovery, &default_appliers()).into_iter();
        let finding = findings.find(|finding| finding.rule == Rule::RecordTooWide)?;
        Some(format!("{} (the next apply removes it)", finding.message))
    }

    /// Returns messages about inconsistencies of the record. Invalid records and collections that could not be listed
    /// are not among them: the caller reports these separately.
    pub fn describe_record_inconsistencies(&self, discovery: &Discovery) -> Vec<String> {
        check_record(self, discovery, &default_appliers())
            .into_iter()
            .filter(|finding| !matches!(finding.rule, Rule::RecordTooWide | Rule::UnreadPlace))
            .map(|finding| finding.message)
            .collect()
    }
}

/// Returns messages about inconsistencies of the records of these sets, each with its parent before it.
pub fn describe_record_inconsistencies_of_sets(sets: &[FoundSet], discovery: &Discovery) -> Vec<String> {
    let mut lines = Vec::new();
    for set in sets {
        for message in set.describe_record_inconsistencies(discovery) {
            lines.push(format!("{}: {message}", set.identity));
        }
        let invalid_expiry = set.expires.as_deref().and_then(describe_invalid_expiry);
        lines.extend(invalid_expiry.map(|message| format!("{}: {message}", set.identity)));
    }
    lines
}

/// Returns the field managers of kubectl and of this program.
fn default_appliers() -> BTreeSet<String> {
    APPLIERS.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{
        beside_a_run, discovery, examined, findings_and_repairs, found_rules, with_members,
    };
    use super::super::{ExaminedSet, Extent};
    use super::*;
    use crate::plan::fixtures::{live, resource};

    fn config_map(namespace: &str) -> Live {
        live("ConfigMap", Some(namespace), "one")
    }

    #[test]
    fn the_record_is_compared_with_what_there_is() {
        let copy = |namespace| Live {
            part_of_writers: vec!["controller".to_owned()],
            ..config_map(namespace)
        };
        let going = |namespace| Live {
            presence: Presence::Terminating,
            ..config_map(namespace)
        };
        let narrow = &["record-too-narrow+", "unrecorded-member+"][..];
        let set = |kinds: &[&str], namespaces: &[&str], members: &[Live]| {
            with_members(examined(kinds, namespaces), members)
        };
        let table: [(ExaminedSet, &[&str]); 10] = [
            (set(&[], &[], &[]), &[]),
            (set(&["ConfigMap"], &["away"], &[config_map("away")]), &[]),
            (set(&["ConfigMap"], &[], &[]), &["record-too-wide+"]),
            (
                set(&["ConfigMap"], &["away"], &[config_map("shop")]),
                &["record-too-wide+"],
            ),
            (set(&["ConfigMap"], &[], &[config_map("away")]), narrow),
            (set(&[], &[], &[live("Namespace", None, "one")]), narrow),
            // An object that is being deleted needs no record, and accounts for one.
            (
                set(&["ConfigMap"], &[], &[config_map("shop"), going("away")]),
                &[],
            ),
            (set(&["ConfigMap"], &["away"], &[going("away")]), &[]),
            // So does a copy.
            (
                set(&["ConfigMap"], &[], &[config_map("shop"), copy("away")]),
                &["label-copy"],
            ),
            (set(&["ConfigMap"], &["away"], &[copy("away")]), &["label-copy"]),
        ];
        for (place, (set, rules)) in table.into_iter().enumerate() {
            assert_eq!(found_rules(&set, Extent::Whole), rules, "case {place}");
        }
    }

    #[test]
    fn recorded_kinds_have_to_be_served() {
        let member = [config_map("shop")];
        let set = with_members(examined(&["ConfigMap", "Gone.example.com"], &[]), &member);
        assert_eq!(found_rules(&set, Extent::Whole), ["unserved-kind+"]);
        // Discovery succeeded and lacks it: other failures do not matter.
        assert_eq!(found_rules(&set, Extent::Part), ["unserved-kind+"]);
        // A run under way may have yet to create the CRD.
        let set = beside_a_run(set);
        assert_eq!(found_rules(&set, Extent::Whole), Vec::<String>::new());
    }

    #[test]
    fn a_cluster_scoped_parent_has_to_name_namespaces() {
        let homeless = |members: &[Live]| {
            let mut parent = examined(&["ConfigMap"], &[]).parent;
            parent.live.key.namespace = None;
            with_members(
                ExaminedSet::new(parent, super::super::ParentEligibility::Permitted),
                members,
            )
        };
        let found_rules = |members: &[Live], extent| found_rules(&homeless(members), extent);
        assert!(found_rules(&[], Extent::Part).contains(&"missing-namespaces".to_owned()));
        assert!(found_rules(&[], Extent::Whole).contains(&"missing-namespaces+".to_owned()));
        let rules = found_rules(&[config_map("shop")], Extent::Part);
        assert!(rules.contains(&"missing-namespaces+".to_owned()), "{rules:?}");
        assert!(rules.contains(&"unrecorded-member+".to_owned()), "{rules:?}");
    }

    #[test]
    fn nothing_is_concluded_from_what_was_not_seen() {
        let mut set = with_members(
            examined(&["ConfigMap", "Secret"], &["away"]),
            &[config_map("shop")],
        );
        assert_eq!(found_rules(&set, Extent::Whole), ["record-too-wide+"]);
        assert_eq!(
            set.found.describe_unused_record(&discovery()).as_deref(),
            Some("recorded, but without members: Secret, namespace away (the next apply removes it)")
        );
        // Another part of the cluster could not be read.
        assert_eq!(found_rules(&set, Extent::Part), ["record-too-wide"]);
        let [wide] = &findings_and_repairs(&set, Extent::Part).findings[..] else {
            panic!("no finding");
        };
        // A sound set may look so, too.
        assert!(wide.hint.starts_with("ignore it"), "{}", wide.hint);
        set.found.unread.push(ListTarget {
            resource: resource("Secret", Scope::Namespaced),
            namespace: Some("away".to_owned()),
        });
        assert_eq!(found_rules(&set, Extent::Part), ["unread-place"]);
    }
}
