//! The judgement of a parent before a run writes its set: whether it is a parent, whether its ApplySet metadata are
//! valid, and whether this program manages it or has to take it over.

use std::collections::BTreeSet;

use super::Refusal;
use crate::model::applyset::Tooling;
use crate::model::applyset::parent::{ParentAnnotations, ParentFault, Reading, RecordedKinds};
use crate::model::identity::GroupKind;
use crate::model::live::Presence;
use crate::model::set::{ParentObject, Set};

/// The status of a parent that this run may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParentStatus {
    /// The parent does not exist, or has no record.
    New,
    /// The parent exists and has this record.
    Recorded(ParentAnnotations),
}

impl ParentStatus {
    /// Returns the status of a set without a parent whose first run may have been interrupted: the run had created the
    /// parent's namespace or CRD, but not yet the parent that records them. `kinds` are the kinds of these members.
    pub fn assumed_after_interrupted_first_run(set: &Set, kinds: BTreeSet<GroupKind>) -> Self {
        Self::Recorded(ParentAnnotations {
            tooling: set.tooling.clone(),
            kinds: RecordedKinds::GroupKinds(kinds),
            additional_namespaces: BTreeSet::new(),
        })
    }
}

/// The judgement of a parent that this run may write, perhaps after consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentJudgement {
    pub status: ParentStatus,
    /// The refusal to lift if the parent has to be taken over: another tool manages it, or it is not a parent yet.
    pub take_over: Option<Refusal>,
}

impl ParentJudgement {
    /// Creates the judgement of a parent that need not be taken over.
    fn without_take_over(status: ParentStatus) -> Self {
        Self {
            status,
            take_over: None,
        }
    }

    /// Returns the status, unless the parent has to be taken over and the refusal is not among the `accepted` ones.
    pub fn into_status_if_accepted(self, accepted: &[Refusal]) -> Result<ParentStatus, Vec<Refusal>> {
        match self.take_over {
            Some(refusal) if !refusal.is_covered_by_consent_to(accepted) => Err(vec![refusal]),
            Some(_) | None => Ok(self.status),
        }
    }
}

/// Judges the parent as it was read, for a run that applies to the set or changes its members. `found` is `None` if the
/// parent does not exist.
pub fn judge_parent(set: &Set, found: Option<&ParentObject>) -> Result<ParentJudgement, Vec<Refusal>> {
    let Some(found) = found else {
        return Ok(ParentJudgement::without_take_over(ParentStatus::New));
    };
    if found.presence == Presence::Terminating {
        return Err(vec![Refusal::ParentTerminating {
            parent: set.parent.clone(),
        }]);
    }
    judge_parent_for_deletion(set, found)
}

/// Judges the parent as it was read, for a run that deletes the set. A parent that is already being deleted is not
/// refused: the run can still delete its members.
pub fn judge_parent_for_deletion(set: &Set, found: &ParentObject) -> Result<ParentJudgement, Vec<Refusal>> {
    let parent = set.parent.clone();
    let (status, take_over) = match &found.reading {
        Reading::NoRecord => {
            // An existing Secret or ConfigMap without a record may belong to an application. A custom resource without
            // a record was created to become a parent.
            let may_have_other_use = set.parent.group_kind.group.is_empty();
            (
                ParentStatus::New,
                may_have_other_use.then_some(Refusal::NotAParent { parent }),
            )
        }
        Reading::Unfinished(tooling) => (ParentStatus::New, refuse_other_tooling(set, tooling)),
        Reading::Parent(record) => (
            ParentStatus::Recorded(record.clone()),
            refuse_other_tooling(set, &record.tooling),
        ),
        // Without its members, the set cannot be taken over.
        Reading::Unrecorded(_) => {
            return Err(vec![Refusal::FaultyParent {
                parent,
                fault: ParentFault::KindsMissing,
            }]);
        }
        Reading::Faulty(faults) => {
            return Err(faults
                .iter()
                .map(|fault| Refusal::FaultyParent {
                    parent: parent.clone(),
                    fault: fault.clone(),
                })
                .collect());
        }
    };
    Ok(ParentJudgement { status, take_over })
}

