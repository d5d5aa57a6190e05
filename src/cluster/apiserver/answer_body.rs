//! Reads the bodies of answers up to a limit: a broken server may answer with any number of bytes.

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};

/// The limit of an answer with one object, in bytes. etcd stores objects of up to 1.5 MiB, and a server writes
/// characters such as `<` in six bytes.
pub const LARGEST_OBJECT: usize = 8 << 20;
/// The limit of a page of a list, and of what the server serves, in bytes. A page that is larger is requested again with
/// fewer objects.
pub const LARGEST_PAGE: usize = 64 << 20;

/// The content of an answer, which decides how large the answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// One object, or a text.
    Object,
    /// A list of objects, or of what the server serves.
    List,
}

impl Content {
    /// Returns the limit of an answer with this content, in bytes.
    pub(super) fn limit(self) -> usize {
        match self {
            Self::Object => LARGEST_OBJECT,
            Self::List => LARGEST_PAGE,
        }
    }
}

/// Reads a body to its end; `None` if it has more bytes than `limit`.
pub(super) async fn read_within_limit(
    body: impl BodyExt<Data = Bytes, Error = kube::Error>,
    limit: usize,
) -> Result<Option<Bytes>, kube::Error> {
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(Some(body.to_bytes())),
        Err(error) => error
            .downcast::<kube::Error>()
            .map_or(Ok(None), |broken| Err(*broken)),
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    const MIB: usize = 1 << 20;
    static PART: [u8; MIB] = [b' '; MIB];

    fn body(parts: usize) -> impl BodyExt<Data = Bytes, Error = kube::Error> {
        let parts = iter::repeat_with(|| Ok(Frame::data(Bytes::from_static(&PART)))).take(parts);
        StreamBody::new(stream::iter(parts))
    }

    #[tokio::test]
    async fn an_answer_without_an_end_is_not_read_to_its_end() {
        for (content, limit) in [(Content::Object, LARGEST_OBJECT), (Content::List, LARGEST_PAGE)] {
            assert_eq!(content.limit(), limit);
            let read = read_within_limit(body(limit / MIB), limit).await;
            assert!(read.is_ok_and(|bytes| bytes.is_some_and(|bytes| bytes.len() == limit)));
            let endless = read_within_limit(body(usize::MAX), limit).await;
            assert!(endless.is_ok_and(|bytes| bytes.is_none()));
        }
    }
}
