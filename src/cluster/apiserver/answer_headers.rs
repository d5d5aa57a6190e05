//! The headers of an answer that a run uses: the texts of `Warning` (RFC 7234, section 5.5), which the server writes as
//! `299 - "text"`, and `Date`, the clock of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use http::{HeaderMap, header};
use k8s_openapi::jiff::fmt::rfc2822::DateTimeParser;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// Returns the texts of all warnings. One header may hold several.
pub(super) fn read_warning_texts(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::WARNING).iter();
    values
        .flat_map(|value| parse_warning_texts(value.as_bytes()))
        .collect()
}

/// Returns the quoted texts of warnings with the code 299. A date after such a text is quoted, too, and is left out.
fn parse_warning_texts(value: &[u8]) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = value;
    while let Some(start) = rest.iter().position(|byte| *byte == b'"') {
        let (before, quoted) = (&rest[..start], &rest[start + 1..]);
        let (text, after) = read_until_closing_quote(quoted);
        let separators = before
            .iter()
            .take_while(|byte| matches!(byte, b',' | b' ' | b'\t'))
            .count();
        if before[separators..].starts_with(b"299 ") {
            texts.push(String::from_utf8_lossy(&text).into_owned());
        }
        rest = after;
    }
    texts
}

/// Returns a text up to its closing quote without its escapes, and what comes after it.
fn read_until_closing_quote(quoted: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut text = Vec::new();
    let mut bytes = quoted.iter().enumerate();
    while let Some((index, byte)) = bytes.next() {
        match byte {
            b'"' => return (text, &quoted[index + 1..]),
            b'\\' => text.extend(bytes.next().map(|(_, escaped)| *escaped)),
            byte => text.push(*byte),
        }
    }
    (text, &[])
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
            (r#"299 - "one, two", 299 - "three""#, &["one, two", "three"]),
            (
                r#"299 - "dated" "Thu, 26 Nov 2026 00:00:00 GMT",299 - "b""#,
                &["dated", "b"],
            ),
            (r#"110 - "stale""#, &[]),
            ("299 - unquoted", &[]),
        ] {
            assert_eq!(parse_warning_texts(value.as_bytes()), expected, "{value}");
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
