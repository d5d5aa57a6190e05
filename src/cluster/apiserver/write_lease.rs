//! The leases of a run, one for each set that it works on: it writes nothing else while one of them was not renewed
//! for too long.
//!
//! A machine may have been suspended, or the server out of reach, for longer than others wait for this run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::Method;
use tokio::sync::watch::Sender;
use tokio::time::Instant;

use super::{ApiRequest, ApiServer};

/// The age of a lease at which nothing is written.
const EXPIRES_AFTER: Duration = Duration::from_mins(5);

/// The leases of a run by the ids of its entries; without one it may write at any time.
#[derive(Debug, Clone)]
pub(super) struct WriteLeases(Arc<Sender<BTreeMap<String, State>>>);

#[derive(Debug, Clone)]
enum State {
    /// It was renewed at this time.
    Renewed(Moment),
    /// It could not be renewed, for this reason.
    Lost(String),
}

impl State {
    fn age(&self) -> Duration {
        match self {
            Self::Renewed(at) => at.age(),
            Self::Lost(_) => EXPIRES_AFTER,
        }
    }

    /// Returns why it is lost, if it is.
    fn reason(&self) -> Option<&str> {
        match self {
            Self::Renewed(_) => None,
            Self::Lost(reason) => Some(reason),
        }
    }
}

/// A time by two clocks: one stops while the machine is suspended, and the other can be set.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    monotonic: Instant,
    wall: SystemTime,
}

impl Moment {
    /// Returns the present moment.
    pub fn now() -> Self {
        Self {
            monotonic: Instant::now(),
            wall: SystemTime::now(),
        }
    }

    fn age(self) -> Duration {
        self.monotonic
            .elapsed()
            .max(self.wall.elapsed().unwrap_or_default())
    }
}

impl Default for WriteLeases {
    fn default() -> Self {
        Self(Arc::new(Sender::new(BTreeMap::new())))
    }
}

impl WriteLeases {
    /// Takes or renews a lease, as of the given moment.
    pub(super) fn renew(&self, id: &str, at: Moment) {
        self.set(id, State::Renewed(at));
    }

    /// Notes that a lease could not be renewed. Writes fail for this reason once it has expired.
    pub(super) fn not_renewed(&self, id: &str, reason: &str) {
        if self.age(id).is_some_and(|age| age >= EXPIRES_AFTER) {
            self.set(id, State::Lost(reason.to_owned()));
        }
    }

    fn set(&self, id: &str, state: State) {
        self.0.send_modify(|leases| {
            leases.insert(id.to_owned(), state);
        });
    }

    /// Gives a lease back.
    pub(super) fn end(&self, id: &str) {
        self.0.send_modify(|leases| {
            leases.remove(id);
        });
    }

    /// Returns the age of a lease; nothing without it.
    pub(super) fn age(&self, id: &str) -> Option<Duration> {
        self.0.borrow().get(id).map(State::age)
    }

    /// Returns once this request may be sent.
    ///
    /// # Errors
    ///
    /// The reason why a lease could not be renewed.
    pub(super) async fn admit(&self, request: &ApiRequest) -> Result<(), String> {
        if request.method == Method::GET {
            return Ok(());
        }
        let mut states = self.0.subscribe();
        loop {
            {
                let leases = states.borrow_and_update();
                if let Some(reason) = leases.values().find_map(State::reason) {
                    return Err(reason.to_owned());
                }
                if leases.values().all(|lease| lease.age() < EXPIRES_AFTER) {
                    return Ok(());
                }
            }
            // The sender is part of these leases, so it is never closed.
            let _ = states.changed().await;
        }
    }
}

impl ApiServer {
    /// Takes or renews the lease of the run's entry with this id, as of the given moment: nothing is written while it is
    /// too old.
    pub fn renew_lease(&self, id: &str, at: Moment) {
        self.write_leases.renew(id, at);
    }

    /// Notes that a lease could not be renewed: writes fail for this reason once it has expired.
    pub fn lease_not_renewed(&self, id: &str, reason: &str) {
        self.write_leases.not_renewed(id, reason);
    }

    /// Returns the time since a lease was renewed; `None` without it.
    pub fn age_of_lease(&self, id: &str) -> Option<Duration> {
        self.write_leases.age(id)
    }

    /// Returns the same server for the writes that take and renew leases.
    #[must_use]
    pub fn beside_leases(&self) -> Self {
        Self {
            write_leases: WriteLeases::default(),
            ..self.clone()
        }
    }

    /// Gives a lease back.
    pub fn end_lease(&self, id: &str) {
        self.write_leases.end(id);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::time::{advance, timeout};

    use super::*;
    use crate::cluster::apiserver::Patch;

    fn patch(path: &str) -> ApiRequest {
        ApiRequest::patch(path, &[], "application/json", Patch::Merge, Bytes::new())
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_once_it_has_expired() {
        let leases = WriteLeases::default();
        assert_eq!(leases.admit(&patch("/member")).await, Ok(()));
        leases.renew("run", Moment::now());
        assert_eq!(leases.admit(&patch("/member")).await, Ok(()));
        advance(EXPIRES_AFTER).await;
        let write = patch("/member");
        let held = leases.admit(&write);
        assert!(timeout(Duration::from_hours(1), held).await.is_err());
        assert_eq!(leases.admit(&ApiRequest::get("/member", "a")).await, Ok(()));
        leases.not_renewed("run", "no answer");
        assert_eq!(leases.admit(&patch("/member")).await, Err("no answer".to_owned()));
        leases.renew("run", Moment::now());
        assert_eq!(leases.admit(&patch("/member")).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn one_lease_does_not_make_up_for_another() {
        let leases = WriteLeases::default();
        leases.renew("old", Moment::now());
        leases.renew("new", Moment::now());
        advance(EXPIRES_AFTER).await;
        leases.renew("new", Moment::now());
        leases.not_renewed("old", "no answer");
        assert_eq!(leases.admit(&patch("/member")).await, Err("no answer".to_owned()));
        leases.end("old");
        assert_eq!(leases.admit(&patch("/member")).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_renewal_stops_nothing_before_the_lease_expires() {
        let leases = WriteLeases::default();
        leases.renew("run", Moment::now());
        leases.not_renewed("run", "no answer");
        assert_eq!(leases.admit(&patch("/member")).await, Ok(()));
        advance(EXPIRES_AFTER).await;
        let write = patch("/member");
        let (held, ()) = tokio::join!(leases.admit(&write), async {
            leases.renew("run", Moment::now());
        });
        assert_eq!(held, Ok(()));
    }
}
