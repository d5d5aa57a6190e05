//! The user's wish to stop, as `execute` sees it: no new write is begun once it is there.
//!
//! Who listens for signals is not known here.

use tokio::sync::watch;

/// A flag that can be set once, from anywhere, and waited for.
#[derive(Debug, Clone)]
pub struct Interrupt(watch::Sender<bool>);

impl Default for Interrupt {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Interrupt {
    /// Asks the run to stop; `false` where that was asked before.
    pub fn request(&self) -> bool {
        !self.0.send_replace(true)
    }

    /// Whether the run is to stop.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once the run is to stop.
    pub async fn requested(&self) {
        let mut wish = self.0.subscribe();
        // The sender lives as long as this borrow, so it cannot be closed.
        let _ = wish.wait_for(|requested| *requested).await;
    }
}
