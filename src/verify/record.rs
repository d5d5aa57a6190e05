//! Whether the record of a parent is exactly what its members need, and whether its kinds
//! are served: the one judgement of a record, for `verify`, `list` and `view`.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Finding, Rule};
use crate::cluster::discovery::Discovery;
use crate::compare::ownership::APPLIERS;
use crate::model::applyset::Record;
use crate::model::applyset::parent::{Bookkeeping, ParentFault, Reading};
use crate::model::live::{Live, Presence};
use crate::model::resource::Scope;
use crate::model::text::listed;
use crate::plan::copied;
use crate::read::Place;
use crate::read::inspect::{FoundSet, Status, entries};
use crate::read::recorded_kinds::Entry;

/// Judges the record; nothing is said of one that cannot be read.
///
/// `appliers` are the field managers whose part-of labels make members.
pub(super) fn findings(set: &FoundSet, discovery: &Discovery, appliers: &BTreeSet<String>) -> Vec<Finding> {
    let Some(bookkeeping) = set.bookkeeping() else {
        return Vec::new();
    };
    let mut findings: Vec<Finding> = entries(bookkeeping, discovery)
        .into_iter()
        .filter_map(|(name, entry)| of_entry(set, bookkeeping, &name, entry))
        .collect();
    let is_knowable = findings
        .iter()
        .all(|finding| finding.rule != Rule::UnknowableKind);
    let recorded = served(bookkeeping, discovery);
    findings.extend(too_narrow(set, &recorded, &needed(set, appliers)));
    findings.extend(unread(set));
    if is_knowable && set.unread.is_empty() {
        findings.extend(too_wide(set, &recorded));
    }
    findings
}

impl FoundSet {
    /// In what state it is.
    pub fn status(&self, discovery: &Discovery) -> Status {
        match &self.reading {
            Reading::Parent(_) => {}
            Reading::Unfinished(_) => return Status::Unfinished,
            Reading::NoBookkeeping | Reading::Faulty(_) => return Status::InDoubt,
        }
        let findings = findings(self, discovery, &appliers());
        if findings.is_empty() {
            Status::Consistent
        } else if findings.iter().all(|finding| finding.rule == Rule::RecordTooWide) {
            Status::Unfinished
        } else {
            Status::InDoubt
        }
    }

    /// What speaks against the record, in words; collections that could not be read, and
    /// faults of the bookkeeping, are not told again.
    pub fn doubts(&self, discovery: &Discovery) -> Vec<String> {
        findings(self, discovery, &appliers())
            .into_iter()
            .filter(|finding| !matches!(finding.rule, Rule::RecordTooWide | Rule::UnreadPlace))
            .map(|finding| finding.message)
            .collect()
    }
}

fn appliers() -> BTreeSet<String> {
    APPLIERS.into_iter().map(str::to_owned).collect()
}

/// The recorded places, the kinds as they are served; what is not served holds nothing.
pub(super) fn served(bookkeeping: &Bookkeeping, discovery: &Discovery) -> Record {
    let kinds = entries(bookkeeping, discovery).into_iter();
    Record {
        group_kinds: kinds
            .filter_map(|(_, entry)| match entry {
                Entry::Served(resource) | Entry::Misspelled(resource) => Some(resource.group_kind()),
                Entry::Gone | Entry::Kept(_) | Entry::Unlisted(_) | Entry::Unknowable(_) => None,
            })
            .collect(),
        additional_namespaces: bookkeeping.additional_namespaces.clone(),
    }
}

/// The record that the members need. Copies of the label make no members: a controller
/// that mirrors a Service would otherwise widen the record of every set that has one.
pub(super) fn needed(set: &FoundSet, appliers: &BTreeSet<String>) -> Record {
    Record::of(members(set, appliers).map(|live| &live.key), &set.identity)
}

