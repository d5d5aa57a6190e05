//! Notes the objects to which a run has sent writes, so that the end of the run can say what has become of an object
//! without a result.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Method;
use serde_json::Value;

use super::{ApiErrorKind, ApiRequest, ApiServer};

/// What has become of the last write to an object, apart from writes that the server has refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    /// No answer came, so the write may have taken effect.
    Unanswered,
    /// The write was carried out, and was no DELETE.
    Done,
    /// The write was a DELETE, and was carried out.
    Deleted,
}

/// The last write to each object, by its path.
#[derive(Debug, Clone, Default)]
pub(super) struct SentWrites {
    last: Arc<Mutex<HashMap<String, WriteResult>>>,
    /// The objects that a write may still create: the server has not answered one of its attempts, and no later write
    /// to the object was carried out. Only an apply or a POST creates an object; all other writes are bound to one that
    /// exists.
    under_way: Arc<Mutex<HashSet<String>>>,
}

impl SentWrites {
    /// Returns the value that notes the attempts at this request. A request that changes no object, such as a GET or a
    /// dry run, is never noted.
    pub(super) fn for_request<'a>(&'a self, request: &'a ApiRequest) -> SentWrite<'a> {
        SentWrite {
            all: self,
            path: find_path_of_written_object(request),
            method: &request.method,
            is_sent: false,
            before: None,
        }
    }

    /// Returns a value for the writes of the run's own entry on the parent. It shares the last writes, but a write of
    /// the entry does not count as one that may still be carried out.
    pub(super) fn for_lease_writes(&self) -> Self {
        Self {
            last: Arc::clone(&self.last),
            under_way: Arc::default(),
        }
    }

    fn lock_unanswered(&self) -> MutexGuard<'_, HashSet<String>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_last_writes(&self) -> MutexGuard<'_, HashMap<String, WriteResult>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ApiServer {
    /// Returns what has become of the last write to the object at this path, apart from writes that the server has
    /// refused; `None` if there was no such write.
    pub fn result_of_last_write(&self, path: &str) -> Option<WriteResult> {
        self.sent_writes.lock_last_writes().get(path).copied()
    }

    /// Returns whether a write, other than those of the run's entries, may still be carried out: one of its attempts
    /// got no answer of the server, and no later write to the object was carried out. The refusal of a later attempt
    /// says nothing about an earlier one, which may still wait for a webhook of another server.
    pub fn has_unanswered_write(&self) -> bool {
        !self.sent_writes.lock_unanswered().is_empty()
    }
}

/// One write, with all its attempts.
pub(super) struct SentWrite<'a> {
    all: &'a SentWrites,
    path: Option<String>,
    method: &'a Method,
    /// An attempt is under way.
    is_sent: bool,
    /// The last write to the object before this attempt.
    before: Option<WriteResult>,
}

impl SentWrite<'_> {
    /// Notes that an attempt is sent.
    pub(super) fn note_sent(&mut self) {
        self.is_sent = true;
        self.before = self.replace_last_result(Some(WriteResult::Unanswered));
    }

    /// Notes that the server has carried out the write.
    pub(super) fn note_done(&self) {
        if let Some(path) = &self.path {
            self.all.lock_unanswered().remove(path);
        }
        self.replace_last_result(Some(match *self.method {
            Method::DELETE => WriteResult::Deleted,
            _ => WriteResult::Done,
        }));
    }

    /// Notes that an attempt has failed. If the server refused it, the write before it counts again, since that may be
    /// an earlier attempt without an answer, which may have taken effect.
    pub(super) fn note_failure(&mut self, kind: &ApiErrorKind) {
        if let Some(path) = &self.path
            && self.is_sent
            && *self.method != Method::DELETE
            && kind.may_have_succeeded()
            && !kind.is_answer_from_server()
        {
            self.all.lock_unanswered().insert(path.clone());
        }
        if mem::take(&mut self.is_sent) && !kind.may_have_succeeded() {
            self.replace_last_result(self.before);
        }
    }

    /// Notes the last write to the object, and returns the one before.
    fn replace_last_result(&self, last: Option<WriteResult>) -> Option<WriteResult> {
        let path = self.path.as_ref()?;
        match last {
            Some(last) => self.all.lock_last_writes().insert(path.clone(), last),
            None => self.all.lock_last_writes().remove(path),
        }
    }
}

