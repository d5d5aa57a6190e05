//! The user's wish to stop, as `execute` sees it: no new write is begun once it is there.
//!
//! Who listens for signals is not known here.

use tokio::sync::watch;

/// A wish that only grows; it can be uttered from anywhere, and waited for.
#[derive(Debug, Clone)]
pub struct Interrupt(watch::Sender<Wish>);

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
        Self(watch::Sender::new(Wish::GoOn))
    }
}

impl Interrupt {
    /// Asks the run to stop, more urgently each time, and says how urgently now.
    pub fn request(&self) -> Wish {
        let mut now = Wish::Stop;
        self.0.send_modify(|wish| {
            now = match wish {
                Wish::GoOn => Wish::Stop,
                Wish::Stop => Wish::StopAtOnce,
                Wish::StopAtOnce | Wish::Leave => Wish::Leave,
            };
            *wish = now;
        });
        now
    }

    /// Whether the run is to stop.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow() >= Wish::Stop
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
        let mut wishes = self.0.subscribe();
        // The sender lives as long as this borrow, so it cannot be closed.
        let _ = wishes.wait_for(|wish| *wish >= least).await;
    }
}
