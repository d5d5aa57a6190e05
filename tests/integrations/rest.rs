//! A stand-in for the REST interface of GitHub: one repository with comments, runs and artifacts.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::runtime;

/// The repository.
pub(super) const REPOSITORY: &str = "shop/manifests";
/// What the job of a workflow proves its identity with.
pub(super) const TOKEN: &str = "token-of-the-job";
/// Who writes comments with it.
pub(super) const BOT: &str = "github-actions[bot]";

/// A running server; it serves until the tests end.
pub(super) struct Rest {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

/// What the repository has.
#[derive(Default)]
pub(super) struct State {
    /// `{"id", "user": {"login"}, "body"}`, all of one pull request.
    pub(super) comments: Vec<Value>,
    /// The answers about runs.
    pub(super) runs: Vec<Value>,
    /// The answers about artifacts, and their content.
    pub(super) artifacts: Vec<(Value, Vec<u8>)>,
    /// The answers about the pull requests of each commit.
    pub(super) pull_requests: Value,
    /// The commit of each branch and tag.
    pub(super) refs: Value,
}

impl State {
    /// Adds a comment on the pull request.
    pub(super) fn comment(&mut self, login: &str, body: &str) {
        let id = self.comments.len() + 1;
        let comment = json!({"id": id, "user": {"login": login}, "body": body});
        self.comments.push(comment);
    }

    /// The text of the comments that the action has written.
    pub(super) fn own_comments(&self) -> Vec<&str> {
        let own = self
            .comments
            .iter()
            .filter(|comment| comment["user"]["login"] == BOT);
        own.filter_map(|comment| comment["body"].as_str()).collect()
    }
}

impl Rest {
    pub(super) fn start() -> Self {
        let listener = runtime().block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let listener = listener.expect("a free port");
        let rest = Self {
            address: listener.local_addr().expect("an address"),
            state: Arc::default(),
        };
        let state = Arc::clone(&rest.state);
        runtime().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&state);
                tokio::spawn(async move {
                    let service = service_fn(|request| respond(Arc::clone(&state), request));
                    // A client that has its answer closes the connection.
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        rest
    }

    /// `GITHUB_API_URL`
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic in the server")
    }
}

async fn respond(
    state: Arc<Mutex<State>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let is_known = head.headers.get("authorization").is_some_and(|header| {
        let expected = format!("Bearer {TOKEN}");
        header.as_bytes() == expected.as_bytes()
    });
    let path = head.uri.path().strip_prefix(&format!("/repos/{REPOSITORY}/"));
    let answer = match path {
        _ if !is_known => None,
        None => None,
        Some(path) => {
            let page = head.uri.query().and_then(|query| query.split_once("&page="));
            let page = page.map_or(1, |(_, page)| page.parse().expect("a number"));
            let mut state = state.lock().expect("no panic in the server");
            answer(&mut state, head.method.as_str(), path, page, &body)
        }
    };
    let status = if answer.is_some() {
        StatusCode::OK
    } else {
        StatusCode::NOT_FOUND
    };
    let body = answer.unwrap_or(json!({"message": "Not Found"})).to_string();
    let response = Response::builder().status(status);
    Ok(response.body(Full::new(Bytes::from(body))).expect("a response"))
}

/// `None` for what is not found, and for what the token may not do: GitHub answers both alike.
fn answer(state: &mut State, method: &str, path: &str, page: usize, body: &[u8]) -> Option<Value> {
    let words: Vec<&str> = path.split('/').collect();
    let text = || {
        let body: Value = serde_json::from_slice(body).expect("JSON");
        body["body"].as_str().expect("a text").to_owned()
    };
    match (method, words.as_slice()) {
        ("GET", ["issues", _, "comments"]) => {
            let comments = state.comments.iter().skip((page - 1) * 100).take(100);
            Some(comments.cloned().collect())
        }
        ("POST", ["issues", _, "comments"]) => {
            state.comment(BOT, &text());
            state.comments.last().cloned()
        }
        ("PATCH", ["issues", "comments", id]) => {
            let comment = state
                .comments
                .iter_mut()
                .find(|comment| has_number(&comment["id"], id));
            let comment = comment?;
            comment["body"] = Value::from(text());
            Some(comment.clone())
        }
        ("GET", ["actions", "runs", id]) => {
            let run = state.runs.iter().find(|run| has_number(&run["id"], id));
            run.cloned()
        }
        ("GET", ["actions", "runs", id, "artifacts"]) => {
            let artifacts = state.artifacts.iter().map(|(artifact, _)| artifact);
            let of_run = artifacts.filter(|artifact| has_number(&artifact["workflow_run"]["id"], id));
            Some(json!({"artifacts": of_run.cloned().collect::<Vec<_>>()}))
        }
        ("GET", ["git", "matching-refs", name @ ..]) => {
            let beginning = format!("refs/{}", name.join("/"));
            let known = state.refs.as_object().into_iter().flatten();
            let matching = known.filter(|(name, _)| name.starts_with(&beginning));
            Some(
                matching
                    .map(|(name, commit)| json!({"ref": name, "object": {"sha": commit}}))
                    .collect(),
            )
        }
        ("GET", ["commits", commit, "pulls"]) => {
            let none = json!([]);
            Some(state.pull_requests.get(*commit).cloned().unwrap_or(none))
        }
        _ => None,
    }
}

/// Returns whether this number is written so.
pub(super) fn has_number(number: &Value, text: &str) -> bool {
    number.as_u64() == text.parse().ok()
}
