//! A server whose discovery leaves groups out: it lags behind definitions, or has just started.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::Response;
use serde_json::Value;

use super::{Sent, Verdict, Watch};

/// Leaves a group out of discovery for so many answers.
pub(crate) struct Omission {
    group: String,
    answers: AtomicUsize,
}

impl Omission {
    /// Leaves the group out of the first answers, as many as this.
    pub(crate) fn of(group: &str, answers: usize) -> Self {
        Self {
            group: group.to_owned(),
            answers: AtomicUsize::new(answers),
        }
    }
}

impl Watch for Omission {
    fn before(&self, _sent: &Sent, _writes: usize) -> Verdict {
        Verdict::Forward
    }

    fn after(&self, sent: &Sent, answer: Response<Bytes>) -> Response<Bytes> {
        let is_left = |left: usize| left.checked_sub(1);
        let asks = sent.path == "/apis";
        if asks
            && self
                .answers
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_left)
                .is_ok()
        {
            without_groups(answer, |group| group == self.group)
        } else {
            answer
        }
    }
}

/// A discovery document without some of its groups.
pub(crate) fn without_groups(answer: Response<Bytes>, is_omitted: impl Fn(&str) -> bool) -> Response<Bytes> {
    answer.map(|body| {
        let mut document: Value = serde_json::from_slice(&body).expect("a discovery document");
        let groups = document["items"].as_array_mut().expect("groups");
        groups.retain(|group| !is_omitted(group["metadata"]["name"].as_str().expect("a name")));
        Bytes::from(document.to_string())
    })
}
