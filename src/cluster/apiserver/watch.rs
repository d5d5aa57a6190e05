//! A watch: one request with a streamed answer, an event per line.

use std::time::Duration;

use bytes::BytesMut;
use http::header;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::answer_body::check_number_of_values;
use super::failed_attempt::FailedAttempt;
use super::{
    ApiError, ApiErrorKind, ApiRequest, ApiServer, Content, EarlierAttempts, RequestEffect, Route, Status,
};

/// Limit of one event in bytes, which is that of an object.
const LONGEST_EVENT: usize = 8 << 20;

/// Changes of a collection, as they happen.
pub struct Watch {
    body: Body,
    read: BytesMut,
    /// The number of bytes at the beginning of `read` that are known to hold no line end.
    searched: usize,
    route: std::sync::Arc<Route>,
    /// The longest time between two reads.
    silence: Duration,
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchEvent {
    pub change: Change,
    /// The object after the change; for a deleted object, its last known state.
    pub object: Value,
}

/// The change of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The object was created, or is selected from now on.
    Added,
    /// The object has changed.
    Modified,
    /// The object was deleted, or is no longer selected.
    Gone,
    /// No object has changed; the server sends its current resourceVersion.
    Bookmark,
}

#[derive(Deserialize)]
struct WatchLine {
    #[serde(rename = "type")]
    kind: String,
    object: Value,
}

impl ApiServer {
    /// Begins a watch; `path` includes the query. The request is not repeated if it fails, because the caller lists
    /// again whenever a watch ends. Objects come in the form that `accept` names. The watch fails if nothing arrives
    /// within `longest_silence`.
    pub async fn watch(
        &self,
        path: &str,
        accept: &str,
        longest_silence: Duration,
    ) -> Result<Watch, ApiError> {
        let request = ApiRequest::get(path, accept);
        let error = |kind: ApiErrorKind| ApiError {
            method: request.method.clone(),
            path: path.to_owned(),
            kind: Box::new(kind),
            earlier_attempts: EarlierAttempts::NoEffect,
        };
        let next_request = self.build_request_and_wait_to_send(&request).await;
        let mut http_request = next_request.map_err(|failure| error(failure.kind))?;
        // A server that compresses would hold back an event until there are enough of them.
        let identity = header::HeaderValue::from_static("identity");
        http_request
            .headers_mut()
            .insert(header::ACCEPT_ENCODING, identity);
        let sent = Instant::now();
        let Ok(sending) = timeout(self.request_timeout, self.client.send(http_request)).await else {
            return Err(error(self.note_timeout(sent).kind));
        };
        let response = sending.map_err(|cause| error(self.note_broken_connection(&cause, sent).kind))?;
        self.breaker.note_answer(response.status(), sent.elapsed());
        let (head, body) = response.into_parts();
        if head.status.is_success() {
            return Ok(Watch {
                body,
                read: BytesMut::new(),
                searched: 0,
                route: self.route.clone(),
                silence: longest_silence,
            });
        }
        let reading = self.answer_memory.read_within_limits(body, Content::Object);
        let in_time = timeout(self.request_timeout, reading).await;
        let body = in_time.ok().and_then(Result::ok).unwrap_or_default();
        Err(error(
            FailedAttempt::from_status_answer(RequestEffect::Nothing, head.status, &head.headers, &body).kind,
        ))
    }
}

impl Watch {
    /// Waits for the next event; returns `None` when the server has ended the watch, as it does from time to time.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, ApiErrorKind>> {
        loop {
            let unsearched = self.read.iter().skip(self.searched);
            if let Some(end) = unsearched.copied().position(|byte| byte == b'\n') {
                let line = self.read.split_to(self.searched + end + 1);
                self.searched = 0;
                return Some(parse_event(&line));
            }
            self.searched = self.read.len();
            if self.read.len() > LONGEST_EVENT {
                let text = "incomplete watch event".to_owned();
                return Some(Err(ApiErrorKind::Unreadable(text)));
            }
            match timeout(self.silence, self.body.frame()).await {
                Err(_) => return Some(Err(FailedAttempt::for_timeout(&self.route, self.silence).kind)),
                Ok(None) => return None,
                Ok(Some(Err(error))) => {
                    return Some(Err(FailedAttempt::from_connection_error(&self.route, &error).kind));
                }
                Ok(Some(Ok(frame))) => {
                    if let Some(data) = frame.data_ref() {
                        self.read.extend_from_slice(data);
                    }
                }
            }
        }
    }
}

fn parse_event(line: &[u8]) -> Result<WatchEvent, ApiErrorKind> {
    check_number_of_values(line).map_err(ApiErrorKind::TooLarge)?;
    let line: WatchLine =
        serde_json::from_slice(line).map_err(|error| ApiErrorKind::Unreadable(error.to_string()))?;
    let change = match line.kind.as_str() {
        "ADDED" => Change::Added,
        "MODIFIED" => Change::Modified,
        "DELETED" => Change::Gone,
        "BOOKMARK" => Change::Bookmark,
        "ERROR" => {
            let status: Status = serde_json::from_value(line.object).unwrap_or_default();
            return Err(ApiErrorKind::Status(Box::new(status)));
        }
        other => {
            return Err(ApiErrorKind::Unreadable(format!(
                "unknown watch event type {other:?}"
            )));
        }
    };
    Ok(WatchEvent {
        change,
        object: line.object,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_lines() {
        let read = |kind: &str| {
            parse_event(format!("{{\"type\":{kind:?},\"object\":{{\"code\":410}}}}\n").as_bytes())
        };
        let table = [
            ("ADDED", Change::Added),
            ("MODIFIED", Change::Modified),
            ("DELETED", Change::Gone),
            ("BOOKMARK", Change::Bookmark),
        ];
        for (kind, change) in table {
            assert_eq!(read(kind).expect("an event").change, change);
        }
        match read("ERROR") {
            Err(ApiErrorKind::Status(status)) => assert_eq!(status.code, 410),
            other => panic!("{other:?}"),
        }
        assert!(read("OTHER").is_err());
        assert!(parse_event(b"{\"type\":").is_err());
        let many = format!(
            "{{\"type\":\"ADDED\",\"object\":[{}0]}}",
            "[0],".repeat(1_000_000)
        );
        assert!(matches!(
            parse_event(many.as_bytes()),
            Err(ApiErrorKind::TooLarge(_))
        ));
    }
}
