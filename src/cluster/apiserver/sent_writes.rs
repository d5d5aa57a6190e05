//! The objects to which a run has sent writes: what the end of a run can say of an object without a result.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Method;

use super::{ApiErrorKind, ApiRequest};

/// Paths of objects to which a write was sent that the server has not refused.
#[derive(Debug, Clone, Default)]
pub(super) struct SentWrites(Arc<Mutex<HashSet<String>>>);

impl SentWrites {
    /// Returns the write that this request is; one that sends nothing to an object, such as a GET or a dry run,
    /// is never noted.
    pub(super) fn of<'a>(&'a self, request: &'a ApiRequest) -> SentWrite<'a> {
        let is_write = request.method != Method::GET && !request.path.contains("dryRun=All");
        SentWrite {
            all: self,
            path: is_write.then(|| without_query(&request.path)),
            is_first: false,
        }
    }

    /// Returns whether a write was sent to the object at this path, and the server has not refused it.
    pub(super) fn contains(&self, path: &str) -> bool {
        self.paths().contains(path)
    }

    fn paths(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One write, with all its attempts.
pub(super) struct SentWrite<'a> {
    all: &'a SentWrites,
    path: Option<&'a str>,
    /// Whether it is the only write to its object, and no attempt at it has failed.
    is_first: bool,
}

impl SentWrite<'_> {
    /// Notes that an attempt is sent.
    pub(super) fn sent(&mut self) {
        if let Some(path) = self.path {
            self.is_first |= self.all.paths().insert(path.to_owned());
        }
    }

    /// Notes that an attempt has failed. An earlier one without an answer may have taken effect all the same.
    pub(super) fn failed(&mut self, kind: &ApiErrorKind) {
        if let Some(path) = self.path.filter(|_| self.is_first && kind.is_refusal()) {
            self.all.paths().remove(path);
        }
        self.is_first = false;
    }
}

fn without_query(path: &str) -> &str {
    path.split_once('?').map_or(path, |(path, _)| path)
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

    #[test]
    fn a_write_is_noted_unless_the_server_has_refused_all_of_it() {
        let table = [
            (vec![], true),
            (vec![answer(409)], false),
            (vec![answer(500), answer(500)], true),
            (vec![answer(504)], true),
            (vec![no_answer()], true),
            (vec![no_answer(), answer(500)], true),
            (vec![answer(500), no_answer()], true),
        ];
        let request = patch(&[("fieldManager", "applyset")]);
        for (failures, is_noted) in table {
            let writes = SentWrites::default();
            let mut write = writes.of(&request);
            assert!(!writes.contains("/api/v1/nodes/one"));
            if failures.is_empty() {
                write.sent();
            }
            for failure in &failures {
                write.sent();
                write.failed(failure);
            }
            assert_eq!(writes.contains("/api/v1/nodes/one"), is_noted, "{failures:?}");
        }
    }

    #[test]
    fn a_refused_write_says_nothing_of_an_earlier_one() {
        let writes = SentWrites::default();
        let request = patch(&[("fieldManager", "applyset")]);
        writes.of(&request).sent();
        let mut second = writes.of(&request);
        second.sent();
        second.failed(&answer(409));
        assert!(writes.contains("/api/v1/nodes/one"));
    }

    #[test]
    fn reads_and_dry_runs_are_not_noted() {
        let writes = SentWrites::default();
        for request in [
            ApiRequest::get("/api/v1/nodes/one", ""),
            patch(&[("fieldManager", "applyset"), ("dryRun", "All")]),
        ] {
            writes.of(&request).sent();
            assert!(!writes.contains("/api/v1/nodes/one"), "{request:?}");
        }
    }
}
