//! Reads the bodies of answers, within limits for each and for all that are in memory at the same time: a hostile or
//! broken server may answer each request with any number of bytes.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The number of bytes that each answer may have, however large the other answers are. They are enough for the largest
/// object: etcd stores objects of up to 1.5 MiB, and a server writes characters such as `<` in six bytes. A page of a
/// list should not have more, either.
pub const OWN_BYTES_PER_ANSWER: usize = 8 << 20;
/// The bytes that all answers together may have beyond the [`OWN_BYTES_PER_ANSWER`] of each. While a list of 100 MiB is
/// in memory, it holds 92 MiB of them, so 36 MiB are left for other lists.
///
/// The first page of a list may hold 500 large objects, and an aggregated API may ignore the limit of a page. A page
/// that does not fit is requested again with fewer objects.
pub const SHARED_EXTRA_BYTES: usize = 128 << 20;

/// The number of JSON values that one answer may have; the largest object has fewer. It is limited because a parsed
/// value takes many times its bytes in memory.
pub const MAX_VALUES_PER_ANSWER: usize = 1_000_000;

/// The [`SHARED_EXTRA_BYTES`], from which large answers reserve bytes.
#[derive(Clone)]
pub(super) struct AnswerMemoryBudget(Arc<Semaphore>);

/// The content of an answer, which decides how large the answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// One object, or a text.
    Object,
    /// A list of objects, or of what the server serves.
    List,
}

/// The reason why a body cannot be used.
pub(super) enum UnusableBody {
    /// The connection broke.
    Broken(kube::Error),
    /// The body exceeds this limit.
    TooLarge(TooLarge),
}

/// The limit that an answer exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// `OWN_BYTES_PER_ANSWER`, by an answer with one object.
    #[error("one object in more than {} MiB", OWN_BYTES_PER_ANSWER >> 20)]
    Object,
    /// `SHARED_EXTRA_BYTES`, by this answer and the others in memory.
    #[error("more than {} MiB, together with others", SHARED_EXTRA_BYTES >> 20)]
    WithOthers,
    /// `MAX_VALUES_PER_ANSWER`.
    #[error("more than {MAX_VALUES_PER_ANSWER} values")]
    Values,
}

/// A body, and its reservation of shared bytes, which ends when the body is dropped.
struct BodyWithReservation {
    bytes: Bytes,
    _reservation: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for BodyWithReservation {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Default for AnswerMemoryBudget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(SHARED_EXTRA_BYTES)))
    }
}

impl AnswerMemoryBudget {
    /// Reads a body to its end. The returned bytes keep their reservation until they are dropped, which is after
    /// parsing.
    pub(super) async fn read_within_limits(
        &self,
        mut body: Body,
        content: Content,
    ) -> Result<Bytes, UnusableBody> {
        let mut read = BytesMut::new();
        let mut reservation: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            // Other frames are trailers.
            let Ok(data) = frame.map_err(UnusableBody::Broken)?.into_data() else {
                continue;
            };
            let extra_bytes = count_extra_bytes(read.len() + data.len()) - count_extra_bytes(read.len());
            if extra_bytes > 0 {
                if content == Content::Object {
                    return Err(UnusableBody::TooLarge(TooLarge::Object));
                }
                let added = self.try_reserve(extra_bytes).map_err(UnusableBody::TooLarge)?;
                match &mut reservation {
                    Some(reservation) => reservation.merge(added),
                    None => reservation = Some(added),
                }
            }
            read.extend_from_slice(&data);
        }
        check_number_of_values(&read).map_err(UnusableBody::TooLarge)?;
        Ok(Bytes::from_owner(BodyWithReservation {
            bytes: read.freeze(),
            _reservation: reservation,
        }))
    }

    /// Reserves this many shared bytes, or fails at once. If answers waited, two of them could each hold the bytes that
    /// the other needs.
    fn try_reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, TooLarge> {
        let bytes = u32::try_from(bytes).map_err(|_| TooLarge::WithOthers)?;
        Arc::clone(&self.0)
            .try_acquire_many_owned(bytes)
            .map_err(|_| TooLarge::WithOthers)
    }
}

/// Refuses a text of JSON with too many values.
fn check_number_of_values(json: &[u8]) -> Result<(), TooLarge> {
    // Most texts have fewer bytes than an answer may have values. The quick count includes characters inside strings,
    // so it is never too low; usually, the slower count is not needed.
    if json.len() > MAX_VALUES_PER_ANSWER
        && json.iter().filter(|byte| may_precede_json_value(**byte)).count() > MAX_VALUES_PER_ANSWER
        && count_json_values(json) > MAX_VALUES_PER_ANSWER
    {
        return Err(TooLarge::Values);
    }
    Ok(())
}

/// Returns the number of values, approximately: it counts each comma and each beginning of an object or array outside
/// of strings.
fn count_json_values(json: &[u8]) -> usize {
    let mut count = 0;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        if *byte == b'"' {
            while let Some(byte) = bytes.next()
                && *byte != b'"'
            {
                if *byte == b'\\' {
                    bytes.next();
                }
            }
        } else if may_precede_json_value(*byte) {
            count += 1;
        }
    }
    count
}