/// Returns the path of the object that a request writes; `None` if it writes none.
fn find_path_of_written_object(request: &ApiRequest) -> Option<String> {
    if !request.changes_objects() {
        return None;
    }
    let (path, _) = request.path.split_once('?').unwrap_or((&request.path, ""));
    if request.method != Method::POST {
        return Some(path.to_owned());
    }
    let object: Value = serde_json::from_slice(&request.body).ok()?;
    Some(format!("{path}/{}", object["metadata"]["name"].as_str()?))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::{Patch, Status};
    use super::*;

    fn patch(parameters: &[(&str, &str)]) -> ApiRequest {
        ApiRequest::patch("/api/v1/nodes/one", parameters, "", Patch::Apply, Bytes::new())
    }

    fn answer(code: u16) -> ApiErrorKind {
        ApiErrorKind::Status(Box::new(Status {
            code,
            ..Status::default()
        }))
    }

    fn no_answer() -> ApiErrorKind {
        ApiErrorKind::Unreadable(String::new())
    }

    fn last(writes: &SentWrites) -> Option<WriteResult> {
        writes.lock_last_writes().get("/api/v1/nodes/one").copied()
    }

    #[test]
    fn a_write_is_noted_unless_the_server_has_refused_all_of_it() {
        let table = [
            (vec![], true),
            (vec![answer(409)], false),
            (vec![answer(500), answer(500)], true),
            (vec![answer(504)], true),
            (vec![no_answer()], true),
            (vec![no_answer(), answer(500)], true),
            (vec![no_answer(), answer(409)], true),
            (vec![answer(429), answer(409)], false),
            (vec![answer(500), no_answer()], true),
        ];
        let request = patch(&[("fieldManager", "applyset")]);
        for (failures, is_noted) in table {
            let writes = SentWrites::default();
            let mut write = writes.for_request(&request);
            assert_eq!(last(&writes), None);
            if failures.is_empty() {
                write.note_sent();
            }
            for failure in &failures {
                write.note_sent();
                write.note_failure(failure);
            }
            let expected = is_noted.then_some(WriteResult::Unanswered);
            assert_eq!(last(&writes), expected, "{failures:?}");
        }
    }

    #[test]
    fn an_attempt_without_an_answer_is_under_way_until_a_write_is_carried_out() {
        let table = [
            (vec![answer(409)], false),
            (vec![answer(500)], false),
            (vec![no_answer()], true),
            (vec![no_answer(), answer(403)], true),
            (vec![answer(504), answer(500)], true),
        ];
        let request = patch(&[("fieldManager", "applyset")]);
        for (failures, is_under_way) in table {
            let writes = SentWrites::default();
            let mut write = writes.for_request(&request);
            for failure in &failures {
                write.note_sent();
                write.note_failure(failure);
            }
            assert_eq!(!writes.lock_unanswered().is_empty(), is_under_way, "{failures:?}");
            write.note_sent();
            write.note_done();
            assert!(writes.lock_unanswered().is_empty(), "{failures:?}");
        }
        // A delete makes no object a member.
        let delete = ApiRequest {
            method: Method::DELETE,
            ..request
        };
        let writes = SentWrites::default();
        let mut write = writes.for_request(&delete);
        write.note_sent();
        write.note_failure(&no_answer());
        assert!(writes.lock_unanswered().is_empty());
    }

    #[test]
    fn a_write_that_comes_to_nothing_says_nothing_of_an_earlier_one() {
        let apply = patch(&[("fieldManager", "applyset")]);
        let delete = ApiRequest {
            method: Method::DELETE,
            ..apply.clone()
        };
        for (request, done) in [(apply.clone(), WriteResult::Done), (delete, WriteResult::Deleted)] {
            for is_answered in [true, false] {
                let writes = SentWrites::default();
                let mut first = writes.for_request(&request);
                first.note_sent();
                if is_answered {
                    first.note_done();
                }
                let before = if is_answered {
                    done
                } else {
                    WriteResult::Unanswered
                };
                assert_eq!(last(&writes), Some(before));
                let mut second = writes.for_request(&apply);
                second.note_failure(&answer(429));
                assert_eq!(last(&writes), Some(before));
                second.note_sent();
                assert_eq!(last(&writes), Some(WriteResult::Unanswered));
                second.note_failure(&answer(409));
                assert_eq!(last(&writes), Some(before));
            }
        }
    }

    #[test]
    fn a_creation_is_a_write_to_the_object_that_it_names() {
        let body = |text: &'static str| {
            let parameters = [("fieldManager", "applyset")];
            ApiRequest::post(
                "/api/v1/nodes",
                &parameters,
                "",
                Bytes::from_static(text.as_bytes()),
            )
        };
        let writes = SentWrites::default();
        writes.for_request(&body(r#"{"spec": {}}"#)).note_sent();
        assert_eq!(last(&writes), None);
        writes
            .for_request(&body(r#"{"metadata": {"name": "one"}}"#))
            .note_sent();
        assert_eq!(last(&writes), Some(WriteResult::Unanswered));
    }

    #[test]
    fn reads_and_dry_runs_are_not_noted() {
        let writes = SentWrites::default();
        for request in [
            ApiRequest::get("/api/v1/nodes/one", ""),
            patch(&[("fieldManager", "applyset"), ("dryRun", "All")]),
        ] {
            writes.for_request(&request).note_sent();
            assert_eq!(last(&writes), None, "{request:?}");
        }
    }
}
