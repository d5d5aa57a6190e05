//! The headers of an answer that a run uses: the texts of `Warning` (RFC 7234, section 5.5), which the server writes as
//! `299 - "text"`, and `Date`, the clock of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use http::{HeaderMap, header};
use k8s_openapi::jiff::fmt::rfc2822::DateTimeParser;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Deserializer;

/// Returns the texts of all warnings with the code 299. The server writes each in a header of its own.
pub(super) fn read_warning_texts(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::WARNING).iter();
    values
        .filter_map(|value| {
            let warning = String::from_utf8_lossy(value.as_bytes());
            // The server escapes quotation marks and backslashes, as JSON does.
            let quoted = Deserializer::from_str(warning.strip_prefix("299 - ")?);
            quoted.into_iter().next()?.ok()
        })
        .collect()
}

/// The clock of a server: by how many seconds it is ahead of the clock of this machine.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerClock(Arc<AtomicI64>);

impl ServerClock {
    /// Sets the clock by the `Date` header of an answer, if it has one.
    pub(super) fn set_from_date_header(&self, headers: &HeaderMap) {
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
    #![expect(clippy::disallowed_types, reason = "the server of the test is a closure")]

    use std::convert::Infallible;
    use std::time::Duration;

    use futures_util::{StreamExt as _, stream};
    use http::{HeaderValue, Request, Response};
    use http_body_util::StreamBody;
    use hyper::body::{Bytes, Frame};
    use kube::client::Body;

    use super::*;
    use crate::cluster::apiserver::ApiServer;

    #[test]
    fn each_text_is_read_as_it_was_meant() {
        for (value, expected) in [
            (r#"299 - "v1beta1 is deprecated""#, &["v1beta1 is deprecated"][..]),
            (
                r#"299 - "unrecognized format \"cidr\"""#,
                &[r#"unrecognized format "cidr""#],
            ),
            (r#"299 - "a \\ b""#, &[r"a \ b"]),
            (
                r#"299 - "Bitte Eigentümer angeben – 所有者""#,
                &["Bitte Eigentümer angeben – 所有者"],
            ),
            (r#"299 - "one, two""#, &["one, two"]),
            (
                r#"299 - "dated" "Thu, 26 Nov 2026 00:00:00 GMT",299 - "b""#,
                &["dated"],
            ),
            (r#"110 - "stale""#, &[]),
            ("299 - unquoted", &[]),
        ] {
            let mut headers = HeaderMap::new();
            let bytes = HeaderValue::from_bytes(value.as_bytes()).expect("a header");
            headers.insert(header::WARNING, bytes);
            assert_eq!(read_warning_texts(&headers), expected, "{value}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_is_that_of_the_head_of_an_answer() {
        let service = tower::service_fn(async |_: Request<Body>| {
            let parts = stream::pending::<Result<Frame<Bytes>, Infallible>>();
            let mut response = Response::new(StreamBody::new(parts.boxed()));
            let date = HeaderValue::from_static("Sun, 06 Nov 2050 08:49:37 GMT");
            response.headers_mut().insert(header::DATE, date);
            Ok::<_, Infallible>(response)
        });
        let client = kube::Client::new(service, "default");
        let server = ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1));
        // The body never comes.
        server
            .get_list("/", "application/json")
            .await
            .expect_err("no answer");
        assert_eq!(server.now().strftime("%Y").to_string(), "2050");
    }

    #[test]
    fn the_time_is_that_of_the_last_answer() {
        let clock = ServerClock::default();
        let mut headers = HeaderMap::new();
        headers.insert(
            header::DATE,
            HeaderValue::from_static("Sun, 06 Nov 2050 08:49:37 GMT"),
        );
        clock.set_from_date_header(&headers);
        let then: Timestamp = "2050-11-06T08:49:37Z".parse().expect("a time");
        assert!((clock.now().as_second() - then.as_second()).abs() < 60);
        headers.insert(header::DATE, HeaderValue::from_static("tomorrow"));
        clock.set_from_date_header(&headers);
        assert!((clock.now().as_second() - then.as_second()).abs() < 60);
    }
}
