//! The scope of a set: the recorded kinds and namespaces and those of the manifests, as resources to
//! list.
//!
//! A recorded kind that is gone has no members. A recorded kind whose objects cannot be listed stays in the record. A
//! recorded kind whose group cannot be discovered may have members that the run would not see, so it stops the run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;

use super::recorded_kinds::{RecordedKind, classify_recorded_kinds};
use super::{ParentStatus, Refusal};
use crate::cluster::discovery::{Discovery, KeptKind, KindLookup, ReasonToKeepKind};
use crate::error::Error;
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::applyset::Record;
use crate::model::applyset::parent::{ParentAnnotations, ParentFault};
use crate::model::identity::GroupKind;
use crate::model::list_targets::ListTargets;
use crate::model::resource::{Origin, Resource, Scope};
use crate::model::set::Set;

/// The scope of a set: everything that may hold its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberScope {
    /// The collections to read.
    pub places: ListTargets,
    /// The record of the parent without the kinds that are gone.
    pub recorded: Record,
    /// Recorded kinds that are gone and have no objects in the manifests.
    pub vanished: Vec<GroupKind>,
    /// Recorded kinds whose objects cannot be listed, and the reasons.
    pub kept: Vec<(GroupKind, ReasonToKeepKind)>,
    /// The record of the `kept` kinds, with every namespace that may hold their objects.
    pub record_to_keep: Record,
}

impl MemberScope {
    /// Returns the warnings about recorded kinds that the server does not list.
    ///
    /// If the set records CRDs, there are no warnings about kinds that are gone: the set has probably pruned their CRDs
    /// itself. The server deletes a CRD slowly, so its kind leaves the record only with the next run.
    pub fn describe_unlisted_recorded_kinds(&self) -> Vec<String> {
        let has_definitions = self
            .recorded
            .group_kinds
            .contains(&GroupKind::custom_resource_definition());
        let mut warnings = Vec::new();
        for kind in self.vanished.iter().filter(|_| !has_definitions) {
            warnings.push(format!(
                "kind {kind} is no longer served; a successful run removes it from the set's record"
            ));
        }
        for (kind, reason) in &self.kept {
            warnings.push(format!(
                "kind {kind} stays in the set's record: its objects cannot be listed: {reason}"
            ));
        }
        warnings
    }
}

/// Determines the scope of a set.
///
/// # Errors
///
/// The record names kinds that the server spells differently, or lacks namespaces for its kinds; or the group of a
/// recorded kind could not be discovered, or discovery does not list the kind although it may have objects.
pub fn determine_member_scope(
    set: &Set,
    parent_status: &ParentStatus,
    desired: &Desired,
    discovery: &Discovery,
) -> Result<MemberScope, Error> {
    let mut resources: Kinds = find_served_kinds_of_manifests(desired, discovery);
    let mut scope = MemberScope {
        places: ListTargets::default(),
        recorded: Record::default(),
        vanished: Vec::new(),
        kept: Vec::new(),
        record_to_keep: Record::default(),
    };
    if let ParentStatus::Recorded(applyset_record) = parent_status {
        let kinds = separate_served_kinds(set, applyset_record, discovery, &mut scope)?;
        let kept_kinds = scope.kept.iter().map(|(kind, _)| kind.clone());
        scope.recorded.group_kinds = kinds.keys().cloned().chain(kept_kinds.clone()).collect();
        if !scope.kept.is_empty() {
            scope.record_to_keep = Record {
                group_kinds: kept_kinds.collect(),
                additional_namespaces: applyset_record.additional_namespaces.clone(),
            };
        }
        scope
            .recorded
            .additional_namespaces
            .clone_from(&applyset_record.additional_namespaces);
        scope.vanished.retain(|kind| {
            !desired
                .members
                .iter()
                .any(|member| member.key.group_kind == *kind)
        });
        check_record_has_namespaces(set, &kinds, applyset_record)?;
        for (kind, resource) in kinds {
            resources.entry(kind).or_insert(resource);
        }
    }
    scope.places.namespaces = list_namespaces(set, desired, &scope.recorded.additional_namespaces);
    scope.places.resources = resources.into_values().collect();
    Ok(scope)
}

type Kinds = BTreeMap<GroupKind, Arc<Resource>>;

/// Returns the kinds of the manifests that the server serves already, each in the version of its
/// manifests: only objects of that version can be compared with the manifests.
fn find_served_kinds_of_manifests(desired: &Desired, discovery: &Discovery) -> Kinds {
    let mut kinds = Kinds::new();
    // Kinds of manifests in a version that the server does not serve yet. It may serve another version.
    let mut not_yet_served: BTreeSet<&GroupKind> = BTreeSet::new();
    for DesiredObject { key, resource, .. } in &desired.members {
        if resource.origin == Origin::Served {
            kinds
                .entry(key.group_kind.clone())
                .or_insert_with(|| Arc::clone(resource));
        } else {
            not_yet_served.insert(&key.group_kind);
        }
    }
    for kind in not_yet_served {
        if let KindLookup::Found(resource) = discovery.find_preferred(kind)
            && resource.origin == Origin::Served
        {
            kinds
                .entry(kind.clone())
                .or_insert_with(|| Arc::new(resource.clone()));
        }
    }
    kinds
}

