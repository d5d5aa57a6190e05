//! The user's consent. It covers the plan that a question has shown, and nothing more.
//!
//! A flag or an answer *lifts* a refusal: the plan may be carried out in spite of it. Consent *covers* a proposal if it
//! lifts all its refusals, and if the proposal does nothing that the question has not shown.

use std::collections::BTreeSet;

use super::Refusal;
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
    /// Also the resources in a deleted namespace or CRD that could not be listed.
    pub uids_and_unlisted_resources: BTreeSet<String>,
    pub applies: ProposedApplies,
}

/// The applies that need consent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProposedApplies {
    /// None do: the run changes nothing, or `--confirm` is not set.
    #[default]
    NeedNoConsent,
    /// All do, because of `--confirm`. There may be none in a run that changes something else.
    NeedConsent(BTreeSet<ProposedApply>),
}

/// An object that is to be applied, as it was when the question was asked.
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
            uids_and_unlisted_resources: objects.into_iter().map(|live| live.uid.clone()).collect(),
            applies: ProposedApplies::NeedNoConsent,
        }
    }

    /// Adds the set's parent to the proposal. If the parent is replaced by another object of the same name, the consent
    /// does not cover the new one.
    #[must_use]
    pub fn with_parent_of(mut self, set: &Set) -> Self {
        self.uids_and_unlisted_resources.extend(set.parent_uid.clone());
        self
    }

    /// Returns whether the user's answer to a question can lift all refusals.
    pub fn can_be_confirmed(&self) -> bool {
        self.refusals.iter().all(Refusal::is_lifted_by_answer)
    }

    /// Returns whether the consent to `shown` covers this proposal: both are the same, or this one does less.
    fn is_covered_by(&self, shown: &Self) -> bool {
        self.refusals
            .iter()
            .all(|refusal| refusal.is_covered_by_consent_to(&shown.refusals))
            && self
                .uids_and_unlisted_resources
                .is_subset(&shown.uids_and_unlisted_resources)
            && self.applies.are_within(&shown.applies)
    }
}

impl ProposedApplies {
    fn are_within(&self, shown: &Self) -> bool {
        match (self, shown) {
            (Self::NeedNoConsent, _) => true,
            (Self::NeedConsent(applies), Self::NeedConsent(shown)) => applies.is_subset(shown),
            (Self::NeedConsent(applies), Self::NeedNoConsent) => applies.is_empty(),
        }
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
                self.remaining_refusals(proposal).is_empty()
                    && proposal.applies == ProposedApplies::NeedNoConsent
            }
            Self::To(shown) => proposal.is_covered_by(shown),
        }
    }

    /// Returns the refusals of the proposal that no flag has lifted. Answers to a question do not count here: `covers`
    /// judges these.
    pub fn remaining_refusals(&self, proposal: &Proposal) -> Vec<Refusal> {
        let mut refusals = proposal.refusals.clone();
        if *self == Self::ByFlag {
            refusals.retain(|refusal| !refusal.is_lifted_by_yes());
        }
        refusals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    /// A proposal about objects with these UIDs; `Some` applies need consent.
    fn proposal(refusals: &[Refusal], objects: &[&str], applies: Option<&[&str]>) -> Proposal {
        let objects = objects.iter().map(|&uid| Live {
            uid: uid.to_owned(),
            ..live("ConfigMap", None, "a")
        });
        let objects: Vec<Live> = objects.collect();
        Proposal {
            applies: applies.map_or(ProposedApplies::NeedNoConsent, |names| {
                ProposedApplies::NeedConsent(names.iter().map(|name| apply(name)).collect())
            }),
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
        let not_a_parent = || Refusal::NotAParent { parent: key("web") };
        let kubectl = foreign("kubectl/v1.36.3");
        let shown = proposal(std::slice::from_ref(&kubectl), &["a", "b"], Some(&["c", "d"]));
        let consent = Consent::To(shown.clone());
        for (now, is_covered) in [
            (shown, true),
            (proposal(&[], &["a"], Some(&["c"])), true),
            (proposal(&[], &[], None), true),
            (proposal(&[kubectl], &["a", "late"], None), false),
            (proposal(&[foreign("flux/v1.0.0")], &["a"], None), false),
            (proposal(&[not_a_parent()], &["a"], None), false),
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
            let applies = ProposedApplies::NeedConsent(BTreeSet::from([changed]));
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
        // A question without `--confirm` shows no applies, so the answer covers none.
        let consent = Consent::To(proposal(&[not_a_parent()], &["a"], None));
        assert!(!consent.covers(&proposal(&[], &[], Some(&["c"]))));
    }

    #[test]
    fn a_flag_lifts_what_it_names_and_no_loss() {
        let deletes = Refusal::DeletesSet {
            parent: key("web"),
            objects: Vec::new(),
        };
        let loses = Refusal::PrunesStorage { object: key("data") };
        let limit = Refusal::TooManyPrunes {
            objects: Vec::new(),
            limit: 1,
        };
        for (refusals, covered_without_consent, covered_by_flag, can_be_confirmed) in [
            (&[][..], true, true, true),
            (std::slice::from_ref(&deletes), false, true, true),
            (&[foreign("kubectl/v1.36.3")], false, true, true),
            (&[deletes.clone(), loses.clone()], false, false, true),
            (&[deletes.clone(), limit], false, false, false),
        ] {
            let now = proposal(refusals, &["a"], None);
            assert_eq!(Consent::Missing.covers(&now), covered_without_consent, "{now:?}");
            assert_eq!(Consent::ByFlag.covers(&now), covered_by_flag, "{now:?}");
            assert_eq!(now.can_be_confirmed(), can_be_confirmed, "{now:?}");
        }
        let both = proposal(&[deletes, loses.clone()], &[], None);
        assert_eq!(Consent::ByFlag.remaining_refusals(&both), [loses]);
        // `--confirm` asks, whatever `--yes` says.
        let change = proposal(&[], &[], Some(&[]));
        assert!(!Consent::Missing.covers(&change) && !Consent::ByFlag.covers(&change));
    }
}
