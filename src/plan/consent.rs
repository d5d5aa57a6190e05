//! The user's consent. It covers the plan that a question has shown, and nothing more.

use std::collections::BTreeSet;

use super::refusal::describe_losses;
use super::{Plan, Refusal};
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::set::Set;

/// A plan as a question shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposal {
    /// The refusals that have to be lifted before the plan may be carried out. If the parent has to be taken over, they
    /// include that refusal, with the parent as it was read.
    pub refusals: Vec<Refusal>,
    /// The UIDs of the objects that are deleted, lost with these, or that join or leave a set, and of the set's parent.
    pub objects: BTreeSet<String>,
    /// With `--confirm`, the objects that are applied. `None` if the run needs no confirmation of applies: nothing
    /// changes, or the flag is not set.
    pub applies: Option<BTreeSet<ProposedApply>>,
}

/// An object as it was before an apply that a question shows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProposedApply {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// `metadata.uid`, if the object is a member of this set or another one.
    pub uid: Option<String>,
    /// The id of the other set, if the object is a member of one.
    pub former_set: Option<String>,
}

impl Proposal {
    /// Returns the proposal to delete, label or release these objects, once the refusals are lifted.
    pub fn new<'a>(refusals: Vec<Refusal>, objects: impl IntoIterator<Item = &'a Live>) -> Self {
        Self {
            refusals,
            objects: objects.into_iter().map(|live| live.uid.clone()).collect(),
            applies: None,
        }
    }

    /// Adds the set's parent to the proposal. If the parent is replaced by another object of the same name, the consent
    /// does not cover the new one.
    #[must_use]
    pub fn with_parent_of(mut self, set: &Set) -> Self {
        self.objects.extend(set.parent_uid.clone());
        self
    }

    /// Returns whether the user's answer to a question can lift all refusals.
    pub fn can_be_confirmed(&self) -> bool {
        self.refusals.iter().all(Refusal::is_lifted_by_answer)
    }

    /// Returns whether the consent to `shown` covers this proposal: both are the same, or this one does less.
    fn is_within(&self, shown: &Self) -> bool {
        // Without applies, all of them are covered.
        let mut applies = self.applies.iter().flatten();
        let shown_applies = shown.applies.as_ref();
        self.refusals
            .iter()
            .all(|refusal| refusal.is_within_any_of(&shown.refusals))
            && self.objects.is_subset(&shown.objects)
            && applies.all(|apply| shown_applies.is_some_and(|shown| shown.contains(apply)))
    }
}

/// What the user has agreed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    /// Nothing yet.
    Missing,
    /// Everything that `--yes` confirms.
    ByFlag,
    /// The plan that the last question showed.
    To(Proposal),
}

impl Consent {
    /// Returns whether the proposed plan may be carried out.
    pub fn covers(&self, proposal: &Proposal) -> bool {
        match self {
            Self::Missing | Self::ByFlag => {
                self.remaining_refusals(proposal).is_empty() && proposal.applies.is_none()
            }
            Self::To(shown) => proposal.is_within(shown),
        }
    }

    /// Returns the refusals of the proposal that `--yes` has not lifted.
    pub fn remaining_refusals(&self, proposal: &Proposal) -> Vec<Refusal> {
        let mut refusals = proposal.refusals.clone();
        if *self == Self::ByFlag {
            refusals.retain(|refusal| !refusal.is_lifted_by_yes());
        }
        refusals
    }
}

impl Plan {
    /// Returns the warnings about the plan: the dependencies that it ignores, and what a flag allows to be deleted
    /// together with a namespace or CRD, which no result of the run names. What a question has shown is left out, so
    /// this is called before [`Self::lift_all_refusals`].
    pub fn describe_ignored_dependencies_and_losses(&self) -> Vec<String> {
        let losses = self.accepted.iter().filter_map(|refusal| match refusal {
            Refusal::HoldsOthers {
                container,
                lost,
                unknown,
                ..
            } => Some(format!(
                "{container}: also deletes {}",
                describe_losses(lost, unknown)
            )),
            _ => None,
        });
        self.edges.ignored.iter().cloned().chain(losses).collect()
    }

