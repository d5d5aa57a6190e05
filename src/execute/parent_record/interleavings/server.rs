//! An API server that holds the parent of one set and its members, and checks every request.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::model::applyset::{GROUP_KINDS_ANNOTATION, PART_OF_LABEL};
use crate::model::history_annotation::HISTORY_ANNOTATION;
use crate::plan::fixtures::set;

/// A request that a run has sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SentRequest {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Bytes,
}

/// The state of a run, and what it knows of the parent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct RunOnServer {
    /// The UID and the version of the parent in the last answer; `None` if there was no parent.
    seen: Option<(u64, u64)>,
    pub(super) state: State,
}

/// State of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) enum State {
    #[default]
    UnderWay,
    Done,
    /// The run has ended with an error.
    Failed,
    Killed,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Parent {
    uid: u64,
    version: u64,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

/// Everything that the server holds, and the state of the runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct World {
    parent: Option<Parent>,
    /// The number of parents that were created after the first one; it is the UID of the next.
    parents: u64,
    /// The members by kind: the version of each, and whether it has the set's label.
    members: BTreeMap<String, (u64, bool)>,
    pub(super) runs: Vec<RunOnServer>,
    /// The minutes that have passed on the server's clock.
    pub(super) minutes: u32,
    /// The first promise that was broken.
    pub(super) broken: Option<String>,
}

pub(super) const PARENT: &str = "/api/v1/namespaces/shop/secrets/web";
const PARENTS: &str = "/api/v1/namespaces/shop/secrets";
const MEMBERS: &str = "/api/v1/namespaces/shop/";

impl World {
    /// Creates a set with a member of each of these kinds, and a record that names exactly these kinds.
    pub(super) fn new(initial_kinds: &[&str], runs: usize) -> Self {
        let tooling = set().tooling.to_string();
        Self {
            parent: Some(Parent {
                uid: 0,
                version: 1,
                labels: [("applyset.kubernetes.io/id".to_owned(), set().id.to_string())].into(),
                annotations: [
                    (GROUP_KINDS_ANNOTATION.to_owned(), initial_kinds.join(",")),
                    ("applyset.kubernetes.io/tooling".to_owned(), tooling),
                    (
                        "applyset.kubernetes.io/additional-namespaces".to_owned(),
                        String::new(),
                    ),
                ]
                .into(),
            }),
            parents: 0,
            members: initial_kinds
                .iter()
                .map(|kind| ((*kind).to_owned(), (1, true)))
                .collect(),
            runs: vec![RunOnServer::default(); runs],
            minutes: 0,
            broken: None,
        }
    }

    /// Answers a request of one run.
    pub(super) fn answer(&mut self, run: usize, request: &SentRequest) -> (StatusCode, Value) {
        let path = request.path.split('?').next().unwrap_or_default().to_owned();
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        if path == PARENT || path == PARENTS {
            return self.answer_for_parent(run, request, &body);
        }
        let path = path.strip_prefix(MEMBERS).expect("a known path");
        let (plural, name) = path.split_once('/').unwrap_or((path, ""));
        let kind = match plural {
            "ones" => "One",
            "twos" => "Two",
            "threes" => "Three",
            other => panic!("no kind {other}"),
        };
        if name.is_empty() {
            let items = self.members.get(kind).filter(|(_, has_label)| *has_label);
            let items: Vec<Value> = items
                .map(|(version, _)| member(kind, *version))
                .into_iter()
                .collect();
            return (
                StatusCode::OK,
                json!({"metadata": {"resourceVersion": "1"}, "items": items}),
            );
        }
        let version = self.members.get(kind).map(|(version, _)| *version);
        let locked = body["metadata"]["resourceVersion"].as_str();
        let locked = locked.or_else(|| body["preconditions"]["resourceVersion"].as_str());
        if locked.is_some() && locked != version.map(|version| version.to_string()).as_deref() {
            return error_answer(if version.is_some() {
                StatusCode::CONFLICT
            } else {
                StatusCode::NOT_FOUND
            });
        }
        if request.method == Method::DELETE {
            self.members.remove(kind);
            return (StatusCode::OK, json!({"kind": "Status", "status": "Success"}));
        }
        let has_label = !body["metadata"]["labels"][PART_OF_LABEL].is_null();
        let version = version.unwrap_or_default() + 1;
        self.members.insert(kind.to_owned(), (version, has_label));
        (StatusCode::OK, member(kind, version))
    }

    /// Answers a request for the parent, and notes what the run has seen of the parent.
    fn answer_for_parent(&mut self, run: usize, request: &SentRequest, body: &Value) -> (StatusCode, Value) {
        let answer = self.carry_out_on_parent(run, request, body);
        // A conflict does not show the parent.
        if answer.0.is_success() || answer.0 == StatusCode::NOT_FOUND {
            self.runs[run].seen = self.parent.as_ref().map(|parent| (parent.uid, parent.version));
        }
        answer
    }

