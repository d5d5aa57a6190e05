//! Manifests behind `http://` and `https://` URLs.
//!
//! As kubectl does (`visitor.go` in `k8s.io/cli-runtime/pkg/resource`), [`fetch`] follows ten redirects, tries three
//! times if the server fails, and sends only the credentials that are in the URL. Unlike kubectl it never follows a
//! redirect from https to http. The URLs that redirects lead to get no credentials, and have the proxy of the first one.
//! URLs may hold passwords and tokens; the display of `Source` leaves them out. `read_limited` limits the
//! bytes of a body.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::Scheme;
use http::{Response, StatusCode, Uri, header};
use percent_encoding::percent_decode_str;
use ureq::config::RedirectAuthHeaders;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::error::Problem;
use super::read_limited::read_up_to_limit;
use crate::cluster::apiserver::USER_AGENT;
use crate::cluster::proxy::{InvalidProxy, Proxy};
use crate::model::text::format_os_error;

/// The number of attempts at one URL (`defaultHttpGetAttempts` of kubectl).
const MAX_ATTEMPTS: u32 = 3;
/// The pause between two attempts.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The limit of redirects that are followed.
const MAX_REDIRECTS: u32 = 10;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for which a server may be silent.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The time limit of a URL, with its redirects and repeated attempts.
const URL_TIMEOUT: Duration = Duration::from_mins(5);

/// The reason why a URL yields no manifest.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The text is not a URL.
    #[error("invalid URL")]
    Address,
    /// The environment names a proxy that cannot be used.
    #[error(transparent)]
    Proxy(#[from] InvalidProxy),
    /// The server answered with another status than 200.
    #[error("the server returned {0}")]
    Status(StatusCode),
    /// The host name does not resolve.
    #[error("no such host")]
    NoHost,
    /// The server gave no answer, or half of one.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// A redirect leads from https to http.
    #[error("refused redirect from https to http")]
    Unencrypted,
    /// There are too many redirects.
    #[error("stopped after 10 redirects")]
    Redirects,
    /// The answer is HTML.
    #[error("HTML page instead of a manifest")]
    WebPage,
}

impl RemoteError {
    /// Returns the hint: what to type next.
    pub(super) fn hint(&self) -> String {
        match self {
            Self::Address => "write it as https://HOST/PATH".to_owned(),
            Self::Proxy(_) => {
                "write the proxy as http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT".to_owned()
            }
            Self::Status(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                "fetch it with credentials: `curl -fsSL … | kubectl applyset apply SET -f -`".to_owned()
            }
            Self::Status(status) if status.is_server_error() => "try again later".to_owned(),
            Self::Status(_) => "check the URL".to_owned(),
            Self::NoHost => "check the URL, HTTPS_PROXY and NO_PROXY".to_owned(),
            Self::NoAnswer(_) => "check the URL, HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE".to_owned(),
            Self::Unencrypted | Self::Redirects => "pass the URL that it redirects to".to_owned(),
            Self::WebPage => "pass the URL of the raw file".to_owned(),
        }
    }

    /// Returns whether another attempt may succeed.
    fn is_transient(&self) -> bool {
        match self {
            Self::Status(status) => status.is_server_error(),
            Self::NoAnswer(_) => true,
            _ => false,
        }
    }
}

/// Fetches the manifest behind a URL.
pub(super) fn fetch(url: &str) -> Result<Vec<u8>, Problem> {
    fetch_with_retries_until(url, Instant::now() + URL_TIMEOUT)
}

fn fetch_with_retries_until(url: &str, deadline: Instant) -> Result<Vec<u8>, Problem> {
    let (uri, credentials) = separate_credentials(url)?;
    let agent = build_agent(&uri)?;
    let mut attempt = 1;
    loop {
        match get(&agent, &uri, credentials.as_deref(), deadline).and_then(read_manifest) {
            Err(Problem::Remote(error))
                if attempt < MAX_ATTEMPTS
                    && error.is_transient()
                    && Instant::now() + RETRY_PAUSE < deadline => {}
            result => return result,
        }
        sleep(RETRY_PAUSE);
        attempt += 1;
    }
}

/// Returns the URL without its credentials, and the credentials as `user:password`, decoded. A user alone has an empty
/// password.
fn separate_credentials(address: &str) -> Result<(Uri, Option<Vec<u8>>), RemoteError> {
    let uri: Uri = address.parse().map_err(|_| RemoteError::Address)?;
    let authority = uri.authority().ok_or(RemoteError::Address)?.as_str();
    let Some((credentials, host)) = authority.rsplit_once('@') else {
        return Ok((uri, None));
    };
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let decoded = percent_decode_str(user)
        .chain(*b":")
        .chain(percent_decode_str(password))
        .collect();
    let host_and_port = host.parse().map_err(|_| RemoteError::Address)?;
    let mut parts = uri.into_parts();
    parts.authority = Some(host_and_port);
    let uri = Uri::from_parts(parts).map_err(|_| RemoteError::Address)?;
    Ok((uri, Some(decoded)))
}

