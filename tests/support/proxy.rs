//! A proxy between the program and the API server that counts, writes down, lets writes
//! through one at a time, and breaks exchanges where its watcher wants that.
//!
//! Plain HTTP towards the program, the administrator's connection towards the server.

#![expect(
    clippy::disallowed_types,
    reason = "the far side of the proxy is not part of the program"
)]

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use controlplane::ControlPlane;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::JoinHandle;

use super::cluster::client;
use super::fault::{AnswerBody, Fault, whole};
use super::own::{self, Own};
use super::{eventually, runtime};

/// How long a server that is restarted takes no connections.
const OUTAGE: Duration = Duration::from_millis(300);

/// A running proxy; it takes connections until it is dropped. The port of each trial of the fault table would
/// be more than a process may have open.
pub(crate) struct Proxy {
    relay: Arc<Relay>,
    directory: TempDir,
    serving: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// One request that the program sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    /// Its place among all requests of the proxy.
    pub(crate) number: usize,
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) user_agent: String,
    /// The form of the answer that it asks for.
    pub(crate) accept: String,
    pub(crate) body: Bytes,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The server gets it.
    Forward,
    /// Neither this nor any later write gets to the server, and none is answered.
    Hold,
    /// The exchange is broken.
    Break(Fault),
    /// All connections break, and none is taken any more.
    Vanish,
}

/// Who decides what becomes of requests, and sees what they did. All of it may block.
pub(crate) trait Watch: Send + Sync + 'static {
    /// Asked about each request, with the number of writes carried out so far. While it
    /// is asked about a write, no other one is under way.
    fn before(&self, sent: &Sent, writes: usize) -> Verdict;

    /// Gets what the server has answered, before the program does. No other write is under
    /// way where this was one. What it returns is what the program gets.
    fn after(&self, sent: &Sent, answer: Response<Bytes>) -> Response<Bytes> {
        let _ = sent;
        answer
    }

    /// The most objects on a page of a list, where the program asks for more.
    fn page_size(&self) -> Option<usize> {
        None
    }
}

/// Has something done once, before the first request that `is_it`.
struct BeforeRequest<I, F> {
    is_it: I,
    act: F,
    is_done: AtomicBool,
}

impl<I, F> Watch for BeforeRequest<I, F>
where
    I: Fn(&Sent) -> bool + Send + Sync + 'static,
    F: Fn() + Send + Sync + 'static,
{
    fn before(&self, sent: &Sent, _writes: usize) -> Verdict {
        if (self.is_it)(sent) && !self.is_done.swap(true, Ordering::SeqCst) {
            (self.act)();
        }
        Verdict::Forward
    }
}

/// Breaks the requests that `is_it`.
struct Breaking<I> {
    fault: Fault,
    is_it: I,
}

impl<I: Fn(&Sent) -> bool + Send + Sync + 'static> Watch for Breaking<I> {
    fn before(&self, sent: &Sent, _writes: usize) -> Verdict {
        if (self.is_it)(sent) {
            Verdict::Break(self.fault)
        } else {
            Verdict::Forward
        }
    }
}

/// Asked before each write alone.
struct Gate<F>(F);

impl<F: Fn(usize) -> Verdict + Send + Sync + 'static> Watch for Gate<F> {
    fn before(&self, sent: &Sent, writes: usize) -> Verdict {
        if sent.is_write() {
            self.0(writes)
        } else {
            Verdict::Forward
        }
    }
}

/// Whether connections are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Open,
    Shut,
}

struct Relay {
    server: kube::Client,
    watch: Arc<dyn Watch>,
    /// The control plane of the test; `None` for the shared one.
    own: Option<&'static Own>,
    /// Writes carried out; locked while one is under way.
    writes: AsyncMutex<usize>,
    is_holding: AtomicBool,
    sent: Mutex<Vec<Sent>>,
    /// Exchanges that are not over.
    under_way: AtomicUsize,
    door: watch::Sender<Door>,
}

/// How an exchange ends.
enum End {
    Answered(Response<AnswerBody>),
    /// No answer ever comes.
    Never,
    /// The connection is closed.
    Closed,
}

