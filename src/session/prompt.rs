//! Questions to the user at the terminal.

use tokio::sync::oneshot;

use crate::manifest::Source;
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::identity::ObjectKey;
use crate::plan::{Apply, LiveMembership, MembershipPlan, Plan, Policy};
use crate::report::{self, PlanOutline, Question};

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
pub fn outline(plan: &Plan, desired: &Desired, policy: &Policy) -> PlanOutline {
    let is_new =
        |status: &LiveMembership| matches!(status, LiveMembership::NotAMember | LiveMembership::OfAnotherSet);
    let objects = |applies: Vec<&Apply>| -> Vec<&DesiredObject> {
        let indexes = applies.into_iter().map(|apply| apply.index);
        indexes.filter_map(|index| desired.members.get(index)).collect()
    };
    let keys = |objects: &[&DesiredObject]| -> Vec<ObjectKey> {
        objects.iter().map(|object| object.key.clone()).collect()
    };
    let (created, changed) = plan
        .all_applies()
        .partition(|apply| is_new(&apply.live_membership));
    let changed = objects(changed);
    let mut recreatable = changed.clone();
    recreatable.retain(|object| policy.may_recreate(object, &plan.preconditions));
    PlanOutline {
        created: keys(&objects(created)),
        changed: keys(&changed),
        recreatable: keys(&recreatable),
        recreated: Vec::new(),
        removed: plan.all_prunes().map(|live| live.key.clone()).collect(),
        unchanged: plan.unchanged.len(),
        kept: plan.skips.len(),
        relabeled: None,
    }
}

/// Returns the part of a plan that a prompt shows of objects that join or leave a set.
pub fn outline_of_labels(plan: &MembershipPlan) -> PlanOutline {
    PlanOutline {
        relabeled: Some(plan.changes.iter().map(|live| live.key.clone()).collect()),
        ..PlanOutline::default()
    }
}
