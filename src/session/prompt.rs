//! Questions to the user at the terminal.

use tokio::sync::oneshot;

use crate::manifest::Source;
use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::plan::{Apply, MemberStatus, Plan};
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
pub fn outline(plan: &Plan, desired: &Desired) -> PlanOutline {
    let is_new =
        |status: &MemberStatus| matches!(status, MemberStatus::NotAMember | MemberStatus::OfAnotherSet);
    let keys = |applies: Vec<&Apply>| -> Vec<ObjectKey> {
        let objects = applies
            .into_iter()
            .filter_map(|apply| desired.members.get(apply.index));
        objects.map(|object| object.key.clone()).collect()
    };
    let (created, changed) = plan.all_applies().partition(|apply| is_new(&apply.member_status));
    PlanOutline {
        created: keys(created),
        changed: keys(changed),
        removed: plan.all_prunes().map(|live| live.key.clone()).collect(),
        unchanged: plan.unchanged.len(),
        kept: plan.skips.len(),
    }
}
