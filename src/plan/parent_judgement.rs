//! The judgement of a parent before a run writes its set: it is a parent, its ApplySet metadata are valid,
//! and this program manages it or takes it over.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Refusal;
use crate::model::applyset::Tooling;
use crate::model::applyset::parent::{ApplySetRecord, Reading, RecordedKinds};
use crate::model::identity::GroupKind;
use crate::model::live::Presence;
use crate::model::parent_object::ParentObject;
use crate::model::set::Set;

/// The consent of the user with regard to the parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParentPolicy {
    /// Consent to take a set of another tool, or to make an object a parent.
    pub take_over: Confirmation,
}

/// The consent of the user to something dangerous, given by a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Confirmation {
    /// Not given.
    Missing,
    /// Given.
    Given,
}

/// A parent that this run may write, as far as it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentStatus {
    /// It does not exist, or has no record.
    New,
    /// It records a set.
    Recorded(ApplySetRecord),
}

impl ParentStatus {
    /// Returns the status of a set whose first run may have ended after it created the parent's own
    /// namespace or CRD, as members, and before it recorded them.
    pub fn resumed(set: &Set, kinds: BTreeSet<GroupKind>) -> Self {
        Self::Recorded(ApplySetRecord {
            tooling: set.tooling.clone(),
            kinds: RecordedKinds::GroupKinds(kinds),
            additional_namespaces: BTreeSet::new(),
        })
    }
}

/// Judges the parent as it was read.
pub fn judge(
    set: &Set,
    found: Option<&ParentObject>,
    policy: ParentPolicy,
) -> Result<ParentStatus, Vec<Refusal>> {
    let Some(found) = found else {
        return Ok(ParentStatus::New);
    };
    if found.presence == Presence::Terminating {
        return Err(vec![Refusal::ParentTerminating {
            parent: set.parent.clone(),
        }]);
    }
    judge_for_deletion(set, found, policy)
}

/// Judges the parent as it was read, for a run that deletes the set. The parent may already be in
/// deletion.
pub fn judge_for_deletion(
    set: &Set,
    found: &ParentObject,
    policy: ParentPolicy,
) -> Result<ParentStatus, Vec<Refusal>> {
    let parent = || set.parent.clone();
    let is_plain = set.parent.group_kind.group.is_empty();
    let may_take_over = policy.take_over == Confirmation::Given;
    let foreign = |tooling: &Tooling| !tooling.is_same_program(&set.tooling) && !may_take_over;
    match &found.reading {
        Reading::NoRecord if is_plain && !may_take_over => {
            Err(vec![Refusal::NotAParent { parent: parent() }])
        }
        Reading::Parent(ApplySetRecord { tooling, .. }) | Reading::Unfinished(tooling)
            if foreign(tooling) =>
        {
            Err(vec![Refusal::OtherTooling {
                parent: parent(),
                found: tooling.clone(),
                ours: set.tooling.clone(),
            }])
        }
        Reading::NoRecord | Reading::Unfinished(_) => Ok(ParentStatus::New),
        Reading::Parent(applyset_record) => Ok(ParentStatus::Recorded(applyset_record.clone())),
        Reading::Faulty(faults) => Err(faults
            .iter()
            .map(|fault| Refusal::FaultyParent {
                parent: parent(),
                fault: fault.clone(),
            })
            .collect()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::fixtures::set;

    use super::*;

    use crate::model::applyset::parent::ParentFault;

    fn found(reading: Reading) -> ParentObject {
        ParentObject {
            uid: "u".to_owned(),
            resource_version: "1".to_owned(),
            presence: Presence::Present,
            reading,
            annotations: BTreeMap::new(),
            part_of: None,
            owners: Vec::new(),
        }
    }

    fn recorded(tooling: &str) -> Reading {
        Reading::Parent(ApplySetRecord {
            tooling: Tooling::parse(tooling).expect("a valid value"),
            kinds: RecordedKinds::GroupKinds(BTreeSet::new()),
            additional_namespaces: BTreeSet::new(),
        })
    }

    fn judged(found: &ParentObject, take_over: Confirmation) -> Result<ParentStatus, Vec<Refusal>> {
        judge(&set(), Some(found), ParentPolicy { take_over })
    }

    #[test]
    fn a_parent_that_is_not_there_is_new() {
        let policy = ParentPolicy {
            take_over: Confirmation::Missing,
        };
        assert_eq!(judge(&set(), None, policy), Ok(ParentStatus::New));
    }

    #[test]
    fn sets_of_other_programs_have_to_be_taken_over() {
        let theirs = Tooling::parse("kubectl/v1.36.3").expect("a valid value");
        for reading in [recorded("kubectl/v1.36.3"), Reading::Unfinished(theirs)] {
            let parent = found(reading);
            assert!(judged(&parent, Confirmation::Missing).is_err());
            assert!(judged(&parent, Confirmation::Given).is_ok());
        }
        assert!(judged(&found(recorded("kubectl-applyset/v0.0.1")), Confirmation::Missing).is_ok());
    }

    #[test]
    fn a_plain_object_has_to_be_made_a_parent_and_a_custom_resource_is_one() {
        let parent = found(Reading::NoRecord);
        assert!(judged(&parent, Confirmation::Missing).is_err());
        assert_eq!(judged(&parent, Confirmation::Given), Ok(ParentStatus::New));
        let mut custom = set();
        custom.parent.group_kind = GroupKind::new("company.com", "ApplySet");
        let policy = ParentPolicy {
            take_over: Confirmation::Missing,
        };
        assert_eq!(judge(&custom, Some(&parent), policy), Ok(ParentStatus::New));
    }

    #[test]
    fn our_own_unfinished_parent_is_resumed() {
        let parent = found(Reading::Unfinished(Tooling::of_this_program()));
        assert_eq!(judged(&parent, Confirmation::Missing), Ok(ParentStatus::New));
    }

    #[test]
    fn faults_and_deletion_are_refused_whatever_is_confirmed() {
        let faulty = found(Reading::Faulty(vec![
            ParentFault::IdMissing,
            ParentFault::KindsMissing,
        ]));
        assert_eq!(
            judged(&faulty, Confirmation::Given).map_err(|refusals| refusals.len()),
            Err(2)
        );
        let mut terminating = found(recorded("kubectl-applyset/v0.1.0"));
        terminating.presence = Presence::Terminating;
        assert!(judged(&terminating, Confirmation::Given).is_err());
    }
}
