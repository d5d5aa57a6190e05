//! An API server that holds the parent of one set and its members, and checks every request.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::model::applyset::{GROUP_KINDS_ANNOTATION, PART_OF_LABEL};
use crate::model::history_annotation::HISTORY_ANNOTATION;
use crate::plan::fixtures::set;

/// A request, as the model distinguishes them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Bytes,
}

/// The last answer and the state of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Deeds {
    /// The version of the parent in the last answer, with its UID; `None` if there was no parent.
    seen: Option<(u64, u64)>,
    pub(super) state: State,
}

/// State of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) enum State {
    #[default]
    UnderWay,
    Done,
    /// It has reported an error.
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

/// Everything that the server holds, and what the runs have done to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct World {
    parent: Option<Parent>,
    parents: u64,
    /// Members by kind, each with its version, and whether it has the label.
    members: BTreeMap<String, (u64, bool)>,
    pub(super) runs: Vec<Deeds>,
    /// The minutes that have passed.
    pub(super) minutes: u32,
    /// The first promise that was broken.
    pub(super) broken: Option<String>,
}

pub(super) const PARENT: &str = "/api/v1/namespaces/shop/secrets/web";
const PARENTS: &str = "/api/v1/namespaces/shop/secrets";
const MEMBERS: &str = "/api/v1/namespaces/shop/";

impl World {
    /// A set with a member of each of these kinds, whose record names exactly them.
    pub(super) fn new(before: &[&str], runs: usize) -> Self {
        let tooling = set().tooling.to_string();
        Self {
            parent: Some(Parent {
                uid: 0,
                version: 1,
                labels: [("applyset.kubernetes.io/id".to_owned(), set().id.to_string())].into(),
                annotations: [
                    (GROUP_KINDS_ANNOTATION.to_owned(), before.join(",")),
                    ("applyset.kubernetes.io/tooling".to_owned(), tooling),
                    (
                        "applyset.kubernetes.io/additional-namespaces".to_owned(),
                        String::new(),
                    ),
                ]
                .into(),
            }),
            parents: 0,
            members: before
                .iter()
                .map(|kind| ((*kind).to_owned(), (1, true)))
                .collect(),
            runs: vec![Deeds::default(); runs],
            minutes: 0,
            broken: None,
        }
    }

    /// Answers a request of one run.
    pub(super) fn answer(&mut self, run: usize, asked: &Asked) -> (StatusCode, Value) {
        let path = asked.path.split('?').next().unwrap_or_default().to_owned();
        let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
        if path == PARENT || path == PARENTS {
            return self.parent(run, asked, &body);
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
            return refused(if version.is_some() {
                StatusCode::CONFLICT
            } else {
                StatusCode::NOT_FOUND
            });
        }
        if asked.method == Method::DELETE {
            self.members.remove(kind);
            return (StatusCode::OK, json!({"kind": "Status", "status": "Success"}));
        }
        let has_label = !body["metadata"]["labels"][PART_OF_LABEL].is_null();
        let version = version.unwrap_or_default() + 1;
        self.members.insert(kind.to_owned(), (version, has_label));
        (StatusCode::OK, member(kind, version))
    }

    fn parent(&mut self, run: usize, asked: &Asked, body: &Value) -> (StatusCode, Value) {
        let answer = self.try_parent(run, asked, body);
        // A conflict says nothing of what the parent is.
        if answer.0.is_success() || answer.0 == StatusCode::NOT_FOUND {
            self.runs[run].seen = self.parent.as_ref().map(|parent| (parent.uid, parent.version));
        }
        answer
    }

    fn try_parent(&mut self, run: usize, asked: &Asked, body: &Value) -> (StatusCode, Value) {
        let now = self.parent.as_ref().map(|parent| (parent.uid, parent.version));
        if asked.method == Method::GET {
            return match &self.parent {
                Some(parent) => (StatusCode::OK, parent.shown()),
                None => refused(StatusCode::NOT_FOUND),
            };
        }
        if asked.method == Method::POST && self.parent.is_some() {
            return refused(StatusCode::CONFLICT);
        }
        let locked = body["metadata"]["resourceVersion"].as_str();
        let locked = locked.or_else(|| body["preconditions"]["resourceVersion"].as_str());
        if asked.method != Method::POST && locked.is_some() {
            match now {
                None if asked.method == Method::DELETE || body.get("kind").is_none() => {
                    return refused(StatusCode::NOT_FOUND);
                }
                // An apply, which names the kind, creates an object that is gone, unless it names its UID.
                None if body["metadata"]["uid"].is_null() => {}
                Some((_, version)) if locked == Some(&version.to_string()) => {}
                _ => return refused(StatusCode::CONFLICT),
            }
        }
        // A run that has created the parent has seen that there was none.
        if asked.method != Method::POST && now != self.runs[run].seen {
            self.broken
                .get_or_insert(format!("run {run} overwrites a record that it has not read"));
        }
        if asked.method == Method::DELETE {
            self.parent = None;
            return (StatusCode::OK, json!({"kind": "Status", "status": "Success"}));
        }
        if self.parent.is_none() {
            self.parents += 1;
        }
        let created = Parent {
            uid: self.parents,
            // No two objects have a version in common.
            version: self.parents * 1000,
            ..Parent::default()
        };
        let parent = self.parent.get_or_insert(created);
        parent.version += 1;
        // An apply removes what its manager has applied before, and not what the same manager has created.
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
        let status = match asked.method {
            Method::POST => StatusCode::CREATED,
            _ => StatusCode::OK,
        };
        (status, parent.shown())
    }

    fn recorded(&self) -> BTreeSet<String> {
        let annotations = self.parent.as_ref().map(|parent| &parent.annotations);
        let kinds = annotations.and_then(|annotations| annotations.get(GROUP_KINDS_ANNOTATION));
        kinds
            .map(|kinds| kinds.split(',').map(str::to_owned).collect())
            .unwrap_or_default()
    }

    /// Returns whether a run is under way that is in the history.
    pub(super) fn is_registered(&self) -> bool {
        let annotations = self.parent.as_ref().map(|parent| &parent.annotations);
        let history = annotations.and_then(|annotations| annotations.get(HISTORY_ANNOTATION));
        let mut runs = self.runs.iter().enumerate();
        runs.any(|(number, run)| {
            let id = format!("run-{number}");
            run.state == State::UnderWay && history.is_some_and(|history| history.contains(&id))
        })
    }

    /// Checks the promise after a step: the record covers every member.
    pub(super) fn check(&mut self) {
        let recorded = self.recorded();
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
    fn shown(&self) -> Value {
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

fn refused(status: StatusCode) -> (StatusCode, Value) {
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
