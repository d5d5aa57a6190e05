//! The clock of the API server, from the header `Date` of its answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use http::{HeaderMap, header};
use k8s_openapi::jiff::fmt::rfc2822::DateTimeParser;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The clock of a server: by how many seconds it is ahead of the clock of this machine.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerClock(Arc<AtomicI64>);

impl ServerClock {
    /// Takes the time of an answer; one without a time changes nothing.
    pub(super) fn set_by(&self, headers: &HeaderMap) {
        let text = headers.get(header::DATE).and_then(|date| date.to_str().ok());
        if let Some(date) = text.and_then(|text| DateTimeParser::new().parse_timestamp(text).ok()) {
            let ahead = date.as_second() - Timestamp::now().as_second();
            self.0.store(ahead, Ordering::Relaxed);
        }
    }

    /// Lets time pass.
    #[cfg(test)]
    pub(super) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Timestamp {
        let ahead = SignedDuration::from_secs(self.0.load(Ordering::Relaxed));
        let now = Timestamp::now();
        now.checked_add(ahead).unwrap_or(now)
    }
}

#[cfg(test)]
impl super::ApiServer {
    /// Lets time pass.
    pub fn advance_clock(&self, seconds: i64) {
        self.clock.advance(seconds);
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_time_is_that_of_the_last_answer() {
        let clock = ServerClock::default();
        let mut headers = HeaderMap::new();
        headers.insert(
            header::DATE,
            HeaderValue::from_static("Sun, 06 Nov 2050 08:49:37 GMT"),
        );
        clock.set_by(&headers);
        let then: Timestamp = "2050-11-06T08:49:37Z".parse().expect("a time");
        assert!((clock.now().as_second() - then.as_second()).abs() < 60);
        headers.insert(header::DATE, HeaderValue::from_static("tomorrow"));
        clock.set_by(&headers);
        assert!((clock.now().as_second() - then.as_second()).abs() < 60);
    }
}
