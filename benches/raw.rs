//! What all others are compared with: server-side apply and deletes over open connections, without any tool.
//! Bodies are prepared and connections are open before the clock starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use hyper::body::Bytes;
use serde_json::Value;

use crate::Result;
use crate::connection::{Address, Connection};
use crate::kinds::collection;

/// Connections, and so requests under way at once.
pub(crate) const CONNECTIONS: usize = 16;

/// Requests that are ready to be sent.
pub(crate) struct Prepared(Arc<Vec<Write>>);

enum Write {
    /// The path with its query, and the body.
    Apply(String, Bytes),
    /// The path.
    Delete(String),
}

impl Prepared {
    /// Server-side apply of each object, into `namespace` where it names none itself.
    pub(crate) fn new(objects: &[Value], namespace: &str) -> Self {
        let prepare = |object: &Value| {
            let path = format!("{}?fieldManager=bench", path(object, namespace));
            Write::Apply(path, Bytes::from(object.to_string()))
        };
        Self(Arc::new(objects.iter().map(prepare).collect()))
    }

    /// The delete of each object.
    pub(crate) fn deletes(objects: &[Value], namespace: &str) -> Self {
        let prepare = |object| Write::Delete(path(object, namespace));
        Self(Arc::new(objects.iter().map(prepare).collect()))
    }

    /// Sends them all, and returns how long that took, in seconds.
    pub(crate) async fn send(&self, address: &Address) -> Result<f64> {
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            connections.push(Connection::open(address).await?);
        }
        let next = Arc::new(AtomicUsize::new(0));
        let start = Instant::now();
        let senders: Vec<_> = connections
            .into_iter()
            .map(|mut connection| {
                let (requests, next) = (Arc::clone(&self.0), Arc::clone(&next));
                tokio::spawn(async move {
                    while let Some(write) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                        match write {
                            Write::Apply(path, body) => connection.apply(path, body.clone()).await?,
                            Write::Delete(path) => connection.delete(path).await?,
                        }
                    }
                    Ok::<_, crate::Failure>(())
                })
            })
            .collect();
        for sender in senders {
            sender.await??;
        }
        Ok(start.elapsed().as_secs_f64())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

fn path(object: &Value, namespace: &str) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    format!("{}/{name}", collection(object, namespace))
}
