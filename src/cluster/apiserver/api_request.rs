//! A request and its answer, as values.

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use kube::client::Body;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

use super::ApiErrorKind;
use super::answer_body::Content;

/// The `User-Agent` header: the name and version of this program, which servers log.
pub const USER_AGENT: &str = concat!("kubectl-applyset/v", env!("CARGO_PKG_VERSION"));

/// One request to the API server, before credentials are added.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    /// HTTP method.
    pub method: Method,
    /// Path and query, without scheme and host.
    pub path: String,
    /// The `Accept` header.
    pub accept: String,
    /// The content of the answer.
    pub answer: Content,
    /// The `Content-Type` header, for requests with a body.
    pub content_type: Option<&'static str>,
    /// The body; empty for none.
    pub body: Bytes,
    /// The time after which the request is not sent any more, not even for the first time: what it was decided by may have
    /// changed by then. `None` without a limit.
    pub not_after: Option<Instant>,
}

/// The form of the body of a PATCH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patch {
    /// Server-side apply. JSON is YAML, too.
    Apply,
    /// RFC 6902: operations.
    Json,
    /// RFC 7396: `null` removes a field.
    Merge,
}

/// A successful answer.
#[derive(Debug)]
pub struct Reply {
    /// 2xx.
    pub status: StatusCode,
    /// The body, read to its end.
    pub body: Bytes,
    /// Texts of the `Warning` headers (code 299) of the answer.
    pub warnings: Vec<String>,
    /// The result of earlier attempts at the same request.
    pub earlier_attempts: EarlierAttempts,
}

impl Reply {
    /// Reads the body.
    pub fn json<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.body)
    }

    /// Returns the body, or null if it is not JSON. Null has none of the fields that the caller looks for, so it is
    /// judged as any other answer that lacks them.
    pub fn json_or_null(&self) -> Value {
        self.json().unwrap_or_default()
    }

    /// Adds the result of earlier attempts at the same write to this answer.
    #[must_use]
    pub fn add_earlier_attempts(self, earlier_attempts: EarlierAttempts) -> Self {
        Self {
            earlier_attempts: earlier_attempts.combine_with(self.earlier_attempts),
            ..self
        }
    }
}

/// The result of earlier attempts at the same request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlierAttempts {
    /// There were no earlier attempts, or the server said that it did not carry them out.
    NoEffect,
    /// An answer was lost, so the request may have been carried out.
    MayHaveSucceeded,
}

impl EarlierAttempts {
    /// Combines the result of these attempts with that of other attempts at the same write.
    #[must_use]
    pub fn combine_with(self, others: Self) -> Self {
        if self.may_have_succeeded() { self } else { others }
    }

    /// Returns whether the request may have been carried out already.
    pub fn may_have_succeeded(self) -> bool {
        self == Self::MayHaveSucceeded
    }
}

/// Returns whether the body of a DELETE asks for a dry run.
fn is_dry_run_delete(delete_body: &[u8]) -> bool {
    let options: Value = serde_json::from_slice(delete_body).unwrap_or_default();
    options["dryRun"]
        .as_array()
        .is_some_and(|stages| !stages.is_empty())
}

impl ApiRequest {
    /// Returns whether the request may change objects: it neither reads, nor is a dry run.
    pub(super) fn changes_objects(&self) -> bool {
        // The options of a DELETE are in its body.
        let deletes_nothing = self.method == Method::DELETE && is_dry_run_delete(&self.body);
        self.method != Method::GET && !self.path.contains("dryRun=All") && !deletes_nothing
    }

    /// Creates a GET of this path with its query.
    pub(super) fn get(path: &str, accept: &str) -> Self {
        Self {
            method: Method::GET,
            path: path.to_owned(),
            accept: accept.to_owned(),
            answer: Content::Object,
            content_type: None,
            body: Bytes::new(),
            not_after: None,
        }
    }

    /// Creates a GET of a list at this path with its query. The answer may be larger than one object.
    pub(super) fn get_list(path: &str, accept: &str) -> Self {
        Self {
            answer: Content::List,
            ..Self::get(path, accept)
        }
    }

    /// Creates a PATCH of the object at this path.
    pub fn patch(
        path: &str,
        parameters: &[(&str, &str)],
        accept: &str,
        patch: Patch,
        body: impl Into<Bytes>,
    ) -> Self {
        Self {
            method: Method::PATCH,
            path: format!("{path}?{}", encode_query(parameters)),
            accept: accept.to_owned(),
            answer: Content::Object,
            content_type: Some(patch.content_type()),
            body: body.into(),
            not_after: None,
        }
    }

    /// Creates a POST of a JSON document to this path, which is a collection.
    pub fn post(path: &str, parameters: &[(&str, &str)], accept: &str, body: impl Into<Bytes>) -> Self {
        let path = match parameters {
            [] => path.to_owned(),
            parameters => format!("{path}?{}", encode_query(parameters)),
        };
        Self {
            method: Method::POST,
            path,
            accept: accept.to_owned(),
            answer: Content::Object,
            content_type: Some("application/json"),
            body: body.into(),
            not_after: None,
        }
    }

    pub(super) fn to_http(&self) -> Result<Request<Body>, ApiErrorKind> {
        let mut request = Request::builder()
            .method(&self.method)
            .uri(&self.path)
            .header(header::USER_AGENT, USER_AGENT)
            .header(header::ACCEPT, &self.accept);
        if let Some(content_type) = self.content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        request
            .body(Body::from(self.body.clone()))
            .map_err(|error| ApiErrorKind::Unreadable(format!("invalid request path: {error}")))
    }
}

impl Patch {
    fn content_type(self) -> &'static str {
        match self {
            Self::Apply => "application/apply-patch+yaml",
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
        }
    }
}

/// Encodes the query of a path.
pub fn encode_query(parameters: &[(&str, &str)]) -> String {
    let mut serializer = form_urlencoded::Serializer::new(String::new());
    serializer.extend_pairs(parameters);
    serializer.finish()
}
