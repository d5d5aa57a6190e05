//! Opens connections before requests need them: over a slow link, the handshakes of a connection take as long as two
//! requests.
//!
//! Early connections are only for requests that follow within seconds. Servers and load balancers close idle
//! connections, and a request on a closed connection fails.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tower::{Service, ServiceExt as _};

use crate::cluster::apiserver::ConnectionOpener;

/// The time for which an unused connection is kept. Some load balancers close idle connections after half a minute.
const MAX_IDLE_TIME: Duration = Duration::from_secs(5);

/// A connector that first returns the connections that were opened early, and then opens new ones.
pub(super) struct EarlyConnector<C: Service<Uri>> {
    connector: C,
    /// The server to which connections are opened early.
    server: Uri,
    max_idle_time: Duration,
    opened: Arc<Mutex<Opened<C::Response, C::Error>>>,
}

impl<C: Service<Uri>> EarlyConnector<C> {
    /// Wraps a connector. It opens connections to this server early.
    pub(super) fn new(connector: C, server: Uri) -> Self {
        let opened = Opened {
            early: VecDeque::new(),
            all: 0,
        };
        Self {
            connector,
            server,
            max_idle_time: MAX_IDLE_TIME,
            opened: Arc::new(Mutex::new(opened)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Opened<C::Response, C::Error>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Service<Uri> + Clone> Clone for EarlyConnector<C> {
    fn clone(&self) -> Self {
        Self {
            connector: self.connector.clone(),
            server: self.server.clone(),
            max_idle_time: self.max_idle_time,
            opened: Arc::clone(&self.opened),
        }
    }
}

impl<C> Service<Uri> for EarlyConnector<C>
where
    C: Service<Uri> + Clone + Send + 'static,
    C::Response: Send + 'static,
    C::Error: Send + 'static,
    C::Future: Send,
{
    type Response = C::Response;
    type Error = C::Error;
    type Future = Pin<Box<dyn Future<Output = Result<C::Response, C::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let early = {
            let mut opened = self.lock();
            let early = opened.take_young_connection(self.max_idle_time);
            opened.all += usize::from(early.is_none());
            early
        };
        let connector = self.connector.clone();
        let max_idle_time = self.max_idle_time;
        Box::pin(async move {
            if let Some(EarlyConnection { since, opening }) = early
                && let Ok(opened) = opening.await
                && (opened.is_ok() || since.elapsed() >= max_idle_time)
            {
                return opened;
            }
            connector.oneshot(server).await
        })
    }
}

/// The connections that all clones of a connector have opened.
struct Opened<S, E> {
    /// The early connections that no request has needed yet, the oldest first.
    early: VecDeque<EarlyConnection<S, E>>,
    /// The number of connections that were opened so far, early or for a request. Early connections that were closed
    /// unused do not count.
    all: usize,
}

impl<S, E> Opened<S, E> {
    /// Removes the oldest early connection that is young enough, and returns it.
    fn take_young_connection(&mut self, max_idle_time: Duration) -> Option<EarlyConnection<S, E>> {
        self.close_idle_for(max_idle_time);
        self.early.pop_front()
    }

    fn close_idle_for(&mut self, idle_time: Duration) {
        while self
            .early
            .pop_front_if(|early| early.since.elapsed() >= idle_time)
            .is_some()
        {
            self.all -= 1;
        }
    }
}

struct EarlyConnection<S, E> {
    since: Instant,
    /// The attempt to open the connection. If it failed at once, the request that takes this connection opens another
    /// one. If it failed after a long time, such as a time limit, the request fails with the same error: another
    /// attempt would take as long again.
    opening: JoinHandle<Result<S, E>>,
}

impl<C> ConnectionOpener for EarlyConnector<C>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Send + 'static,
    C::Error: Send + 'static,
    C::Future: Send,
{
    fn open_up_to(&self, count: usize) {
        let mut opened = self.lock();
        if opened.all >= count {
            return;
        }
        for _ in opened.all..count {
            let opening = self.connector.clone().oneshot(self.server.clone());
            opened.early.push_back(EarlyConnection {
                since: Instant::now(),
                opening: tokio::spawn(opening),
            });
            opened.all += 1;
        }
        let early_connector = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(early_connector.max_idle_time).await;
            early_connector
                .lock()
                .close_idle_for(early_connector.max_idle_time);
        });
    }

    fn close_unused_connections(&self) {
        self.lock().close_idle_for(Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn server() -> Uri {
        Uri::from_static("https://example.com")
    }

    /// A connector that numbers its connections, and cannot open the second one.
    fn numbering(
        attempts: &Arc<AtomicUsize>,
    ) -> impl Service<Uri, Response = usize, Error = &'static str, Future: Send> + Clone + Send + Sync + 'static
    {
        let attempts = Arc::clone(attempts);
        tower::service_fn(move |_: Uri| {
            let attempt = attempts.fetch_add(1, Ordering::SeqCst);
            async move { if attempt == 1 { Err("refused") } else { Ok(attempt) } }
        })
    }

    #[tokio::test]
    async fn requests_get_the_early_connections_first_and_a_new_one_for_one_that_failed() {
        let attempts = Arc::new(AtomicUsize::new(0));
        let mut connector = EarlyConnector::new(numbering(&attempts), server());
        let opener = connector.clone();
        opener.open_up_to(3);
        tokio::task::yield_now().await;
        assert_eq!(attempts.load(Ordering::SeqCst), 3);
        let mut connections = Vec::new();
        for _ in 0..4 {
            connections.push(connector.call(server()).await);
        }
        assert_eq!(connections, [Ok(0), Ok(3), Ok(2), Ok(4)]);
        opener.open_up_to(4);
        tokio::task::yield_now().await;
        assert_eq!(attempts.load(Ordering::SeqCst), 5);
        opener.open_up_to(5);
        tokio::task::yield_now().await;
        assert_eq!(attempts.load(Ordering::SeqCst), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn the_error_of_a_connection_that_took_long_is_that_of_the_request() {
        let attempts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&attempts);
        let failing = tower::service_fn(move |_: Uri| {
            counted.fetch_add(1, Ordering::SeqCst);
            async {
                tokio::time::sleep(Duration::from_secs(10)).await;
                Err::<usize, _>("timed out")
            }
        });
        let mut connector = EarlyConnector::new(failing, server());
        connector.open_up_to(1);
        assert_eq!(connector.call(server()).await, Err("timed out"));
        assert_eq!(attempts.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn connections_that_may_be_closed_are_not_used() {
        let attempts = Arc::new(AtomicUsize::new(2));
        let mut connector = EarlyConnector::new(numbering(&attempts), server());
        let opener = connector.clone();
        opener.open_up_to(2);
        tokio::task::yield_now().await;
        opener.close_unused_connections();
        assert_eq!(connector.call(server()).await, Ok(4));
        assert_eq!(connector.lock().all, 1);

        connector.max_idle_time = Duration::ZERO;
        connector.open_up_to(3);
        tokio::task::yield_now().await;
        assert_eq!(connector.call(server()).await, Ok(7));
        assert_eq!(connector.lock().all, 2);
    }
}
