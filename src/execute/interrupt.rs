//! The wish to stop, as `execute` sees it: no new write is begun once it is there.
//!
//! Who listens for signals, and how long a run may take, is not known here.

use tokio::sync::watch;

use crate::event::{Event, Resume};
use crate::model::text::counted;

/// A wish that only grows; it can be uttered from anywhere, and waited for.
#[derive(Debug, Clone)]
pub struct Interrupt {
    wishes: watch::Sender<Wish>,
    cause: watch::Sender<Cause>,
}

/// Who wants a run to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The user.
    User,
    /// Its time is over.
    Time,
}

/// How urgent it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wish {
    /// Nobody wants the run to stop.
    GoOn,
    /// What is under way is waited for, and nothing more is begun.
    Stop,
    /// Nothing is waited for.
    StopAtOnce,
    /// It was asked for again, and again.
    Leave,
}

impl Default for Interrupt {
    fn default() -> Self {
        Self {
            wishes: watch::Sender::new(Wish::GoOn),
            cause: watch::Sender::new(Cause::User),
        }
    }
}

impl Interrupt {
    /// Asks the run to stop, more urgently each time, and says how urgently now.
    ///
    /// `tell` is called with the wish while nobody can look at it: nothing is begun once it
    /// was told, and no run ends because of it before. It must not ask for the wish itself.
    pub fn request(&self, tell: impl FnOnce(Wish)) -> Wish {
        let mut now = Wish::Stop;
        self.wishes.send_modify(|wish| {
            now = match wish {
                Wish::GoOn => Wish::Stop,
                Wish::Stop => Wish::StopAtOnce,
                Wish::StopAtOnce | Wish::Leave => Wish::Leave,
            };
            tell(now);
            *wish = now;
        });
        now
    }

    /// Asks the run to stop because its time is over, which is said of a run that nobody
    /// has asked before.
    pub fn run_out(&self) {
        if !self.is_requested() {
            self.cause.send_replace(Cause::Time);
            self.request(|_| {});
        } else if self.cause() == Cause::Time {
            self.request(|_| {});
        }
    }

    /// Who wants the run to stop, where somebody does.
    pub fn cause(&self) -> Cause {
        *self.cause.borrow()
    }

    /// Whether the run is to stop.
    pub fn is_requested(&self) -> bool {
        *self.wishes.borrow() >= Wish::Stop
    }

    /// Whether it is not to wait for what is under way either.
    pub fn is_insisted(&self) -> bool {
        *self.wishes.borrow() >= Wish::StopAtOnce
    }

    /// Returns once the run is to stop.
    pub async fn requested(&self) {
        self.wished(Wish::Stop).await;
    }

    /// Returns once the run is to stop without waiting for what is under way.
    pub async fn insisted(&self) {
        self.wished(Wish::StopAtOnce).await;
    }

    async fn wished(&self, least: Wish) {
        let mut wishes = self.wishes.subscribe();
        // The sender lives as long as this borrow, so it cannot be closed.
        let _ = wishes.wait_for(|wish| *wish >= least).await;
    }
}

/// Reports that a run ends before so many objects, and how to finish it.
pub(super) fn left(objects: usize, resume: Resume) -> Event {
    let what = match objects {
        0 => "all objects were done, but not the set's record".to_owned(),
        left => format!("{} not done", counted(left, "object")),
    };
    Event::Warning(format!("the run ended early: {what}; {resume}"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn nobody_sees_the_wish_before_it_is_reported_nor_misses_it_afterwards() {
        let interrupt = Interrupt::default();
        let asking = interrupt.clone();
        let (answer, answered) = mpsc::channel();
        let wish = interrupt.request(|_| {
            thread::spawn(move || answer.send(asking.is_requested()));
            // Whoever asks now has to wait; this only gives a wrong answer the time to come.
            let early = answered.recv_timeout(Duration::from_millis(50));
            assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout));
        });
        assert_eq!(wish, Wish::Stop);
        assert_eq!(answered.recv(), Ok(true));
    }
}
