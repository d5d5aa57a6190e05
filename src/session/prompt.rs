//! Questions to the user at the terminal.

use std::collections::HashSet;

use tokio::sync::oneshot;

use crate::error::{Error, ErrorKind};
use crate::manifest::Source;
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::identity::ObjectKey;
use crate::plan::{
    Apply, Consent, LiveMembership, MembershipPlan, Observed, Plan, Policy, Proposal, Refusal, SkipReason,
};
use crate::report::{self, PlanOutline, Question, Style};

/// The time at which the user agreed to a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreed {
    /// Before it was made. It may be carried out.
    Before,
    /// After a question. The cluster may have changed while it was open, so everything is read and planned
    /// again, by a new discovery.
    Now,
}

/// Presence of a user who can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Questions {
    /// There is one.
    Asked,
    /// There is none, or standard input is used for something else.
    Impossible,
}

impl Questions {
    /// Returns whether a command that reads these sources can ask the user.
    pub fn at_terminal(is_interactive: bool, sources: &[Source]) -> Self {
        if is_interactive && !sources.contains(&Source::StandardInput) {
            Self::Asked
        } else {
            Self::Impossible
        }
    }
}

/// Returns whether the user agrees to a plan. If the consent so far does not cover it, `ask` shows what needs
/// consent at a terminal, and its answer is the new consent.
///
/// # Errors
///
/// An answer could not lift all refusals, there is no terminal, or the user does not agree.
pub async fn agree(
    questions: Questions,
    consent: &mut Consent,
    proposal: Proposal,
    style: Style,
    ask: impl AsyncFnOnce(Vec<Refusal>) -> bool,
) -> Result<Agreed, Error> {
    if consent.covers(&proposal) {
        return Ok(Agreed::Before);
    }
    if questions == Questions::Impossible || !proposal.can_be_confirmed() {
        return Err(Refusal::error(&consent.remaining_refusals(&proposal)));
    }
    if matches!(consent, Consent::To(_)) {
        report::note(
            "the plan has changed since you answered, so it is shown again",
            style,
        );
    }
    if !ask(proposal.refusals.clone()).await {
        // No hint: the question has shown what was declined, and how to accept it.
        return Err(Error::new(
            ErrorKind::NotConfirmed,
            "not confirmed: nothing was written",
        ));
    }
    *consent = Consent::To(proposal);
    Ok(Agreed::Now)
}

/// Shows the prompt, and waits for the answer.
///
/// It runs on its own thread: nothing can wake a thread that reads a line, so neither signals nor the
/// end of the program may wait for it.
pub async fn answer(question: Question) -> bool {
    let (reply, replied) = oneshot::channel();
    std::thread::spawn(move || reply.send(report::confirm(&question)));
    replied.await.unwrap_or(false)
}

/// Returns the part of a plan that a prompt shows.
pub fn outline(plan: &Plan, desired: &Desired, observed: &Observed, policy: &Policy) -> PlanOutline {
    let existing: HashSet<&ObjectKey> = observed.existing.iter().map(|live| &live.key).collect();
    let keys = |objects: Vec<&DesiredObject>| -> Vec<ObjectKey> {
        objects.iter().map(|object| object.key.clone()).collect()
    };
    let objects = |applies: Vec<&Apply>| -> Vec<&DesiredObject> {
        let applies = applies.iter();
        applies.map(|apply| &desired.members[apply.index]).collect()
    };
    let (created, changed): (Vec<&Apply>, Vec<&Apply>) =
        plan.all_applies().partition(|apply| match apply.live_membership {
            LiveMembership::NotAMember => !existing.contains(&desired.members[apply.index].key),
            LiveMembership::OfAnotherSet => true,
            LiveMembership::Member { .. } | LiveMembership::Terminating => false,
        });
    let mut recreatable: Vec<&DesiredObject> = plan.changed_members(desired).collect();
    recreatable.retain(|object| policy.may_recreate(object, &plan.preconditions));
    PlanOutline {
        created: keys(objects(created)),
        changed: keys(objects(changed)),
        recreatable: keys(recreatable),
        recreated: Vec::new(),
        removed: plan.all_prunes().map(|live| live.key.clone()).collect(),
        unchanged: plan.unchanged.len(),
        kept: kept_objects(plan),
        relabeled: None,
    }
}

/// Returns the objects that a plan keeps, without copies that are deleted with their owner.
fn kept_objects(plan: &Plan) -> Vec<(ObjectKey, SkipReason)> {
    let kept = plan
        .skips
        .iter()
        .filter(|skip| !matches!(skip.reason, SkipReason::OwnedCopy(_)));
    kept.map(|skip| (skip.live.key.clone(), skip.reason.clone()))
        .collect()
}

/// Returns the part of a plan that a prompt shows of objects that join or leave a set.
pub fn outline_of_labels(plan: &MembershipPlan) -> PlanOutline {
    PlanOutline {
        relabeled: Some(plan.changes.iter().map(|live| live.key.clone()).collect()),
        ..PlanOutline::default()
    }
}