/// Returns the recorded kinds that the server serves. Adds the others to `scope`, as vanished or kept.
fn separate_served_kinds(
    set: &Set,
    applyset_record: &ParentAnnotations,
    discovery: &Discovery,
    scope: &mut MemberScope,
) -> Result<Kinds, Error> {
    let mut served = Kinds::new();
    let mut faults = Vec::new();
    for (name, entry) in classify_recorded_kinds(&applyset_record.kinds, discovery) {
        match entry {
            RecordedKind::Served(resource) => {
                let resource = Arc::new(resource.clone());
                served.insert(resource.group_kind(), resource);
            }
            RecordedKind::Gone => scope.vanished.push(name),
            RecordedKind::Kept(KeptKind {
                kind: Some(kind),
                reason,
            }) => scope.kept.push((kind.clone(), reason.clone())),
            // This record of the deprecated form names a resource, and its kind is not known. It cannot be kept,
            // because the run writes a record that names kinds.
            RecordedKind::Kept(KeptKind { kind: None, reason }) => {
                return Err(kind_not_listed_error(&name, reason));
            }
            RecordedKind::UnexpectedlyMissing(Some(expected)) => {
                return Err(kind_not_listed_error(&name, expected));
            }
            RecordedKind::UnexpectedlyMissing(None) => {
                return Err(kind_not_listed_error(&name, &"discovery does not list it"));
            }
            RecordedKind::Misspelled(resource) => faults.push(ParentFault::MisspelledKind {
                entry: name.to_string(),
                meant: resource.group_kind().to_string(),
            }),
            RecordedKind::Unknowable(failure) => {
                return Err(Error::for_undiscoverable_kind(format!(
                    "kind {name}: recorded, and cannot determine whether the server has it: {failure}"
                )));
            }
        }
    }
    if faults.is_empty() {
        Ok(served)
    } else {
        Err(refuse_record(set, faults))
    }
}

fn kind_not_listed_error(kind: &GroupKind, reason: &dyn Display) -> Error {
    Error::for_kind_not_served(format!(
        "kind {kind}: recorded, and its objects cannot be listed: {reason}"
    ))
}

/// Refuses the record of a cluster-scoped parent that has namespaced kinds and no namespaces.
fn check_record_has_namespaces(
    set: &Set,
    kinds: &Kinds,
    applyset_record: &ParentAnnotations,
) -> Result<(), Error> {
    if set.parent.namespace.is_some() || !applyset_record.additional_namespaces.is_empty() {
        return Ok(());
    }
    let faults: Vec<ParentFault> = kinds
        .iter()
        .filter(|(_, resource)| resource.scope == Scope::Namespaced)
        .map(|(kind, _)| ParentFault::NoNamespaceFor(kind.clone()))
        .collect();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(refuse_record(set, faults))
    }
}

fn refuse_record(set: &Set, faults: Vec<ParentFault>) -> Error {
    let refusals: Vec<Refusal> = faults
        .into_iter()
        .map(|fault| Refusal::FaultyParent {
            parent: set.parent.clone(),
            fault,
        })
        .collect();
    Refusal::error(&refusals)
}

