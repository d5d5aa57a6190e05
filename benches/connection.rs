//! One kept HTTP/1.1 connection over TLS, with as little as possible around it.

use std::sync::Arc;
use std::time::Duration;

use http::response::Parts;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::Result;

/// Where the server is, and as whom to speak to it.
#[derive(Clone)]
pub(crate) struct Address {
    authority: String,
    host: ServerName<'static>,
    tls: TlsConnector,
    authorization: String,
    /// The user to act as, if not as oneself.
    user: Option<String>,
}

impl Address {
    /// `url` is `https://HOST:PORT`, `certificate_authority` is PEM.
    pub(crate) fn new(url: &str, certificate_authority: &[u8], token: &str) -> Result<Self> {
        let authority = url
            .strip_prefix("https://")
            .ok_or("the server does not speak TLS")?;
        let (host, _) = authority.rsplit_once(':').ok_or("the server has no port")?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(certificate_authority) {
            roots.add(certificate?)?;
        }
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            authority: authority.to_owned(),
            host: ServerName::try_from(host.to_owned())?,
            tls: TlsConnector::from(Arc::new(config)),
            authorization: format!("Bearer {token}"),
            user: None,
        })
    }

    /// The same, acting as this user.
    pub(crate) fn as_user(&self, user: &str) -> Self {
        Self {
            user: Some(user.to_owned()),
            ..self.clone()
        }
    }
}

/// An open connection; one request at a time.
pub(crate) struct Connection {
    address: Address,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    pub(crate) async fn open(address: &Address) -> Result<Self> {
        let stream = TcpStream::connect(&address.authority).await?;
        stream.set_nodelay(true)?;
        let stream = address.tls.connect(address.host.clone(), stream).await?;
        let (sender, driver) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        Ok(Self {
            address: address.clone(),
            sender,
        })
    }

    /// GET of a path with its query.
    pub(crate) async fn get(&mut self, path: &str) -> Result<Bytes> {
        self.send(Method::GET, path, Bytes::new()).await
    }

    /// Server-side apply of a body to a path with its query.
    pub(crate) async fn apply(&mut self, path: &str, body: Bytes) -> Result<()> {
        self.send(Method::PATCH, path, body).await.map(drop)
    }

    /// DELETE of a path.
    pub(crate) async fn delete(&mut self, path: &str) -> Result<()> {
        self.send(Method::DELETE, path, Bytes::new()).await.map(drop)
    }

    /// Sends a request, and sends it again when the server asks for that, while it has no capacity.
    async fn send(&mut self, method: Method, path: &str, body: Bytes) -> Result<Bytes> {
        loop {
            let (head, answer) = self.send_once(&method, path, body.clone()).await?;
            let status = head.status;
            match status {
                StatusCode::OK | StatusCode::CREATED => return Ok(answer),
                StatusCode::TOO_MANY_REQUESTS => tokio::time::sleep(retry_after(&head)).await,
                _ => {
                    let answer = String::from_utf8_lossy(&answer);
                    return Err(format!("{method} {path}: {status}: {answer}").into());
                }
            }
        }
    }

    async fn send_once(&mut self, method: &Method, path: &str, body: Bytes) -> Result<(Parts, Bytes)> {
        self.sender.ready().await?;
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.address.authority)
            .header(header::AUTHORIZATION, &self.address.authorization);
        if let Some(user) = &self.address.user {
            request = request.header("Impersonate-User", user);
        }
        if *method == Method::PATCH {
            request = request
                .header(header::ACCEPT, "application/json")
                .header(header::CONTENT_TYPE, "application/apply-patch+yaml");
        }
        let request = request.body(Full::new(body))?;
        let (head, body) = self.sender.send_request(request).await?.into_parts();
        Ok((head, body.collect().await?.to_bytes()))
    }
}

/// The pause that the server asks for; it grows with the requests that it rejects.
fn retry_after(head: &Parts) -> Duration {
    let seconds = head.headers.get(header::RETRY_AFTER);
    let seconds = seconds.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}
