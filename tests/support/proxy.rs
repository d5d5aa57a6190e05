//! A proxy between the program and the API server that counts, writes down, and lets
//! writes through one at a time, as far as a gate allows.
//!
//! Plain HTTP towards the program, the administrator's connection towards the server.

#![expect(
    clippy::disallowed_types,
    reason = "the far side of the proxy is no part of the program"
)]

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use controlplane::ControlPlane;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Mutex as AsyncMutex;

use super::cluster::client;
use super::runtime;

/// A running proxy; it serves until the tests end.
pub(crate) struct Proxy {
    relay: Arc<Relay>,
    directory: TempDir,
}

/// One request that the program sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) body: Bytes,
}

/// What becomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The server gets it.
    Forward,
    /// Neither this nor any later write gets to the server, and none is answered.
    Hold,
}

/// Asked before each write with the number of writes carried out so far. No write is
/// under way meanwhile.
type Gate = dyn Fn(usize) -> Verdict + Send + Sync;

struct Relay {
    server: kube::Client,
    gate: Arc<Gate>,
    /// Writes carried out; locked while one is under way.
    writes: AsyncMutex<usize>,
    is_holding: AtomicBool,
    sent: Mutex<Vec<Sent>>,
}

impl Sent {
    /// Whether it asks for a change, be it in a dry run. What a user may do is asked by
    /// POST, and changes nothing.
    pub(crate) fn is_write(&self) -> bool {
        !matches!(self.method, Method::GET | Method::HEAD)
            && !self.path.starts_with("/apis/authorization.k8s.io/")
    }
}

impl Proxy {
    /// Forwards everything.
    pub(crate) fn transparent() -> Self {
        Self::gated(|_| Verdict::Forward)
    }

    /// Carries out this many writes, and holds the next one.
    pub(crate) fn holding_after(writes: usize) -> Self {
        Self::gated(move |carried_out| {
            if carried_out < writes {
                Verdict::Forward
            } else {
                Verdict::Hold
            }
        })
    }

    /// Asks the gate before each write.
    pub(crate) fn gated(gate: impl Fn(usize) -> Verdict + Send + Sync + 'static) -> Self {
        let relay = Arc::new(Relay {
            server: client(ControlPlane::shared().admin_kubeconfig()),
            gate: Arc::new(gate),
            writes: AsyncMutex::new(0),
            is_holding: AtomicBool::new(false),
            sent: Mutex::new(Vec::new()),
        });
        let listener = runtime()
            .block_on(TcpListener::bind(("127.0.0.1", 0)))
            .expect("a free port");
        let address = listener.local_addr().expect("an address");
        runtime().spawn(serve(listener, Arc::clone(&relay)));
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("kubeconfig"), kubeconfig(address)).expect("a kubeconfig");
        Self { relay, directory }
    }

    /// A kubeconfig that leads here.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    /// Whether a write was held.
    pub(crate) fn holds(&self) -> bool {
        self.relay.is_holding.load(Ordering::SeqCst)
    }

    /// What the program has sent so far.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.relay.sent.lock().expect("no panic in the proxy").clone()
    }
}

fn kubeconfig(address: SocketAddr) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "proxy", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "anyone", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "anyone"}}],
        "current-context": "proxy",
    })
    .to_string()
}

async fn serve(listener: TcpListener, relay: Arc<Relay>) {
    while let Ok((stream, _)) = listener.accept().await {
        let relay = Arc::clone(&relay);
        tokio::spawn(async move {
            let answer = service_fn(|request| {
                let relay = Arc::clone(&relay);
                async move { Ok::<_, Infallible>(relay.answer(request).await) }
            });
            // A program that was killed breaks its connections; nobody is left to tell.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

impl Relay {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let Ok(body) = body.collect().await else {
            return refusal("the request ended early");
        };
        let sent = Sent {
            method: head.method,
            path: head
                .uri
                .path_and_query()
                .map_or("/", |path| path.as_str())
                .to_owned(),
            body: body.to_bytes(),
        };
        self.sent
            .lock()
            .expect("no panic in the proxy")
            .push(sent.clone());
        if !sent.is_write() {
            return self.forward(sent, &head.headers).await;
        }
        let mut writes = self.writes.lock().await;
        if self.is_holding.load(Ordering::SeqCst) || self.ask(*writes).await == Verdict::Hold {
            self.is_holding.store(true, Ordering::SeqCst);
            drop(writes);
            return pending().await;
        }
        let response = self.forward(sent, &head.headers).await;
        *writes += 1;
        response
    }

    async fn ask(&self, writes: usize) -> Verdict {
        let gate = Arc::clone(&self.gate);
        tokio::task::spawn_blocking(move || gate(writes))
            .await
            .unwrap_or(Verdict::Hold)
    }

    async fn forward(&self, sent: Sent, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let mut request = Request::new(Body::from(sent.body));
        *request.method_mut() = sent.method;
        *request.uri_mut() = sent.path.parse().expect("a path that was parsed before");
        *request.headers_mut() = end_to_end(headers);
        let answer = async {
            let (mut head, body) = self.server.send(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            head.headers = end_to_end(&head.headers);
            Ok::<_, kube::Error>(Response::from_parts(head, Full::new(body)))
        };
        answer.await.unwrap_or_else(|error| refusal(&error.to_string()))
    }
}

/// The headers without those of one connection.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for name in [
        header::HOST,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
    ] {
        headers.remove(name);
    }
    headers
}

fn refusal(reason: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(reason.to_owned())));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}
