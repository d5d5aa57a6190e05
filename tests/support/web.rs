//! A web server that answers as a test says, with or without TLS. Its certificate is that
//! of the API server, for 127.0.0.1.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use controlplane::ControlPlane;
use http::{Request, Response, header};
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::runtime;

/// A running server; it serves until the tests end.
pub(crate) struct Web {
    address: SocketAddr,
    scheme: &'static str,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    pub(crate) body: Bytes,
    /// The Authorization header.
    pub(crate) authorization: Option<String>,
}

/// What the server answers.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: u16,
    header: Option<(header::HeaderName, String)>,
    body: Bytes,
    is_admission: bool,
}

/// Asked with the path and the number of requests that came before.
type Answering = dyn Fn(&str, usize) -> Answer + Send + Sync;

impl Answer {
    /// 200 with this text.
    pub(crate) fn text(body: &str) -> Self {
        Self::bytes(body.as_bytes().to_vec())
    }

    /// 200 with the content of a file.
    pub(crate) fn bytes(body: Vec<u8>) -> Self {
        Self {
            status: 200,
            header: None,
            body: body.into(),
            is_admission: false,
        }
    }

    /// A status with a text.
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            header: None,
            body: format!("status {status}").into(),
            is_admission: false,
        }
    }

    /// What an admission webhook answers that allows the request.
    pub(crate) fn allowed() -> Self {
        Self {
            is_admission: true,
            ..Self::text("")
        }
    }

    /// 302 to this address.
    pub(crate) fn redirect(location: &str) -> Self {
        Self {
            header: Some((header::LOCATION, location.to_owned())),
            ..Self::status(302)
        }
    }
}

impl Web {
    /// Without TLS.
    pub(crate) fn plain(answering: impl Fn(&str, usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::serving(ANY_PORT, None, Arc::new(answering))
    }

    /// With TLS.
    pub(crate) fn encrypted(answering: impl Fn(&str, usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::serving(ANY_PORT, Some(acceptor()), Arc::new(answering))
    }

    /// The same at an address that [`unused_address`] has returned.
    pub(crate) fn encrypted_at(
        address: SocketAddr,
        answering: impl Fn(&str, usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::serving(address, Some(acceptor()), Arc::new(answering))
    }

    fn serving(address: SocketAddr, acceptor: Option<TlsAcceptor>, answering: Arc<Answering>) -> Self {
        let listener = runtime()
            .block_on(TcpListener::bind(address))
            .expect("a free port");
        let web = Self {
            address: listener.local_addr().expect("an address"),
            scheme: if acceptor.is_some() { "https" } else { "http" },
            asked: Arc::default(),
        };
        let asked = Arc::clone(&web.asked);
        runtime().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (asked, answering) = (Arc::clone(&asked), Arc::clone(&answering));
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    match acceptor {
                        // Who does not trust the certificate ends the handshake.
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                serve(stream, asked, answering).await;
                            }
                        }
                        None => serve(stream, asked, answering).await,
                    }
                });
            }
        });
        web
    }

    /// The address of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// Host and port.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    /// The address of a path, with credentials.
    pub(crate) fn url_as(&self, credentials: &str, path: &str) -> String {
        format!("{}://{credentials}@{}{path}", self.scheme, self.address)
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic in the server").clone()
    }
}

const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// An address that no server listens on.
pub(crate) fn unused_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind(ANY_PORT).expect("a free port");
    listener.local_addr().expect("an address")
}

fn acceptor() -> TlsAcceptor {
    let file = |name: &str| ControlPlane::shared().data_dir().join(name);
    let certificates = CertificateDer::pem_file_iter(file("apiserver.crt"))
        .and_then(Iterator::collect)
        .expect("the API server's certificate");
    let key = PrivateKeyDer::from_pem_file(file("apiserver.key")).expect("the API server's key");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .expect("a certificate with its key");
    TlsAcceptor::from(Arc::new(config))
}

/// The answer to a review that allows it.
fn review(body: &[u8]) -> String {
    let review: Value = serde_json::from_slice(body).expect("a review");
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true},
    })
    .to_string()
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    asked: Arc<Mutex<Vec<Asked>>>,
    answering: Arc<Answering>,
) {
    let service = service_fn(async |request: Request<Incoming>| {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let authorization = head.headers.get(header::AUTHORIZATION);
        let mut asked = asked.lock().expect("no panic in the server");
        let answer = answering(path, asked.len());
        asked.push(Asked {
            method: head.method.to_string(),
            path: path.to_owned(),
            body: body.clone(),
            authorization: authorization.map(|value| value.to_str().expect("ASCII").to_owned()),
        });
        let mut response = Response::builder().status(answer.status);
        if let Some((name, value)) = answer.header {
            response = response.header(name, value);
        }
        let answer = if answer.is_admission {
            review(&body).into()
        } else {
            answer.body
        };
        Ok::<_, Infallible>(response.body(Full::new(answer)).expect("a response"))
    });
    // A client that has what it wants hangs up.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
