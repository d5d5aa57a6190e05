//! Questions to the user at the terminal.

use std::collections::HashMap;

use tokio::sync::oneshot;

use crate::error::{Error, ErrorKind};
use crate::manifest::Source;
use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::set::Set;
use crate::plan::{
    self, Apply, Consent, LiveMembership, Observed, Plan, Policy, Proposal, ReasonToKeep, Refusal,
};
use crate::report::{self, PlanOutline, Question, Style};

/// How the user agreed to a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreed {
    /// By an earlier consent, without a question. The plan may be executed.
    WithoutQuestion,
    /// By the answer to a question. The cluster may have changed while the question was open, so the caller discovers,
    /// reads and plans again.
    AfterQuestion,
}

/// Whether a command can ask the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Questions {
    /// The user is at a terminal.
    Possible,
    /// There is no terminal, or the manifests come from standard input, or the run is a dry run.
    Impossible,
}

impl Questions {
    /// Returns whether a command that reads these sources can ask the user.
    pub fn at_terminal(is_interactive: bool, sources: &[Source]) -> Self {
        if is_interactive && !sources.contains(&Source::StandardInput) {
            Self::Possible
        } else {
            Self::Impossible
        }
    }
}

/// Returns how the user agreed to a plan. If the consent so far does not cover the plan, `ask` shows at a terminal what
/// needs consent, and returns whether the user agrees; the consent then covers exactly this plan.
///
/// # Errors
///
/// A refusal in the plan cannot be lifted by an answer, questions are impossible, or the user does not agree.
pub async fn ensure_agreement(
    questions: Questions,
    consent: &mut Consent,
    proposal: Proposal,
    style: Style,
    ask: impl AsyncFnOnce(Vec<Refusal>) -> bool,
) -> Result<Agreed, Error> {
    if consent.covers(&proposal) {
        return Ok(Agreed::WithoutQuestion);
    }
    if questions == Questions::Impossible || !proposal.can_be_confirmed() {
        return Err(Refusal::error(&consent.remaining_refusals(&proposal)));
    }
    if matches!(consent, Consent::To(_)) {
        report::print_note(
            "the plan has changed since you answered, so it is shown again",
            style,
        );
    }
    if !ask(proposal.refusals.clone()).await {
        // The question has shown what the user declined and how to accept it, so the error has no hint.
        return Err(Error::new(
            ErrorKind::NotConfirmed,
            "not confirmed: nothing was written",
        ));
    }
    *consent = Consent::To(proposal);
    Ok(Agreed::AfterQuestion)
}

/// Shows the prompt, and waits for the answer. Returns `false` if the thread that asks ends without an answer.
///
/// A thread of its own reads the answer: nothing can wake a thread that reads a line, so neither the handling of
/// signals nor the end of the program may wait for that thread.
pub async fn ask_user(question: Question) -> bool {
    let (reply, replied) = oneshot::channel();
    std::thread::spawn(move || reply.send(report::confirm(&question)));
    replied.await.unwrap_or(false)
}

/// Returns the part of a plan that a prompt shows.
pub fn outline(
    set: &Set,
    plan: &Plan,
    desired: &Desired,
    observed: &Observed,
    policy: &Policy,
) -> PlanOutline {
    let not_members: HashMap<&ObjectKey, &Live> = observed.not_members().collect();
    let key_of = |apply: &Apply| desired.members[apply.index].key.clone();
    let (created, changed): (Vec<&Apply>, Vec<&Apply>) =
        plan.all_applies().partition(|apply| match apply.live_membership {
            LiveMembership::NotAMember => !not_members.contains_key(&desired.members[apply.index].key),
            LiveMembership::Member { .. }
            | LiveMembership::OfAnotherSet { .. }
            | LiveMembership::Terminating => false,
        });
    let recreatable = plan
        .changed_members(desired)
        .filter(|object| policy.may_recreate(object, &plan.preconditions));
    let with_data = plan.all_applies().filter(|apply| match apply.live_membership {
        LiveMembership::Member { deletes_data, .. } => deletes_data,
        _ => false,
    });
    let joining = plan.all_applies().filter_map(|apply| {
        let object = &desired.members[apply.index];
        let live = not_members.get(&object.key)?;
        let reason = plan::describe_joining_object(object, live, set, observed, policy);
        Some((object.key.clone(), reason))
    });
    PlanOutline {
        joining: joining.collect(),
        created: created.into_iter().map(key_of).collect(),
        changed: changed.into_iter().map(key_of).collect(),
        recreatable: recreatable.map(|object| object.key.clone()).collect(),
        with_data: with_data.map(key_of).collect(),
        removed: plan.all_prunes().map(|live| live.key.clone()).collect(),
        losses: plan.accepted.clone(),
        unchanged: plan.unchanged.len(),
        kept: kept_objects(plan),
        relabeled: None,
    }
}

/// Returns the objects that a plan keeps, with the reasons, except for copies: the garbage collector deletes those with
/// their owner.
fn kept_objects(plan: &Plan) -> Vec<(ObjectKey, ReasonToKeep)> {
    plan.skips
        .iter()
        .filter(|skip| !matches!(skip.reason, ReasonToKeep::OwnedCopy(_)))
        .map(|skip| (skip.live.key.clone(), skip.reason.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::plan::fixtures::{desired, live, policy, set};
    use crate::plan::{Recreate, Risk};

    #[test]
    fn an_outline_has_what_is_recreated_with_its_data_and_what_changes_its_set() {
        let shop = Some("shop");
        let database = Live {
            deletes_claims: true,
            ..live("StatefulSet.apps", shop, "db")
        };
        let other = Live {
            part_of: Some("applyset-other-v1".to_owned()),
            ..live("ConfigMap", shop, "other")
        };
        let mut observed = Observed {
            members: vec![database.clone(), live("StatefulSet.apps", shop, "cache")],
            others: vec![other.clone()],
            ..Observed::default()
        };
        let objects = [("StatefulSet.apps", "db"), ("StatefulSet.apps", "cache")];
        let objects = objects
            .into_iter()
            .chain([("ConfigMap", "other"), ("ConfigMap", "new")]);
        let desired = Desired {
            members: objects.map(|(kind, name)| desired(kind, shop, name)).collect(),
            ..Desired::default()
        };
        let policy = Policy {
            recreate: Recreate::Kinds(BTreeSet::from([database.key.group_kind.clone()])),
            take_ownership: Risk::Allowed,
            data_loss: Risk::Allowed,
            ..policy()
        };
        let plan = plan::plan(&set(), &desired, &observed, &policy);
        observed.forget_desired(&desired);
        let outline = outline(&set(), &plan, &desired, &observed, &policy);
        assert_eq!(outline.recreatable.len(), 2);
        assert_eq!(outline.with_data, BTreeSet::from([database.key]));
        assert_eq!(outline.created, [desired.members[3].key.clone()]);
        assert!(outline.changed.contains(&other.key));
        let reason = "leaves a set without a parent (applyset-other-v1) and becomes a member: \
                      removing its manifest will delete it";
        assert_eq!(outline.joining, [(other.key, reason.to_owned())]);
    }
}
