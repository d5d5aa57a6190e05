//! The lease of a run. If it was not renewed for too long, the run sends no writes but those that renew the lease.
//!
//! The machine may have been suspended, or the server out of reach, for so long that other runs no longer wait for this
//! run.

use std::time::{Duration, SystemTime};

use http::Method;
use tokio::sync::watch::Sender;
use tokio::time::Instant;

use super::{ApiRequest, ApiServer};

/// The age from which on a lease does not permit writes.
const EXPIRES_AFTER: Duration = Duration::from_mins(5);

/// The lease of a run. Clones share it. A run without a lease may write at any time.
#[derive(Debug, Clone, Default)]
pub(super) struct WriteLease(Sender<LeaseState>);

#[derive(Debug, Clone, Default)]
enum LeaseState {
    #[default]
    None,
    /// The lease was renewed at this time.
    Renewed(Moment),
    /// The lease could not be renewed, for this reason.
    Lost(String),
}

/// A time by two clocks: the monotonic clock stops while the machine is suspended, and the wall clock can be set.
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

    /// Returns the time since this moment. If the two clocks differ, the longer time counts.
    pub fn age(self) -> Duration {
        self.monotonic
            .elapsed()
            .max(self.wall.elapsed().unwrap_or_default())
    }
}

impl WriteLease {
    /// Returns once this request may be sent.
    ///
    /// # Errors
    ///
    /// The reason why the lease could not be renewed.
    pub(super) async fn wait_until_admitted(&self, request: &ApiRequest) -> Result<(), String> {
        if request.method == Method::GET {
            return Ok(());
        }
        let mut states = self.0.subscribe();
        loop {
            match &*states.borrow_and_update() {
                LeaseState::None => return Ok(()),
                LeaseState::Renewed(at) if at.age() < EXPIRES_AFTER => return Ok(()),
                LeaseState::Renewed(_) => {}
                LeaseState::Lost(reason) => return Err(reason.clone()),
            }
            // The sender is part of this lease, so it is never closed.
            let _ = states.changed().await;
        }
    }
}

impl ApiServer {
    /// Returns the time since the lease of this run was renewed; `None` if it was given back or is lost.
    pub fn lease_age(&self) -> Option<Duration> {
        match &*self.write_lease.0.borrow() {
            LeaseState::Renewed(at) => Some(at.age()),
            LeaseState::None | LeaseState::Lost(_) => None,
        }
    }

    /// Takes or renews the lease of this run, as of the given moment: nothing is written while it is too old.
    pub fn renew_lease(&self, at: Moment) {
        self.write_lease.0.send_replace(LeaseState::Renewed(at));
    }

    /// Notes that the lease could not be renewed: writes fail for this reason once it has expired.
    pub fn lose_lease_if_expired(&self, reason: &str) {
        if self.lease_age().is_some_and(|age| age >= EXPIRES_AFTER) {
            self.lose_lease(reason);
        }
    }

    /// Takes the lease of this run away: nothing more is written.
    pub fn lose_lease(&self, reason: &str) {
        self.write_lease
            .0
            .send_replace(LeaseState::Lost(reason.to_owned()));
    }

    /// Returns this server for the writes that take, renew and end the lease: they are sent whatever the age of the
    /// lease.
    #[must_use]
    pub fn for_lease_writes(&self) -> Self {
        Self {
            write_lease: WriteLease::default(),
            sent_writes: self.sent_writes.for_lease_writes(),
            ..self.clone()
        }
    }

    /// Ends the lease, so that the run may write without one.
    pub fn end_lease(&self) {
        self.write_lease.0.send_replace(LeaseState::None);
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the server of the test is a closure")]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use http::{Request, Response};
    use kube::client::Body;
    use tokio::time::{advance, timeout};

    use super::*;
    use crate::cluster::apiserver::Patch;

    fn patch(path: &str) -> ApiRequest {
        ApiRequest::patch(path, &[], "application/json", Patch::Merge, Bytes::new())
    }

    fn server() -> ApiServer {
        let service =
            tower::service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())));
        let client = kube::Client::new(service, "default");
        ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1))
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_once_it_has_expired() {
        let server = server();
        let lease = &server.write_lease;
        assert_eq!(lease.wait_until_admitted(&patch("/member")).await, Ok(()));
        server.renew_lease(Moment::now());
        assert_eq!(lease.wait_until_admitted(&patch("/member")).await, Ok(()));
        advance(EXPIRES_AFTER).await;
        let write = patch("/member");
        let held = lease.wait_until_admitted(&write);
        assert!(timeout(Duration::from_hours(1), held).await.is_err());
        assert_eq!(
            lease.wait_until_admitted(&ApiRequest::get("/member", "a")).await,
            Ok(())
        );
        server.lose_lease_if_expired("no answer");
        assert_eq!(
            lease.wait_until_admitted(&patch("/member")).await,
            Err("no answer".to_owned())
        );
        server.renew_lease(Moment::now());
        assert_eq!(lease.wait_until_admitted(&patch("/member")).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_renewal_stops_nothing_before_the_lease_expires() {
        let server = server();
        let lease = &server.write_lease;
        server.renew_lease(Moment::now());
        server.lose_lease_if_expired("no answer");
        assert_eq!(lease.wait_until_admitted(&patch("/member")).await, Ok(()));
        advance(EXPIRES_AFTER).await;
        let write = patch("/member");
        let (held, ()) = tokio::join!(lease.wait_until_admitted(&write), async {
            server.renew_lease(Moment::now());
        });
        assert_eq!(held, Ok(()));
    }
}
