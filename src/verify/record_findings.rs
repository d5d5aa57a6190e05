//! Rules about the record of a parent: it names exactly what the members need, and its kinds are
//! served. `verify`, `list` and `view` use them.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::finding_rules::Rule;
use super::recorded_scope::{labeled_record, needed_record, served_record};
use crate::cluster::discovery::Discovery;
use crate::model::applyset::Record;
use crate::model::applyset::parent::{ApplySetRecord, ParentFault};
use crate::model::resource::Scope;
use crate::model::text::listed;
use crate::plan::recorded_kinds::RecordedKind;
use crate::read::ListTarget;
use crate::read::found_set::{FoundSet, entries};

/// Applies the rules to the record; there are no findings for one that cannot be read.
///
/// `appliers` are the field managers whose part-of labels make an object a member.
pub(super) fn findings(set: &FoundSet, discovery: &Discovery, appliers: &BTreeSet<String>) -> Vec<Finding> {
    let Some(applyset_record) = set.recorded() else {
        return Vec::new();
    };
    let mut findings: Vec<Finding> = entries(applyset_record, discovery)
        .into_iter()
        .filter_map(|(name, entry)| finding_of_entry(set, applyset_record, &name, entry))
        .collect();
    let is_knowable = findings
        .iter()
        .all(|finding| finding.rule != Rule::UnknowableKind);
    let recorded = served_record(applyset_record, discovery);
    findings.extend(too_narrow(set, &recorded, &needed_record(set, appliers)));
    findings.extend(unread(set));
    if is_knowable && set.unread.is_empty() {
        findings.extend(too_wide(set, &recorded));
    }
    findings
}

fn finding_of_entry(
    set: &FoundSet,
    applyset_record: &ApplySetRecord,
    name: &str,
    entry: RecordedKind<'_>,
) -> Option<Finding> {
    let key = &set.identity;
    let has_no_namespace = key.namespace.is_none() && applyset_record.additional_namespaces.is_empty();
    match entry {
        RecordedKind::Kept(kept) => {
            let message = format!(
                "recorded kind {name}: its members cannot be listed: {}",
                kept.reason
            );
            Some(
                Finding::new(Rule::UnknowableKind, key, message)
                    .hint("fix or delete its CustomResourceDefinition, or ask for the permission"),
            )
        }
        RecordedKind::UnexpectedlyMissing(expected) => {
            let reason =
                expected.map_or_else(|| "discovery does not list it".to_owned(), ToString::to_string);
            let message = format!("recorded kind {name}: its members cannot be listed: {reason}");
            Some(
                Finding::new(Rule::UnknowableKind, key, message)
                    .hint("run the same command again; `kubectl api-resources` shows which kinds are served"),
            )
        }
        RecordedKind::Gone => {
            let message = format!("recorded kind {name}: not served by the cluster");
            Some(
                Finding::new(Rule::UnservedKind, key, message)
                    .hint("apply the set again: the next apply removes it from the record"),
            )
        }
        RecordedKind::Unknowable(failure) => {
            let message = format!("recorded kind {name}: its members cannot be listed: {failure}");
            Some(
                Finding::new(Rule::UnknowableKind, key, message)
                    .hint("restore the API that `kubectl get apiservices` shows as unavailable"),
            )
        }
        RecordedKind::Misspelled(resource) => {
            let fault = ParentFault::MisspelledKind {
                entry: name.to_owned(),
                meant: resource.group_kind().to_string(),
            };
            Some(
                Finding::new(Rule::MalformedValue, key, fault.to_string())
                    .hint("fix the entry; apply is refused until then"),
            )
        }
        RecordedKind::Served(resource) if has_no_namespace && resource.scope == Scope::Namespaced => {
            let fault = ParentFault::NoNamespaceFor(resource.group_kind());
            Some(
                Finding::new(Rule::MissingNamespaces, key, fault.to_string())
                    .hint("restore it from a backup, or verify as a user who can list everything"),
            )
        }
        RecordedKind::Served(_) => None,
    }
}

fn too_narrow(set: &FoundSet, recorded: &Record, needed: &Record) -> Option<Finding> {
    let missing = names_beyond(needed, recorded);
    (!missing.is_empty()).then(|| {
        let message = format!("members outside the record: {missing}");
        Finding::new(Rule::RecordTooNarrow, &set.identity, message)
            .hint("record their kinds with --fix, and their namespaces with --fix --include-namespaces")
    })
}

/// A run under way has recorded what it is about to write.
fn too_wide(set: &FoundSet, recorded: &Record) -> Option<Finding> {
    if set.running.iter().any(|run| !run.takes_out) {
        return None;
    }
    let unused = names_beyond(recorded, &labeled_record(set));
    (!unused.is_empty()).then(|| {
        let message = format!("recorded, but without members: {unused}");
        Finding::new(Rule::RecordTooWide, &set.identity, message)
            .hint("ignore it, or apply the set again, which narrows the record unless an object there lost its label")
    })
}

/// Lists the kinds and namespaces of the one record that the other lacks.
fn names_beyond(one: &Record, other: &Record) -> String {
    let kinds = one.group_kinds.difference(&other.group_kinds);
    let namespaces = one.additional_namespaces.difference(&other.additional_namespaces);
    let mut names: Vec<String> = kinds.map(ToString::to_string).collect();
    names.extend(namespaces.map(|namespace| format!("namespace {namespace}")));
    listed(names)
}

fn unread(set: &FoundSet) -> Option<Finding> {
    let mut namespaces: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for ListTarget { resource, namespace } in &set.unread {
        let of_resource = namespaces.entry(resource.group_resource()).or_default();
        of_resource.extend(namespace.as_deref());
    }
    if namespaces.is_empty() {
        return None;
    }
    let places: Vec<String> = namespaces
        .into_iter()
        .map(|(name, namespaces)| match &namespaces[..] {
            [] => name,
            _ => format!("{name} in {}", listed(namespaces)),
        })
        .collect();
    let message = format!("members cannot be listed: {}", places.join("; "));
    Some(Finding::new(Rule::UnreadPlace, &set.identity, message).hint("verify as a user who can list them"))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{examined, found_rules, verdict, with_members};
    use super::super::{Examined, Extent};
    use super::*;
    use crate::model::live::{Live, Presence};
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
        let found_rules = |members: &[Live], extent| found_rules(&homeless(members), extent);
        assert!(found_rules(&[], Extent::Part).contains(&"missing-namespaces".to_owned()));
        assert!(found_rules(&[], Extent::Whole).contains(&"missing-namespaces+".to_owned()));
        let seen = found_rules(&[config_map("shop")], Extent::Part);
        assert!(seen.contains(&"missing-namespaces+".to_owned()), "{seen:?}");
        assert!(seen.contains(&"unrecorded-member+".to_owned()), "{seen:?}");
    }

    #[test]
    fn nothing_is_concluded_from_what_was_not_seen() {
        let mut set = with_members(
            examined(&["ConfigMap", "Secret"], &["away"]),
            &[config_map("shop")],
        );
        assert_eq!(found_rules(&set, Extent::Whole), ["record-too-wide+"]);
        // Another part of the cluster could not be read.
        assert_eq!(found_rules(&set, Extent::Part), ["record-too-wide"]);
        let [wide] = &verdict(&set, Extent::Part).findings[..] else {
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
