//! Questions to the user at the terminal.

use tokio::sync::oneshot;

use crate::manifest::Source;
use crate::plan::Refusal;
use crate::report::{self, Colors};

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
pub async fn answer(refusals: Vec<Refusal>, colors: Colors) -> bool {
    let (reply, replied) = oneshot::channel();
    std::thread::spawn(move || reply.send(report::confirm(&refusals, colors)));
    replied.await.unwrap_or(false)
}