fn may_precede_json_value(byte: u8) -> bool {
    matches!(byte, b',' | b'[' | b'{')
}

/// Returns how many bytes of an answer of this length count as shared bytes.
fn count_extra_bytes(answer_bytes: usize) -> usize {
    answer_bytes.saturating_sub(OWN_BYTES_PER_ANSWER)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_types, reason = "the server of the test is a closure")]

    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::future::join_all;
    use futures_util::{StreamExt as _, stream};
    use http::{Request, Response};
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;
    use crate::cluster::apiserver::{ApiError, ApiErrorKind, ApiServer, Reply};

    const MIB: usize = 1 << 20;
    static PART: [u8; MIB] = [b' '; MIB];

    /// The size of all answers that are being sent, in MiB, now and at most so far.
    #[derive(Default)]
    struct Sent {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    /// One answer, which counts in `all` until it is dropped.
    struct SentAnswer {
        all: Arc<Sent>,
        mib: usize,
    }

    impl SentAnswer {
        fn send_part(&mut self) -> Bytes {
            self.mib += 1;
            let now = self.all.now.fetch_add(1, Ordering::Relaxed) + 1;
            self.all.most.fetch_max(now, Ordering::Relaxed);
            Bytes::from_static(&PART)
        }
    }

    impl Drop for SentAnswer {
        fn drop(&mut self) {
            self.all.now.fetch_sub(self.mib, Ordering::Relaxed);
        }
    }

    /// A server that sends its answers side by side. Each has as many MiB as its path says: three for `/3`. An answer
    /// for `/endless` has no end.
    fn server(sent: &Arc<Sent>) -> ApiServer {
        let sent = Arc::clone(sent);
        let service = tower::service_fn(move |request: Request<Body>| {
            let mib = request.uri().path().trim_start_matches('/').parse();
            let mut answer = SentAnswer {
                all: Arc::clone(&sent),
                mib: 0,
            };
            let frames = (0..mib.unwrap_or(usize::MAX)).map(move |_| answer.send_part());
            let frames = frames.chain([Bytes::from_static(b"{}")]);
            let frames = stream::iter(frames).then(async |frame| {
                tokio::task::yield_now().await;
                Ok::<_, Infallible>(Frame::data(frame))
            });
            let body = StreamBody::new(Box::pin(frames));
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        let client = kube::Client::new(service, "default");
        ApiServer::new(client, "https://127.0.0.1:6443", Duration::from_mins(1))
    }

    #[tokio::test]
    async fn answers_without_an_end_share_a_limit() {
        let sent = Arc::default();
        let server = server(&sent);
        let answers = join_all((0..32).map(|_| server.get_list("/endless", "application/json"))).await;
        for answer in answers {
            assert_eq!(exceeded_limit(answer), TooLarge::WithOthers);
        }
        // Each has one part more, which is dropped.
        let bound = 32 * (OWN_BYTES_PER_ANSWER / MIB + 1) + SHARED_EXTRA_BYTES / MIB;
        let most = sent.most.load(Ordering::Relaxed);
        assert!(most <= bound, "{most} MiB");
        // Their reservations have ended. An answer keeps its own until it is parsed.
        let answer = server.get_list("/130", "application/json").await;
        let second = server.get_list("/130", "application/json").await;
        assert_eq!(exceeded_limit(second), TooLarge::WithOthers);
        drop(answer.expect("an answer"));
        server
            .get_list("/130", "application/json")
            .await
            .expect("an answer");
    }

    #[tokio::test]
    async fn an_object_reserves_no_shared_bytes() {
        let server = server(&Arc::default());
        server.get("/7", "application/json").await.expect("an answer");
        let answer = server.get("/endless", "application/json").await;
        assert_eq!(exceeded_limit(answer), TooLarge::Object);
    }

    #[test]
    fn values_are_counted_outside_of_strings() {
        let list = |item: &str, count: usize| format!("[{}0]", item.repeat(count));
        let table = [
            (list("[0],", MAX_VALUES_PER_ANSWER / 2), false),
            (list("[0],", MAX_VALUES_PER_ANSWER / 2 - 1), true),
            // Inside a string, behind an escaped quotation mark; and behind a string that ends with a backslash.
            (format!(r#""{}""#, list(r#"\","#, MAX_VALUES_PER_ANSWER)), true),
            (format!(r#""\\",{}"#, list("{},", MAX_VALUES_PER_ANSWER)), false),
        ];
        for (text, expected) in table {
            assert_eq!(
                check_number_of_values(text.as_bytes()).is_ok(),
                expected,
                "{}",
                &text[..20]
            );
        }
    }

    fn exceeded_limit(answer: Result<Reply, ApiError>) -> TooLarge {
        match *answer.expect_err("too large").kind {
            ApiErrorKind::TooLarge(limit) => limit,
            other => panic!("{other}"),
        }
    }

    #[tokio::test]
    async fn answers_of_ordinary_size_are_read_whatever_others_take() {
        let server = server(&Arc::default());
        let paths = [&["/endless"][..], &["/7"; 40]].concat();
        let answers = join_all(paths.iter().map(|path| server.get_list(path, "application/json"))).await;
        let read = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(read, 40);
    }
}
