//! Questions to the user at the terminal.

use tokio::sync::oneshot;

use crate::manifest::Source;
use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::plan::{Apply, MemberStatus, Plan};
use crate::report::{self, PlanOutline, Question};

/// Presence of a person who can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Questions {
    /// There is one.
    Asked,
    /// There is none, or standard input is wanted for something else.
    Impossible,
}

impl Questions {
    /// Returns whether a person can be asked by a command that reads these sources.
    pub fn at_terminal(is_interactive: bool, sources: &[Source]) -> Self {
        if is_interactive && !sources.contains(&Source::StandardInput) {
            Self::Asked
        } else {
            Self::Impossible
        }
    }
}

/// Shows what the user is asked about, and waits for the answer.
///
/// On a thread of its own: nothing can wake one that reads a line, so neither signals nor the
/// end of the program may wait for it.
pub async fn answer(question: Question) -> bool {
    let (reply, replied) = oneshot::channel();
    std::thread::spawn(move || reply.send(report::confirm(&question)));
    replied.await.unwrap_or(false)
}

/// Returns what a prompt shows of a plan.
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
