//! Connections that are opened before requests need them: over a slow link, the handshakes of a connection
//! take as long as two requests.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::Uri;
use tokio::task::JoinHandle;
use tower::{Service, ServiceExt as _};

use crate::cluster::apiserver::OpenConnections;

/// A connector that returns connections that were opened early, and opens others.
pub(super) struct EarlyConnections<C: Service<Uri>> {
    connector: C,
    opened: Arc<Mutex<Opened<C::Response>>>,
}

/// The connections of all clones of a connector.
struct Opened<S> {
    /// Those that no request has needed yet. `None` instead of one that cannot be opened: the request that
    /// needs it tries again, and reports the error.
    early: VecDeque<JoinHandle<Option<S>>>,
    /// The number of all connections, those of requests included.
    all: usize,
}

impl<C> EarlyConnections<C>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Send + 'static,
    C::Future: Send,
{
    /// Wraps a connector.
    pub(super) fn new(connector: C) -> Self {
        let opened = Opened {
            early: VecDeque::new(),
            all: 0,
        };
        Self {
            connector,
            opened: Arc::new(Mutex::new(opened)),
        }
    }

    /// Returns the function that opens connections to this server early, in the background.
    pub(super) fn open_to(&self, server: Uri) -> OpenConnections {
        let Self { connector, opened } = self.clone();
        OpenConnections::new(move |wanted| {
            let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
            for _ in opened.all..wanted {
                let opening = connector.clone().oneshot(server.clone());
                let opening = tokio::spawn(async { opening.await.ok() });
                opened.early.push_back(opening);
                opened.all += 1;
            }
        })
    }
}

impl<C: Service<Uri> + Clone> Clone for EarlyConnections<C> {
    fn clone(&self) -> Self {
        Self {
            connector: self.connector.clone(),
            opened: Arc::clone(&self.opened),
        }
    }
}

impl<C> Service<Uri> for EarlyConnections<C>
where
    C: Service<Uri> + Clone + Send + 'static,
    C::Response: Send + 'static,
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
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            let early = opened.early.pop_front();
            opened.all += usize::from(early.is_none());
            early
        };
        let connector = self.connector.clone();
        Box::pin(async move {
            if let Some(early) = early
                && let Ok(Some(connection)) = early.await
            {
                return Ok(connection);
            }
            connector.oneshot(server).await
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

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
        let mut connector = EarlyConnections::new(numbering(&attempts));
        let uri = Uri::from_static("https://example.com");
        let open = connector.open_to(uri.clone());
        open.until(3);
        tokio::task::yield_now().await;
        assert_eq!(attempts.load(Ordering::SeqCst), 3);
        let mut connections = Vec::new();
        for _ in 0..4 {
            connections.push(connector.call(uri.clone()).await);
        }
        assert_eq!(connections, [Ok(0), Ok(3), Ok(2), Ok(4)]);
        open.until(4);
        tokio::task::yield_now().await;
        assert_eq!(attempts.load(Ordering::SeqCst), 5);
        open.until(5);
        tokio::task::yield_now().await;
        assert_eq!(attempts.load(Ordering::SeqCst), 6);
    }
}