    /// Lifts all refusals, because the user has confirmed them. Losses of data stay in `accepted`: each object is
    /// judged again before its delete, and that judgement would otherwise refuse it.
    pub fn lift_all_refusals(&mut self) {
        let confirmed = std::mem::take(&mut self.refusals).into_iter();
        self.accepted.extend(confirmed.filter(Refusal::is_data_loss));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Operation;
    use crate::model::applyset::Tooling;
    use crate::model::identity::GroupKind;
    use crate::plan::fixtures::{live, set};

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            group_kind: GroupKind::new("", "Secret"),
            namespace: None,
            name: name.to_owned(),
        }
    }

    fn apply(name: &str) -> ProposedApply {
        ProposedApply {
            key: key(name),
            uid: Some(name.to_owned()),
            former_set: None,
        }
    }

    fn proposal(refusals: &[Refusal], objects: &[&str], applies: Option<&[&str]>) -> Proposal {
        let objects = objects.iter().map(|&uid| Live {
            uid: uid.to_owned(),
            ..live("ConfigMap", None, "a")
        });
        let objects: Vec<Live> = objects.collect();
        Proposal {
            applies: applies.map(|names| names.iter().map(|name| apply(name)).collect()),
            ..Proposal::new(refusals.to_vec(), &objects)
        }
    }

    fn foreign(tooling: &str) -> Refusal {
        Refusal::OtherTooling {
            parent: key("web"),
            found: Tooling::parse(tooling).expect("a tooling"),
            ours: Tooling::this_program(),
        }
    }

    #[test]
    fn an_answer_covers_what_was_shown_and_less() {
        let plain = || Refusal::NotAParent { parent: key("web") };
        let kubectl = foreign("kubectl/v1.36.3");
        let shown = proposal(std::slice::from_ref(&kubectl), &["a", "b"], Some(&["c", "d"]));
        let consent = Consent::To(shown.clone());
        for (now, is_covered) in [
            (shown, true),
            (proposal(&[], &["a"], Some(&["c"])), true),
            (proposal(&[], &[], None), true),
            (proposal(&[kubectl], &["a", "late"], None), false),
            (proposal(&[foreign("flux/v1.0.0")], &["a"], None), false),
            (proposal(&[plain()], &["a"], None), false),
            (proposal(&[], &[], Some(&["late"])), false),
        ] {
            assert_eq!(consent.covers(&now), is_covered, "{now:?}");
        }
        let replaced = ProposedApply {
            uid: Some("new".to_owned()),
            ..apply("c")
        };
        let taken = ProposedApply {
            former_set: Some("other".to_owned()),
            ..apply("c")
        };
        for changed in [replaced, taken] {
            let applies = Some(BTreeSet::from([changed]));
            let now = Proposal {
                applies,
                ..Proposal::default()
            };
            assert!(!consent.covers(&now), "{now:?}");
        }
        let with_parent = |uid: &str| {
            let parent_uid = Some(uid.to_owned());
            proposal(&[], &[], None).with_parent_of(&Set { parent_uid, ..set() })
        };
        let consent = Consent::To(with_parent("shown"));
        assert!(consent.covers(&with_parent("shown")) && !consent.covers(&with_parent("made again")));
        // An object that is asked about without `--confirm` shows no applies.
        let consent = Consent::To(proposal(&[plain()], &["a"], None));
        assert!(!consent.covers(&proposal(&[], &[], Some(&["c"]))));
    }

    #[test]
    fn a_flag_lifts_what_it_names_and_no_loss() {
        let deletes = Refusal::DeletesSet {
            parent: key("web"),
            objects: Vec::new(),
        };
        let loses = Refusal::PrunesStorage {
            object: key("data"),
            operation: Operation::Delete,
        };
        let limit = Refusal::TooManyPrunes {
            objects: Vec::new(),
            limit: 1,
        };
        for (refusals, missing, by_flag, can_be_confirmed) in [
            (&[][..], true, true, true),
            (std::slice::from_ref(&deletes), false, true, true),
            (&[foreign("kubectl/v1.36.3")], false, true, true),
            (&[deletes.clone(), loses.clone()], false, false, true),
            (&[deletes.clone(), limit], false, false, false),
        ] {
            let now = proposal(refusals, &["a"], None);
            assert_eq!(Consent::Missing.covers(&now), missing, "{now:?}");
            assert_eq!(Consent::ByFlag.covers(&now), by_flag, "{now:?}");
            assert_eq!(now.can_be_confirmed(), can_be_confirmed, "{now:?}");
        }
        let both = proposal(&[deletes, loses.clone()], &[], None);
        assert_eq!(Consent::ByFlag.remaining_refusals(&both), [loses]);
        // `--confirm` asks, whatever `--yes` says.
        let change = proposal(&[], &[], Some(&[]));
        assert!(!Consent::Missing.covers(&change) && !Consent::ByFlag.covers(&change));
    }
}