/// Returns the namespaces of the record, the parent and the manifests.
pub(super) fn list_namespaces(set: &Set, desired: &Desired, recorded: &BTreeSet<String>) -> BTreeSet<String> {
    let of_manifests = desired
        .members
        .iter()
        .filter_map(|member| member.key.namespace.clone());
    recorded
        .iter()
        .cloned()
        .chain(set.parent.namespace.clone())
        .chain(of_manifests)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::discovery::{MissingKind, ReasonToExpectKind};
    use crate::error::ErrorKind;
    use crate::model::applyset::Tooling;
    use crate::model::applyset::parent::RecordedKinds as Kinds;
    use crate::plan::fixtures::{desired, resource, set};

    /// Lists ConfigMaps, Namespaces and Widgets. `Gone` is gone, `Stuck` serves no version, and
    /// `Late` is about to be served.
    fn discovery() -> Discovery {
        let served = [
            ("ConfigMap", Scope::Namespaced),
            ("Namespace", Scope::Cluster),
            ("Widget.example.com", Scope::Namespaced),
        ];
        let served = served.map(|(kind, scope)| (*resource(kind, scope)).clone());
        let mut discovery = Discovery::from_resources(served.to_vec());
        let stuck = KeptKind {
            kind: Some(kind("Stuck.example.com")),
            reason: ReasonToKeepKind::NoVersionServed("stucks.example.com".to_owned()),
        };
        let late = ReasonToExpectKind::Defined("lates.example.com".to_owned());
        discovery.set_missing_kinds(BTreeMap::from([
            (kind("Gone.example.com"), MissingKind::Gone),
            (kind("Stuck.example.com"), MissingKind::Kept(stuck)),
            (kind("Late.example.com"), MissingKind::Expected(late)),
        ]));
        discovery
    }

    fn kind(text: &str) -> GroupKind {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        GroupKind::new(group, kind)
    }

    fn recorded(kinds: &[&str], namespaces: &[&str]) -> ParentStatus {
        ParentStatus::Recorded(ParentAnnotations {
            tooling: Tooling::this_program(),
            kinds: Kinds::GroupKinds(kinds.iter().map(|text| kind(text)).collect()),
            additional_namespaces: texts(namespaces),
        })
    }

    fn texts(texts: &[&str]) -> BTreeSet<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    fn manifests(objects: &[(&str, Option<&str>)]) -> Desired {
        let members = objects.iter();
        Desired {
            members: members
                .map(|(kind, namespace)| desired(kind, *namespace, "a"))
                .collect(),
            ..Desired::default()
        }
    }

    fn scope_of(parent_status: &ParentStatus, desired: &Desired) -> Result<MemberScope, Error> {
        determine_member_scope(&set(), parent_status, desired, &discovery())
    }

    #[test]
    fn the_scope_is_the_union_of_the_record_and_the_manifests() {
        type Case = (
            ParentStatus,
            &'static [(&'static str, Option<&'static str>)],
            &'static [&'static str],
            &'static [&'static str],
        );
        let table: [Case; 5] = [
            (ParentStatus::New, &[], &[], &["shop"]),
            (
                ParentStatus::New,
                &[("ConfigMap", Some("a"))],
                &["ConfigMap"],
                &["a", "shop"],
            ),
            (
                recorded(&["ConfigMap"], &["b"]),
                &[],
                &["ConfigMap"],
                &["b", "shop"],
            ),
            (
                recorded(&["ConfigMap"], &["b"]),
                &[("Widget.example.com", Some("a")), ("Namespace", None)],
                &["ConfigMap", "Namespace", "Widget.example.com"],
                &["a", "b", "shop"],
            ),
            // A kind that is gone, and one that cannot be listed, are in no list.
            (
                recorded(&["ConfigMap", "Gone.example.com", "Stuck.example.com"], &["b"]),
                &[],
                &["ConfigMap"],
                &["b", "shop"],
            ),
        ];
        for (parent_status, objects, kinds, namespaces) in table {
            let found = scope_of(&parent_status, &manifests(objects)).expect("a scope");
            let listed = found.places.resources.iter();
            let listed: BTreeSet<String> = listed.map(|resource| resource.group_kind().to_string()).collect();
            assert_eq!(listed, texts(kinds), "{parent_status:?}");
            assert_eq!(found.places.namespaces, texts(namespaces), "{parent_status:?}");
        }
    }

    #[test]
    fn kinds_that_cannot_be_listed_stay_recorded_and_those_that_are_gone_do_not() {
        let parent_status = recorded(&["ConfigMap", "Gone.example.com", "Stuck.example.com"], &["b"]);
        let found = scope_of(&parent_status, &Desired::default()).expect("a scope");
        assert_eq!(found.vanished, [kind("Gone.example.com")]);
        let kinds = ["ConfigMap", "Stuck.example.com"].map(kind);
        assert_eq!(found.recorded.group_kinds, kinds.into());
        assert_eq!(
            found.record_to_keep.group_kinds,
            [kind("Stuck.example.com")].into()
        );
        assert_eq!(found.record_to_keep.additional_namespaces, texts(&["b"]));
        assert_eq!(found.describe_unlisted_recorded_kinds().len(), 2);
        // Manifests that bring the kind again do not let it vanish.
        let again = manifests(&[("Gone.example.com", Some("shop"))]);
        assert_eq!(scope_of(&parent_status, &again).expect("a scope").vanished, []);
    }

    #[test]
    fn nothing_is_concluded_from_a_kind_that_the_server_does_not_answer_for() {
        for recorded_kind in ["Late.example.com", "Unheard.example.com"] {
            let parent_status = recorded(&[recorded_kind], &[]);
            let found = scope_of(&parent_status, &Desired::default());
            let text = found.expect_err(recorded_kind).to_string();
            assert!(
                text.contains("recorded, and its objects cannot be listed"),
                "{text}"
            );
        }
        let misspelled = scope_of(&recorded(&["configmaps"], &[]), &Desired::default());
        let kind = misspelled.err().map(|error| error.kind);
        assert_eq!(kind, Some(ErrorKind::Refused));
    }

    #[test]
    fn namespaced_kinds_of_a_parent_without_a_namespace_need_a_recorded_one() {
        let mut set = set();
        set.parent.namespace = None;
        for (namespaces, is_known) in [(&[][..], false), (&["b"], true)] {
            let parent_status = recorded(&["ConfigMap"], namespaces);
            let found = determine_member_scope(&set, &parent_status, &Desired::default(), &discovery());
            assert_eq!(found.is_ok(), is_known, "{namespaces:?}");
        }
    }
}