impl Sent {
    /// Whether it asks for a change, be it in a dry run. Who a user is and what a user may do
    /// is asked by POST, and changes nothing.
    pub(crate) fn is_write(&self) -> bool {
        let is_review = ["/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"]
            .iter()
            .any(|group| self.path.starts_with(group));
        !matches!(self.method, Method::GET | Method::HEAD) && !is_review
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

    /// Asks the gate before each write with the number of writes carried out so far. No
    /// write is under way in the meantime.
    pub(crate) fn gated(gate: impl Fn(usize) -> Verdict + Send + Sync + 'static) -> Self {
        Self::watched(Arc::new(Gate(gate)))
    }

    /// Holds the write with this number: reports when it has come, and lets it go when it is reported.
    pub(crate) fn held_at(write: usize) -> (Self, Receiver<()>, Sender<()>) {
        let (reached, is_reached) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let ends = Mutex::new((reached, released));
        let proxy = Self::before_write(write, move || {
            let (reached, released) = &*ends.lock().expect("no panic");
            let _ = reached.send(());
            let _ = released.recv();
        });
        (proxy, is_reached, release)
    }

    /// Has something done once, before the write with this number; the first one is 0.
    pub(crate) fn before_write(write: usize, act: impl Fn() + Send + Sync + 'static) -> Self {
        let is_done = AtomicBool::new(false);
        Self::gated(move |writes| {
            if writes == write && !is_done.swap(true, Ordering::SeqCst) {
                act();
            }
            Verdict::Forward
        })
    }

    /// Has something done once, before the first request that `is_it`.
    pub(crate) fn before_request(
        is_it: impl Fn(&Sent) -> bool + Send + Sync + 'static,
        act: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self::watched(Arc::new(BeforeRequest {
            is_it,
            act,
            is_done: AtomicBool::new(false),
        }))
    }

    /// Breaks each request that `is_it`, which is asked before every one.
    pub(crate) fn breaking(fault: Fault, is_it: impl Fn(&Sent) -> bool + Send + Sync + 'static) -> Self {
        Self::watched(Arc::new(Breaking { fault, is_it }))
    }

    /// Asks and reports a watcher.
    pub(crate) fn watched(watch: Arc<dyn Watch>) -> Self {
        Self::before_server(super::cluster().client(), watch)
    }

    /// The same before a control plane of a test's own.
    pub(crate) fn before(control_plane: &ControlPlane, watch: Arc<dyn Watch>) -> Self {
        Self::before_server(client(control_plane.admin_kubeconfig()), watch)
    }

    fn before_server(server: kube::Client, watch: Arc<dyn Watch>) -> Self {
        let relay = Arc::new(Relay {
            server,
            watch,
            own: own::current(),
            writes: AsyncMutex::new(0),
            is_holding: AtomicBool::new(false),
            sent: Mutex::new(Vec::new()),
            under_way: AtomicUsize::new(0),
            door: watch::Sender::new(Door::Open),
        });
        let listener = runtime()
            .block_on(TcpListener::bind(("127.0.0.1", 0)))
            .expect("a free port");
        let address = listener.local_addr().expect("an address");
        let serving = runtime().spawn(serve(listener, address, Arc::clone(&relay)));
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("kubeconfig"), kubeconfig(address)).expect("a kubeconfig");
        Self {
            relay,
            directory,
            serving,
        }
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

    /// Returns once the server is at work on nothing of what the program has sent.
    pub(crate) fn settle(&self) {
        eventually("nothing is under way", || {
            (self.relay.under_way.load(Ordering::SeqCst) == 0).then_some(())
        });
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

async fn serve(listener: TcpListener, address: SocketAddr, relay: Arc<Relay>) {
    let mut door = relay.door.subscribe();
    let mut open = Some(listener);
    loop {
        let listener = match open.take() {
            Some(listener) => listener,
            None => TcpListener::bind(address).await.expect("the port of before"),
        };
        tokio::select! {
            () = accept(&listener, &relay) => {}
            shut = door.wait_for(|door| *door == Door::Shut) => drop(shut),
        }
        drop(listener);
        if door.wait_for(|door| *door == Door::Open).await.is_err() {
            return;
        }
    }
}

async fn accept(listener: &TcpListener, relay: &Arc<Relay>) {
    while let Ok((stream, _)) = listener.accept().await {
        let relay = Arc::clone(relay);
        let mut door = relay.door.subscribe();
        tokio::spawn(async move {
            let answer = service_fn(|request| Arc::clone(&relay).answer(request));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
            // A program that was killed breaks its connections; no client is left to answer.
            tokio::select! {
                _ = connection => {}
                shut = door.wait_for(|door| *door == Door::Shut) => drop(shut),
            }
        });
    }
}

fn header_of(headers: &HeaderMap, name: header::HeaderName) -> String {
    let value = headers.get(name);
    value
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .unwrap_or_default()
}

impl Relay {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> io::Result<Response<AnswerBody>> {
        let (head, body) = request.into_parts();
        let Ok(body) = body.collect().await else {
            return Ok(refusal("the request ended early").map(whole));
        };
        let mut sent = Sent {
            number: 0,
            method: head.method,
            path: head
                .uri
                .path_and_query()
                .map_or("/", |path| path.as_str())
                .to_owned(),
            user_agent: header_of(&head.headers, header::USER_AGENT),
            accept: header_of(&head.headers, header::ACCEPT),
            body: body.to_bytes(),
        };
        {
            let mut all = self.sent.lock().expect("no panic in the proxy");
            sent.number = all.len();
            all.push(sent.clone());
        }
        self.under_way.fetch_add(1, Ordering::SeqCst);
        // What the server was asked for happens, whether or not anybody waits for it.
        let exchange = tokio::spawn(async move {
            let end = self.exchange(sent, &head.headers).await;
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            end
        });
        match exchange.await {
            Ok(End::Answered(response)) => Ok(response),
            Ok(End::Never) => pending().await,
            Ok(End::Closed) | Err(_) => Err(io::Error::other("closed")),
        }
    }

    async fn exchange(self: &Arc<Self>, sent: Sent, headers: &HeaderMap) -> End {
        let mut writes = None;
        if sent.is_write() {
            writes = Some(self.writes.lock().await);
            if self.holds() {
                return End::Never;
            }
        }
        let carried_out = writes.as_deref().copied().unwrap_or_default();
        let fault = match self.ask(&sent, carried_out).await {
            Verdict::Hold => {
                self.is_holding.store(true, Ordering::SeqCst);
                return End::Never;
            }
            Verdict::Break(Fault::Refused) => {
                self.shut();
                let door = self.door.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(OUTAGE).await;
                    door.send_replace(Door::Open);
                });
                return End::Closed;
            }
            Verdict::Vanish => {
                self.shut();
                return End::Closed;
            }
            Verdict::Forward => None,
            Verdict::Break(fault) => Some(fault),
        };
        if let Some(fault) = fault.filter(|fault| !fault.is_carried_out()) {
            return end(fault, None);
        }
        let response = self.forward(&sent, headers).await;
        if let Some(writes) = &mut writes {
            **writes += 1;
        }
        let response = self.report(sent, response).await;
        drop(writes);
        match fault {
            Some(fault) => end(fault, Some(response)),
            None => End::Answered(response.map(whole)),
        }
    }

    fn holds(&self) -> bool {
        self.is_holding.load(Ordering::SeqCst)
    }

    fn shut(&self) {
        self.door.send_replace(Door::Shut);
    }

    async fn ask(self: &Arc<Self>, sent: &Sent, writes: usize) -> Verdict {
        let (watch, sent, own) = (Arc::clone(&self.watch), sent.clone(), self.own);
        tokio::task::spawn_blocking(move || own::on_behalf_of(own, || watch.before(&sent, writes)))
            .await
            .unwrap_or(Verdict::Hold)
    }

    async fn report(&self, sent: Sent, answer: Response<Bytes>) -> Response<Bytes> {
        let (watch, own) = (Arc::clone(&self.watch), self.own);
        tokio::task::spawn_blocking(move || own::on_behalf_of(own, || watch.after(&sent, answer)))
            .await
            .unwrap_or_else(|_| refusal("the watcher failed"))
    }

    fn request(&self, sent: &Sent, headers: &HeaderMap) -> Request<Body> {
        let path = match self.watch.page_size() {
            Some(size) => with_pages_of(size, &sent.path),
            None => sent.path.clone(),
        };
        let mut request = Request::new(Body::from(sent.body.clone()));
        *request.method_mut() = sent.method.clone();
        *request.uri_mut() = path.parse().expect("a path that was parsed before");
        *request.headers_mut() = end_to_end(headers);
        request
    }

    async fn forward(&self, sent: &Sent, headers: &HeaderMap) -> Response<Bytes> {
        let answer = async {
            let request = self.request(sent, headers);
            let (mut head, body) = self.server.send(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            head.headers = end_to_end(&head.headers);
            Ok::<_, kube::Error>(Response::from_parts(head, body))
        };
        answer.await.unwrap_or_else(|error| refusal(&error.to_string()))
    }
}

/// What the program gets to see of an exchange with this fault.
fn end(fault: Fault, response: Option<Response<Bytes>>) -> End {
    if let Some(answer) = fault.answer() {
        return End::Answered(answer);
    }
    if let Some(spoilt) = response.and_then(|response| fault.spoil(response)) {
        return End::Answered(spoilt);
    }
    if fault.is_endless() {
        End::Never
    } else {
        End::Closed
    }
}

/// The path, where it asks for a page of more objects than this, with a smaller page.
fn with_pages_of(size: usize, path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let parameters = query.split('&').map(|parameter| {
        let limit = parameter
            .strip_prefix("limit=")
            .and_then(|limit| limit.parse::<usize>().ok());
        match limit {
            Some(limit) if limit > size => format!("limit={size}"),
            _ => parameter.to_owned(),
        }
    });
    let parameters: Vec<String> = parameters.collect();
    format!("{path}?{}", parameters.join("&"))
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

fn refusal(reason: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(reason.to_owned()));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}
