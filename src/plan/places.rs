//! Where members may be: the recorded kinds and namespaces and those of the
//! manifests, turned into resources that can be listed.
//!
//! A recorded kind that the server positively lacks holds no members. One of which
//! the server could not tell may hold some, and stops the run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Refusal, Set, Standing};
use crate::applyset::Record;
use crate::applyset::parent::{Bookkeeping, ParentFault};
use crate::desired::{Desired, DesiredObject};
use crate::discovery::{Discovery, FailedVersion, KindLookup, Origin, Resource, Scope};
use crate::identity::GroupKind;
use crate::observe::Places;
use crate::recorded::{Entry, entries};

/// Where a set's members may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// The collections to read.
    pub places: Places,
    /// What the parent records, without the kinds that vanished.
    pub recorded: Record,
    /// Recorded kinds that the server does not have any more.
    pub vanished: Vec<GroupKind>,
}

/// Why it cannot be told where members may be.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// The record is wrong in a way that only the server's kinds bring to light.
    #[error("the set's record cannot be trusted")]
    Refused(Vec<Refusal>),
    /// A recorded kind whose group could not be discovered.
    #[error(
        "the set may hold objects of kind {kind}, and whether the server has it could not be found out: {failure}"
    )]
    KindUnknowable {
        /// The recorded kind.
        kind: String,
        /// What the server said.
        failure: FailedVersion,
    },
}

/// Finds the places to look in.
pub fn survey(
    set: &Set,
    standing: &Standing,
    desired: &Desired,
    discovery: &Discovery,
) -> Result<Survey, SurveyError> {
    let mut resources: BTreeMap<GroupKind, Arc<Resource>> = listable_kinds(desired, discovery);
    let mut survey = Survey {
        places: Places::default(),
        recorded: Record::default(),
        vanished: Vec::new(),
    };
    if let Standing::Recorded(bookkeeping) = standing {
        let (kinds, vanished) = recorded_kinds(set, bookkeeping, discovery)?;
        survey.recorded.group_kinds = kinds.keys().cloned().collect();
        survey
            .recorded
            .additional_namespaces
            .clone_from(&bookkeeping.additional_namespaces);
        survey.vanished = vanished;
        check_namespaces(set, &kinds, bookkeeping)?;
        for (kind, resource) in kinds {
            resources.entry(kind).or_insert(resource);
        }
    }
    survey.places.namespaces = namespaces(set, desired, &survey.recorded);
    survey.places.resources = resources.into_values().collect();
    Ok(survey)
}

/// The kinds of the manifests that the server has already, each in the version of its
/// manifests, because only that version can be compared with them.
fn listable_kinds(desired: &Desired, discovery: &Discovery) -> BTreeMap<GroupKind, Arc<Resource>> {
    let mut kinds: BTreeMap<GroupKind, Arc<Resource>> = BTreeMap::new();
    let mut promised: BTreeSet<&GroupKind> = BTreeSet::new();
    for DesiredObject { key, resource, .. } in &desired.members {
        if resource.origin == Origin::Served {
            kinds
                .entry(key.group_kind.clone())
                .or_insert_with(|| Arc::clone(resource));
        } else {
            promised.insert(&key.group_kind);
        }
    }
    for kind in promised {
        if let KindLookup::Found(resource) = discovery.preferred(kind)
            && resource.origin == Origin::Served
        {
            kinds
                .entry(kind.clone())
                .or_insert_with(|| Arc::new(resource.clone()));
        }
    }
    kinds
}

type Kinds = BTreeMap<GroupKind, Arc<Resource>>;

fn recorded_kinds(
    set: &Set,
    bookkeeping: &Bookkeeping,
    discovery: &Discovery,
) -> Result<(Kinds, Vec<GroupKind>), SurveyError> {
    let mut kinds = Kinds::new();
    let mut vanished = Vec::new();
    let mut faults = Vec::new();
    for (name, entry) in entries(&bookkeeping.kinds, discovery) {
        match entry {
            Entry::Served(resource) => {
                kinds.insert(resource.group_kind(), Arc::new(resource.clone()));
            }
            Entry::Absent => vanished.push(name),
            Entry::Misspelled(resource) => faults.push(ParentFault::MisspelledKind {
                entry: name.to_string(),
                meant: resource.group_kind().to_string(),
            }),
            Entry::Unknowable(failure) => {
                return Err(SurveyError::KindUnknowable {
                    kind: name.to_string(),
                    failure: failure.clone(),
                });
            }
        }
    }
    if faults.is_empty() {
        Ok((kinds, vanished))
    } else {
        Err(refused(set, faults))
    }
}

fn check_namespaces(set: &Set, kinds: &Kinds, bookkeeping: &Bookkeeping) -> Result<(), SurveyError> {
    if set.parent.namespace.is_some() || !bookkeeping.additional_namespaces.is_empty() {
        return Ok(());
    }
    let homeless: Vec<ParentFault> = kinds
        .iter()
        .filter(|(_, resource)| resource.scope == Scope::Namespaced)
        .map(|(kind, _)| ParentFault::NoNamespaceFor(kind.clone()))
        .collect();
    if homeless.is_empty() {
        Ok(())
    } else {
        Err(refused(set, homeless))
    }
}

fn refused(set: &Set, faults: Vec<ParentFault>) -> SurveyError {
    SurveyError::Refused(
        faults
            .into_iter()
            .map(|fault| Refusal::FaultyParent {
                parent: set.parent.clone(),
                fault,
            })
            .collect(),
    )
}

fn namespaces(set: &Set, desired: &Desired, recorded: &Record) -> BTreeSet<String> {
    let wanted = desired
        .members
        .iter()
        .filter_map(|member| member.key.namespace.clone());
    recorded
        .additional_namespaces
        .iter()
        .cloned()
        .chain(set.parent.namespace.clone())
        .chain(wanted)
        .collect()
}