/// The members that are there to stay.
pub(super) fn members<'s>(
    set: &'s FoundSet,
    appliers: &'s BTreeSet<String>,
) -> impl Iterator<Item = &'s Live> {
    set.members.iter().filter(|live| {
        live.presence == Presence::Present && copied(live, Some(&set.parent_uid), appliers).is_none()
    })
}

/// The record that everything with the label accounts for: what is on its way out until
/// it is gone, and copies, which an apply finds and keeps in their set.
pub(super) fn accounted(set: &FoundSet) -> Record {
    Record::of(set.members.iter().map(|live| &live.key), &set.identity)
}

fn of_entry(set: &FoundSet, bookkeeping: &Bookkeeping, name: &str, entry: Entry<'_>) -> Option<Finding> {
    let key = &set.identity;
    let has_no_namespace = key.namespace.is_none() && bookkeeping.additional_namespaces.is_empty();
    match entry {
        Entry::Kept(kept) => {
            let message = format!(
                "recorded kind {name}: its members cannot be listed: {}",
                kept.reason
            );
            Some(
                Finding::new(Rule::UnknowableKind, key, message)
                    .hint("fix or delete its CustomResourceDefinition, or ask for the permission; the kind stays recorded until then"),
            )
        }
        Entry::Unlisted(expected) => {
            let reason =
                expected.map_or_else(|| "discovery does not list it".to_owned(), ToString::to_string);
            let message = format!("recorded kind {name}: its members cannot be listed: {reason}");
            Some(
                Finding::new(Rule::UnknowableKind, key, message)
                    .hint("run the same command again; `kubectl api-resources` shows which kinds are served"),
            )
        }
        Entry::Gone => {
            let message = format!("the recorded kind {name} is not served by the cluster");
            Some(
                Finding::new(Rule::UnservedKind, key, message)
                    .hint("the next apply drops it from the record, with a warning"),
            )
        }
        Entry::Unknowable(failure) => {
            let message = format!("members of the recorded kind {name} could not be looked for: {failure}");
            Some(
                Finding::new(Rule::UnknowableKind, key, message)
                    .hint("`kubectl get apiservices` shows which API is down"),
            )
        }
        Entry::Misspelled(resource) => {
            let fault = ParentFault::MisspelledKind {
                entry: name.to_owned(),
                meant: resource.group_kind().to_string(),
            };
            Some(
                Finding::new(Rule::MalformedValue, key, fault.to_string())
                    .hint("no apply works on the set until the entry is put right"),
            )
        }
        Entry::Served(resource) if has_no_namespace && resource.scope == Scope::Namespaced => {
            let fault = ParentFault::NoNamespaceFor(resource.group_kind());
            Some(
                Finding::new(Rule::MissingNamespaces, key, fault.to_string())
                    .hint("compare it with a backup: where members are is not recorded any more"),
            )
        }
        Entry::Served(_) => None,
    }
}

fn too_narrow(set: &FoundSet, recorded: &Record, needed: &Record) -> Option<Finding> {
    let missing = names_beyond(needed, recorded);
    (!missing.is_empty()).then(|| {
        let message = format!("there are members outside the record: {missing}");
        Finding::new(Rule::RecordTooNarrow, &set.identity, message)
            .hint("record their kinds with --fix, and their namespaces with --fix --include-namespaces")
    })
}

fn too_wide(set: &FoundSet, recorded: &Record) -> Option<Finding> {
    let unused = names_beyond(recorded, &accounted(set));
    (!unused.is_empty()).then(|| {
        let message = format!("the record names places without members: {unused}");
        Finding::new(Rule::RecordTooWide, &set.identity, message).hint(
            "a run was interrupted or failed, or the last members there were deleted since, as Jobs \
                 delete themselves; the next apply that succeeds narrows it",
        )
    })
}

/// What the one record names and the other does not.
fn names_beyond(one: &Record, other: &Record) -> String {
    let kinds = one.group_kinds.difference(&other.group_kinds);
    let kinds = kinds.map(ToString::to_string);
    let namespaces = one.additional_namespaces.difference(&other.additional_namespaces);
    let namespaces = namespaces.map(|namespace| format!("namespace {namespace}"));
    listed(kinds.chain(namespaces))
}