    fn carry_out_on_parent(
        &mut self,
        run: usize,
        request: &SentRequest,
        body: &Value,
    ) -> (StatusCode, Value) {
        let current = self.parent.as_ref().map(|parent| (parent.uid, parent.version));
        if request.method == Method::GET {
            return match &self.parent {
                Some(parent) => (StatusCode::OK, parent.to_json()),
                None => error_answer(StatusCode::NOT_FOUND),
            };
        }
        if request.method == Method::POST && self.parent.is_some() {
            return error_answer(StatusCode::CONFLICT);
        }
        let locked = body["metadata"]["resourceVersion"].as_str();
        let locked = locked.or_else(|| body["preconditions"]["resourceVersion"].as_str());
        if request.method != Method::POST && locked.is_some() {
            match current {
                None if request.method == Method::DELETE || body.get("kind").is_none() => {
                    return error_answer(StatusCode::NOT_FOUND);
                }
                // An apply (a body with a kind) creates the parent again if it is gone, unless the body has a UID.
                None if body["metadata"]["uid"].is_null() => {}
                Some((_, version)) if locked == Some(&version.to_string()) => {}
                _ => return error_answer(StatusCode::CONFLICT),
            }
        }
        // A POST that comes here creates the parent, so there is no record that it could overwrite.
        if request.method != Method::POST && current != self.runs[run].seen {
            self.broken
                .get_or_insert(format!("run {run} overwrites a record that it has not read"));
        }
        if request.method == Method::DELETE {
            self.parent = None;
            return (StatusCode::OK, json!({"kind": "Status", "status": "Success"}));
        }
        if self.parent.is_none() {
            self.parents += 1;
        }
        let created = Parent {
            uid: self.parents,
            // A version that no earlier parent has had.
            version: self.parents * 1000,
            ..Parent::default()
        };
        let parent = self.parent.get_or_insert(created);
        parent.version += 1;
        // An apply removes annotations that its manager has applied before and no longer sends. It does not remove them
        // from a parent that was created by POST, as all but the first are.
        if body.get("kind").is_some() && parent.uid == 0 {
            parent.annotations.remove(HISTORY_ANNOTATION);
        }
        for (field, pairs) in [
            ("labels", &mut parent.labels),
            ("annotations", &mut parent.annotations),
        ] {
            let sent = body["metadata"][field].as_object().cloned().unwrap_or_default();
            for (key, value) in sent {
                match value.as_str() {
                    Some(text) => pairs.insert(key, text.to_owned()),
                    None => pairs.remove(&key),
                };
            }
        }
        let status = match request.method {
            Method::POST => StatusCode::CREATED,
            _ => StatusCode::OK,
        };
        (status, parent.to_json())
    }

    fn recorded_kinds(&self) -> BTreeSet<String> {
        let annotations = self.parent.as_ref().map(|parent| &parent.annotations);
        let kinds = annotations.and_then(|annotations| annotations.get(GROUP_KINDS_ANNOTATION));
        kinds
            .map(|kinds| kinds.split(',').map(str::to_owned).collect())
            .unwrap_or_default()
    }

    /// Returns whether a live run has an entry in the history.
    pub(super) fn has_live_entry(&self) -> bool {
        let annotations = self.parent.as_ref().map(|parent| &parent.annotations);
        let history = annotations.and_then(|annotations| annotations.get(HISTORY_ANNOTATION));
        let mut runs = self.runs.iter().enumerate();
        runs.any(|(number, run)| {
            let id = format!("run-{number}");
            run.state == State::UnderWay && history.is_some_and(|history| history.contains(&id))
        })
    }

    /// Checks after a step that the record covers every member.
    pub(super) fn check(&mut self) {
        let recorded = self.recorded_kinds();
        let labeled = self.members.iter().filter(|(_, (_, has_label))| *has_label);
        let outside = labeled
            .map(|(kind, _)| kind)
            .filter(|kind| !recorded.contains(*kind));
        let outside: Vec<&String> = outside.collect();
        if !outside.is_empty() {
            let text = format!("{outside:?} is outside the record {recorded:?}");
            self.broken.get_or_insert(text);
        }
    }
}

impl Parent {
    fn to_json(&self) -> Value {
        json!({"kind": "Secret", "metadata": {
            "name": "web", "namespace": "shop",
            "uid": format!("parent-{}", self.uid), "resourceVersion": self.version.to_string(),
            "labels": self.labels, "annotations": self.annotations,
        }})
    }
}

fn member(kind: &str, version: u64) -> Value {
    json!({"kind": kind, "metadata": {
        "name": "any", "namespace": "shop", "uid": kind, "resourceVersion": version.to_string(),
        "labels": {PART_OF_LABEL: set().id.as_str()},
    }})
}

fn error_answer(status: StatusCode) -> (StatusCode, Value) {
    let reason = if status == StatusCode::CONFLICT {
        "Conflict"
    } else {
        "NotFound"
    };
    let body = json!({
        "kind": "Status", "status": "Failure", "code": status.as_u16(), "reason": reason,
        "details": {"name": "any"},
    });
    (status, body)
}