fn refuse_other_tooling(set: &Set, found: &Tooling) -> Option<Refusal> {
    (!found.is_same_program(&set.tooling)).then(|| Refusal::OtherTooling {
        parent: set.parent.clone(),
        found: found.clone(),
        ours: set.tooling.clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::plan::fixtures::set;

    use super::*;

    fn found(reading: Reading) -> ParentObject {
        ParentObject {
            uid: "u".to_owned(),
            resource_version: "1".to_owned(),
            presence: Presence::Present,
            reading,
            annotations: BTreeMap::new(),
            running: Vec::new(),
            abandoned: Vec::new(),
            part_of: None,
            owners: Vec::new(),
        }
    }

    fn recorded(tooling: &str) -> Reading {
        Reading::Parent(ParentAnnotations {
            tooling: Tooling::parse(tooling).expect("a valid value"),
            kinds: RecordedKinds::GroupKinds(BTreeSet::new()),
            additional_namespaces: BTreeSet::new(),
        })
    }

    fn judged(found: &ParentObject, accepted: &[Refusal]) -> Result<ParentStatus, Vec<Refusal>> {
        judge_parent(&set(), Some(found)).and_then(|judgement| judgement.into_status_if_accepted(accepted))
    }

    fn not_a_parent() -> Refusal {
        Refusal::NotAParent { parent: set().parent }
    }

    fn foreign(tooling: &str) -> Refusal {
        Refusal::OtherTooling {
            parent: set().parent,
            found: Tooling::parse(tooling).expect("a valid value"),
            ours: set().tooling,
        }
    }

    #[test]
    fn a_parent_that_is_not_there_is_new() {
        let new = ParentJudgement::without_take_over(ParentStatus::New);
        assert_eq!(judge_parent(&set(), None), Ok(new));
    }

    #[test]
    fn sets_of_other_programs_have_to_be_taken_over_from_these() {
        let theirs = Tooling::parse("kubectl/v1.36.3").expect("a valid value");
        let kubectl = foreign("kubectl/v1.36.3");
        for reading in [recorded("kubectl/v1.36.3"), Reading::Unfinished(theirs)] {
            let parent = found(reading);
            assert_eq!(judged(&parent, &[]), Err(vec![kubectl.clone()]));
            assert!(judged(&parent, std::slice::from_ref(&kubectl)).is_ok());
            for other in [foreign("flux/v1.0.0"), not_a_parent()] {
                assert_eq!(judged(&parent, &[other]), Err(vec![kubectl.clone()]));
            }
        }
        assert!(judged(&found(recorded("kubectl-applyset/v0.0.1")), &[]).is_ok());
    }

    #[test]
    fn a_plain_object_has_to_be_made_a_parent_and_a_custom_resource_is_one() {
        let parent = found(Reading::NoRecord);
        assert_eq!(judged(&parent, &[]), Err(vec![not_a_parent()]));
        assert!(judged(&parent, &[foreign("kubectl/v1.36.3")]).is_err());
        assert_eq!(judged(&parent, &[not_a_parent()]), Ok(ParentStatus::New));
        let mut custom = set();
        custom.parent.group_kind = GroupKind::new("company.com", "ApplySet");
        let new = ParentJudgement::without_take_over(ParentStatus::New);
        assert_eq!(judge_parent(&custom, Some(&parent)), Ok(new));
    }

    #[test]
    fn our_own_unfinished_parent_is_resumed() {
        let parent = found(Reading::Unfinished(Tooling::this_program()));
        assert_eq!(judged(&parent, &[]), Ok(ParentStatus::New));
    }

    #[test]
    fn faults_and_deletion_are_refused_whatever_is_confirmed() {
        let accepted = [not_a_parent(), foreign("kubectl/v1.36.3")];
        let faulty = found(Reading::Faulty(vec![
            ParentFault::IdMissing,
            ParentFault::KindsMissing,
        ]));
        assert_eq!(
            judged(&faulty, &accepted).map_err(|refusals| refusals.len()),
            Err(2)
        );
        let theirs = Tooling::parse("configsync.gke.io/v1").expect("a valid value");
        let unrecorded = found(Reading::Unrecorded(theirs));
        assert!(judged(&unrecorded, &[foreign("configsync.gke.io/v1")]).is_err());
        let mut terminating = found(recorded("kubectl-applyset/v0.1.0"));
        terminating.presence = Presence::Terminating;
        assert!(judged(&terminating, &accepted).is_err());
    }
}