fn unread(set: &FoundSet) -> Option<Finding> {
    let mut namespaces: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for Place { resource, namespace } in &set.unread {
        let of_resource = namespaces.entry(resource.group_resource()).or_default();
        of_resource.extend(namespace.as_deref());
    }
    if namespaces.is_empty() {
        return None;
    }
    let places = namespaces
        .into_iter()
        .map(|(name, namespaces)| match &namespaces[..] {
            [] => name,
            _ => format!("{name} in {}", listed(namespaces)),
        });
    let places: Vec<String> = places.collect();
    let message = format!("members could not be looked for among {}", places.join("; "));
    Some(
        Finding::new(Rule::UnreadPlace, &set.identity, message).hint(
            "have it verified by somebody who may list them; nothing is concluded from what was not seen",
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{examined, told, verdict, with_members};
    use super::super::{Examined, Extent};
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
        let table: [(Examined, &[&str]); 10] = [
            (set(&[], &[], &[]), &[]),
            (set(&["ConfigMap"], &["away"], &[config_map("away")]), &[]),
            (set(&["ConfigMap"], &[], &[]), &["record-too-wide+"]),
            (
                set(&["ConfigMap"], &["away"], &[config_map("shop")]),
                &["record-too-wide+"],
            ),
            (set(&["ConfigMap"], &[], &[config_map("away")]), narrow),
            (set(&[], &[], &[live("Namespace", None, "one")]), narrow),
            // What is going needs no record, and accounts for one.
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
            assert_eq!(told(&set, Extent::Whole), rules, "case {place}");
        }
    }

    #[test]
    fn recorded_kinds_have_to_be_served() {
        let member = [config_map("shop")];
        let set = with_members(examined(&["ConfigMap", "Gone.example.com"], &[]), &member);
        assert_eq!(told(&set, Extent::Whole), ["unserved-kind+"]);
        // The server was heard, and lacks it: what else could not be looked at says nothing.
        assert_eq!(told(&set, Extent::Part), ["unserved-kind+"]);
    }

    #[test]
    fn a_cluster_scoped_parent_has_to_name_namespaces() {
        let homeless = |members: &[Live]| {
            let mut parent = examined(&["ConfigMap"], &[]).parent;
            parent.identity.namespace = None;
            with_members(
                Examined::new(parent, super::super::ParentKind::Permitted),
                members,
            )
        };
        let told = |members: &[Live], extent| told(&homeless(members), extent);
        assert!(told(&[], Extent::Part).contains(&"missing-namespaces".to_owned()));
        assert!(told(&[], Extent::Whole).contains(&"missing-namespaces+".to_owned()));
        let seen = told(&[config_map("shop")], Extent::Part);
        assert!(seen.contains(&"missing-namespaces+".to_owned()), "{seen:?}");
        assert!(seen.contains(&"unrecorded-member+".to_owned()), "{seen:?}");
    }

    #[test]
    fn nothing_is_concluded_from_what_was_not_seen() {
        let mut set = with_members(
            examined(&["ConfigMap", "Secret"], &["away"]),
            &[config_map("shop")],
        );
        assert_eq!(told(&set, Extent::Whole), ["record-too-wide+"]);
        // Elsewhere in the cluster something is hidden.
        assert_eq!(told(&set, Extent::Part), ["record-too-wide"]);
        let [wide] = &verdict(&set, Extent::Part).findings[..] else {
            panic!("no finding");
        };
        // A sound set may look so, too.
        assert!(wide.hint.contains("were deleted since"), "{}", wide.hint);
        set.found.unread.push(Place {
            resource: resource("Secret", Scope::Namespaced),
            namespace: Some("away".to_owned()),
        });
        assert_eq!(told(&set, Extent::Part), ["unread-place"]);
    }
}
