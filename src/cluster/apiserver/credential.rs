//! Renews a token that expires, shortly before its end or when the server refuses it.
//!
//! `connection` supplies the source of tokens. Tokens are never printed.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

/// The time before its end at which a token is renewed, so that it is still valid when the server reads the request.
const LEEWAY: Duration = Duration::from_secs(10);

/// A bearer token with its expiry. The header is marked as sensitive, so `Debug` does not show it.
#[derive(Debug, Clone)]
pub struct Token {
    header: HeaderValue,
    /// The time at which the token expires; `None` if it does not.
    until: Option<SystemTime>,
}

/// Fetches a token, or returns the reason why there is none. A call may block.
pub type TokenSource = dyn Fn() -> Result<Token, String> + Send + Sync;

/// The current token, and the source of the next one.
///
/// A source that has failed once is not called again. It may prompt the user, or be slow, and would otherwise do so for
/// each of a thousand requests.
#[derive(Clone)]
pub struct Credential {
    held: Arc<Mutex<HeldToken>>,
    source: Arc<TokenSource>,
}

struct HeldToken {
    token: Token,
    failure: Option<String>,
}

impl Token {
    /// Creates a bearer token; `None` if the text cannot be part of a header.
    pub fn bearer(token: &str, until: Option<SystemTime>) -> Option<Self> {
        let mut header = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        header.set_sensitive(true);
        Some(Self { header, until })
    }
}

impl Credential {
    /// Creates a credential that uses the token `first`, and gets later ones from the source.
    pub fn new(first: Token, source: Arc<TokenSource>) -> Self {
        Self {
            held: Arc::new(Mutex::new(HeldToken {
                token: first,
                failure: None,
            })),
            source,
        }
    }

    /// Returns the value of the Authorization header. Renews a token that is about to expire.
    pub(super) async fn obtain_authorization_header(&self) -> Result<HeaderValue, String> {
        let mut held = self.held.lock().await;
        if let Some(until) = held.token.until
            && SystemTime::now() + LEEWAY >= until
        {
            self.renew_unless_failed_before(&mut held).await?;
        }
        Ok(held.token.header.clone())
    }

    /// Renews the token that the server refused, unless another request has renewed it already. Returns whether the
    /// token now differs from the refused one.
    pub(super) async fn replace_refused_token(&self, refused_header: &HeaderValue) -> bool {
        let mut held = self.held.lock().await;
        if held.token.header == *refused_header {
            // The server's refusal is reported, not the failure of the source.
            let _ = self.renew_unless_failed_before(&mut held).await;
        }
        held.token.header != *refused_header
    }

    async fn renew_unless_failed_before(&self, held: &mut HeldToken) -> Result<(), String> {
        if let Some(failure) = &held.failure {
            return Err(failure.clone());
        }
        let source = Arc::clone(&self.source);
        let fetched = match spawn_blocking(move || source()).await {
            Ok(fetched) => fetched,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        };
        match fetched {
            Ok(token) => held.token = token,
            Err(failure) => held.failure = Some(failure.clone()),
        }
        held.failure.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use kube::client::Body;

    use super::super::ApiServer;
    use super::*;

    /// A source of the tokens `1`, `2`, …, and the number of its calls.
    fn counting(until: Option<SystemTime>) -> (Credential, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let source = move || {
            let number = counter.fetch_add(1, Ordering::SeqCst) + 1;
            Ok(Token::bearer(&number.to_string(), None).expect("a token"))
        };
        let first = Token::bearer("0", until).expect("a token");
        (Credential::new(first, Arc::new(source)), asked)
    }

    #[tokio::test]
    async fn a_token_is_renewed_only_at_its_end() {
        let (lasting, asked) = counting(Some(SystemTime::now() + Duration::from_hours(1)));
        assert_eq!(
            lasting.obtain_authorization_header().await.expect("a header"),
            "Bearer 0"
        );
        assert_eq!(asked.load(Ordering::SeqCst), 0);
        let (ending, asked) = counting(Some(SystemTime::now()));
        assert_eq!(
            ending.obtain_authorization_header().await.expect("a header"),
            "Bearer 1"
        );
        assert_eq!(
            ending.obtain_authorization_header().await.expect("a header"),
            "Bearer 1"
        );
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_refused_token_is_renewed_once_for_all_requests() {
        let (credential, asked) = counting(None);
        let refused = credential.obtain_authorization_header().await.expect("a header");
        assert!(credential.replace_refused_token(&refused).await);
        assert!(credential.replace_refused_token(&refused).await);
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn the_same_token_again_is_not_a_new_one() {
        let token = || Ok(Token::bearer("same", None).expect("a token"));
        let credential = Credential::new(token().expect("a token"), Arc::new(token));
        let refused = credential.obtain_authorization_header().await.expect("a header");
        assert!(!credential.replace_refused_token(&refused).await);
    }

    #[tokio::test]
    async fn a_request_sends_the_token() {
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let keep = Arc::clone(&seen);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let header = request.headers().get(http::header::AUTHORIZATION).cloned();
            keep.lock().expect("no panic").push(header);
            async { Ok::<_, Infallible>(http::Response::new(Body::from(b"{}".to_vec()))) }
        });
        let client = kube::Client::new(service, "default");
        let (credential, _) = counting(None);
        let second = Duration::from_secs(1);
        let server = ApiServer::new(client, "test", second).with_credential(Some(credential));
        server.get("/api", "application/json").await.expect("an answer");
        let expected = HeaderValue::from_static("Bearer 0");
        assert_eq!(*seen.lock().expect("no panic"), [Some(expected)]);
    }

    #[test]
    fn a_token_is_not_shown() {
        let token = Token::bearer("SUPERSECRET", None).expect("a token");
        assert!(!format!("{token:?}").contains("SECRET"));
        assert!(Token::bearer("two\nlines", None).is_none());
    }
}
