//! Reads the bodies of answers. Those that are read at the same time share a limit, since a server that is hostile or
//! broken may send any number of bytes in answer to each request.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The bytes that each answer may have whatever the others take: several times the largest object, and what a page of
/// a list should have.
pub(crate) const BYTES_OF_EACH_ANSWER: usize = 8 << 20;
/// The bytes beyond these that all answers may have together: the first page of a list may hold 500 large objects, and
/// an aggregated API may ignore the size of a page. A page that does not fit is asked for again with fewer objects.
pub(crate) const BYTES_OF_ALL_ANSWERS: usize = 128 << 20;

/// The room for answers that are being read.
#[derive(Clone)]
pub(super) struct AnswerRoom(Arc<Semaphore>);

/// A body that was not read to its end.
pub(super) enum UnreadBody {
    /// The connection broke.
    Broken(kube::Error),
    /// It is too long.
    TooLong,
}

impl Default for AnswerRoom {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BYTES_OF_ALL_ANSWERS)))
    }
}

impl AnswerRoom {
    /// Reads a body to its end.
    pub(super) async fn read(&self, mut body: Body) -> Result<Bytes, UnreadBody> {
        let mut read = BytesMut::new();
        let mut taken: Option<SemaphorePermit<'_>> = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(UnreadBody::Broken)?.into_data() else {
                continue;
            };
            let more = beyond_its_own(read.len() + data.len()) - beyond_its_own(read.len());
            if more > 0 {
                let more = self.take(more)?;
                match &mut taken {
                    Some(taken) => taken.merge(more),
                    None => taken = Some(more),
                }
            }
            read.extend_from_slice(&data);
        }
        Ok(read.freeze())
    }

    /// Takes room for so many bytes. No answer waits for another: each may hold what the others need.
    fn take(&self, bytes: usize) -> Result<SemaphorePermit<'_>, UnreadBody> {
        let bytes = u32::try_from(bytes).map_err(|_| UnreadBody::TooLong)?;
        self.0.try_acquire_many(bytes).map_err(|_| UnreadBody::TooLong)
    }
}

fn beyond_its_own(bytes: usize) -> usize {
    bytes.saturating_sub(BYTES_OF_EACH_ANSWER)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_types, reason = "a server that is a function")]

    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::future::join_all;
    use futures_util::{StreamExt as _, stream};
    use http::{Request, Response};
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;
    use crate::cluster::apiserver::{ApiErrorKind, ApiServer};

    const MIB: usize = 1 << 20;
    static PART: [u8; MIB] = [b' '; MIB];

    /// The MiB of answers that are being read, and the most that there were.
    #[derive(Default)]
    struct Sent {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    /// The MiB of one answer, until it is dropped.
    struct OfOne(Arc<Sent>, usize);

    impl OfOne {
        fn send(&mut self) -> Bytes {
            self.1 += 1;
            let now = self.0.now.fetch_add(1, Ordering::Relaxed) + 1;
            self.0.most.fetch_max(now, Ordering::Relaxed);
            Bytes::from_static(&PART)
        }
    }

    impl Drop for OfOne {
        fn drop(&mut self) {
            self.0.now.fetch_sub(self.1, Ordering::Relaxed);
        }
    }

    /// A server that sends its answers side by side. Each has as many MiB as its path says.
    fn server(sent: &Arc<Sent>) -> ApiServer {
        let sent = Arc::clone(sent);
        let service = tower::service_fn(move |request: Request<Body>| {
            let mib = request.uri().path().trim_start_matches('/').parse();
            let mut own = OfOne(Arc::clone(&sent), 0);
            let frames = (0..mib.unwrap_or(usize::MAX)).map(move |_| own.send());
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
        let answers = join_all((0..32).map(|_| server.get("/endless", "application/json"))).await;
        for answer in answers {
            let error = answer.expect_err("too long");
            assert!(
                matches!(*error.kind, ApiErrorKind::TooLong { .. }),
                "{}",
                error.kind
            );
            assert!(error.kind.to_string().contains("128 MiB"), "{}", error.kind);
        }
        // Each has one part more, which is dropped.
        let bound = 32 * (BYTES_OF_EACH_ANSWER / MIB + 1) + BYTES_OF_ALL_ANSWERS / MIB;
        let most = sent.most.load(Ordering::Relaxed);
        assert!(most <= bound, "{most} MiB");
        // What they had taken is free again.
        server.get("/130", "application/json").await.expect("an answer");
    }

    #[tokio::test]
    async fn answers_of_ordinary_size_are_read_whatever_others_take() {
        let server = server(&Arc::default());
        let paths = [&["/endless"][..], &["/7"; 40]].concat();
        let answers = join_all(paths.iter().map(|path| server.get(path, "application/json"))).await;
        let read = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(read, 40);
    }
}