fn build_agent(uri: &Uri) -> Result<Agent, RemoteError> {
    let proxy = Proxy::from_environment(uri)?;
    let proxy = proxy.as_ref().map(convert_proxy).transpose()?;
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .https_only(uri.scheme() == Some(&Scheme::HTTPS))
        .max_redirects(MAX_REDIRECTS)
        .redirect_auth_headers(RedirectAuthHeaders::Never)
        .proxy(proxy)
        .tls_config(tls)
        .user_agent(USER_AGENT)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_per_read(Some(READ_TIMEOUT))
        .build();
    Ok(config.into())
}

fn convert_proxy(proxy: &Proxy) -> Result<ureq::Proxy, InvalidProxy> {
    let setting_name = proxy.setting_name().to_owned();
    ureq::Proxy::new(&proxy.uri().to_string()).map_err(|_| InvalidProxy { setting_name })
}

fn get(
    agent: &Agent,
    uri: &Uri,
    credentials: Option<&[u8]>,
    deadline: Instant,
) -> Result<Response<Body>, Problem> {
    let time_left = deadline.saturating_duration_since(Instant::now());
    let mut request = agent.get(uri).config().timeout_global(Some(time_left)).build();
    if let Some(credentials) = credentials {
        let basic = format!("Basic {}", STANDARD.encode(credentials));
        request = request.header(header::AUTHORIZATION, basic);
    }
    Ok(request.call().map_err(to_remote_error)?)
}

/// Reads the body of a response.
fn read_manifest(response: Response<Body>) -> Result<Vec<u8>, Problem> {
    if response.status() != StatusCode::OK {
        return Err(RemoteError::Status(response.status()).into());
    }
    let is_page = response.body().mime_type() == Some("text/html");
    let bytes = read_up_to_limit(response.into_body().into_reader())?;
    if is_page || begins_as_html(&bytes) {
        return Err(RemoteError::WebPage.into());
    }
    Ok(bytes)
}

/// Returns whether a text begins as HTML: no YAML or JSON of a manifest does.
fn begins_as_html(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_start();
    let begin = text
        .get(..text.len().min(9))
        .unwrap_or_default()
        .to_ascii_lowercase();
    begin.starts_with(b"<!doctype") || begin.starts_with(b"<html")
}

/// Converts an error of the client, without the URL, which may hold secrets.
fn to_remote_error(error: ureq::Error) -> RemoteError {
    match error {
        ureq::Error::HostNotFound => RemoteError::NoHost,
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => RemoteError::Address,
        ureq::Error::RequireHttpsOnly(_) => RemoteError::Unencrypted,
        ureq::Error::TooManyRedirects => RemoteError::Redirects,
        ureq::Error::Protocol(_) => {
            RemoteError::NoAnswer("it is not HTTP, or an invalid redirect".to_owned())
        }
        ureq::Error::Timeout(_) => RemoteError::NoAnswer("timed out".to_owned()),
        // `io::ErrorKind` has no kind for a host name that does not resolve.
        ureq::Error::Io(error) if error.to_string().contains("failed to lookup address") => {
            RemoteError::NoHost
        }
        ureq::Error::Io(error) => RemoteError::NoAnswer(format_os_error(&error)),
        ureq::Error::Rustls(error) => RemoteError::NoAnswer(error.to_string()),
        error => RemoteError::NoAnswer(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn a_server_that_answers_byte_by_byte_has_one_limit_for_a_url() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/x.yaml", listener.local_addr().expect("an address"));
        let (requests, received) = mpsc::channel();
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let requests = requests.clone();
                thread::spawn(move || {
                    let _ = requests.send(());
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
                    while stream.write_all(b"a: b\r\n").is_ok() {
                        sleep(Duration::from_millis(20));
                    }
                });
            }
        });

        let fetched = fetch_with_retries_until(&url, Instant::now() + Duration::from_millis(200));

        let error = fetched.expect_err("no end of the headers");
        assert_eq!(error.to_string(), "no answer: timed out");
        assert_eq!(received.try_iter().count(), 1);
    }

    #[test]
    fn credentials_in_a_url_are_decoded() {
        for (text, expected) in [
            ("u:p", "u:p"),
            ("u:p%40+&=", "u:p@+&="),
            ("u", "u:"),
            ("%75:%2540", "u:%40"),
            ("u:a%3Ab:c", "u:a:b:c"),
            ("u:100%", "u:100%"),
        ] {
            let separated = separate_credentials(&format!("https://{text}@a.b/c?d"));
            let (uri, credentials) = separated.expect("an address");
            assert_eq!(credentials.as_deref(), Some(expected.as_bytes()), "{text}");
            assert_eq!(uri.to_string(), "https://a.b/c?d");
        }
    }

    #[test]
    fn web_pages_are_not_taken_for_manifests() {
        for text in ["<!DOCTYPE html>", "\n <html lang=en>", "<HTML>"] {
            assert!(begins_as_html(text.as_bytes()), "{text}");
        }
        for text in ["", "<", "a: <html>", "{\"a\": 1}", "# <html>"] {
            assert!(!begins_as_html(text.as_bytes()), "{text}");
        }
    }
}
