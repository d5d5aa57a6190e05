//! An API server's stand-in that writes down who speaks to it, as whom, and refuses everything.
//! Its certificate is that of the API server, for 127.0.0.1, localhost and kubernetes.default.svc.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use controlplane::ControlPlane;
use http::{HeaderMap, Request, Response, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::runtime;

/// A running server; it serves until the tests end.
pub(crate) struct Witness {
    address: SocketAddr,
    seen: Arc<Mutex<BTreeSet<Seen>>>,
    connections: watch::Sender<Connections>,
}

/// The clients' connections.
#[derive(Default)]
struct Connections {
    accepted: usize,
    ended: usize,
    /// The client that was accepted last.
    latest: Option<SocketAddr>,
}

/// One kind of request: all that says who asks and whom.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Seen {
    /// The name in the TLS handshake.
    pub(crate) server_name: Option<String>,
    /// True if the client showed a certificate.
    pub(crate) shows_certificate: bool,
    /// The headers about the server, the login and impersonation.
    pub(crate) headers: Vec<(String, String)>,
}

impl Seen {
    /// The Authorization header.
    pub(crate) fn authorization(&self) -> Option<&str> {
        let header = self.headers.iter().find(|(name, _)| name == "authorization");
        header.map(|(_, value)| value.as_str())
    }
}

impl Witness {
    /// With TLS.
    pub(crate) fn encrypted() -> Self {
        Self::serving(Some(acceptor()))
    }

    /// Without TLS.
    pub(crate) fn plain() -> Self {
        Self::serving(None)
    }

    /// Its port at 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns what was seen since the last call, each kind of request once. A client that has
    /// exited may have left requests behind: what it has sent is read to the end first, or it
    /// would count as the next client's.
    pub(crate) fn take(&self) -> BTreeSet<Seen> {
        runtime().block_on(self.all_read());
        std::mem::take(&mut *self.seen.lock().expect("no panic in the server"))
    }

    /// Connections are accepted in their order, so all earlier ones are once this one is.
    async fn all_read(&self) {
        // Ports are used again: only what is accepted from here on is this connection.
        self.connections.send_modify(|now| now.latest = None);
        let last = TcpStream::connect(self.address).await.expect("a connection");
        let client = last.local_addr().expect("an address");
        let mut connections = self.connections.subscribe();
        let accepted = connections.wait_for(|now| now.latest == Some(client)).await;
        accepted.expect("the server runs");
        drop(last);
        let ended = connections.wait_for(|now| now.ended == now.accepted).await;
        ended.expect("the server runs");
    }

    fn serving(acceptor: Option<TlsAcceptor>) -> Self {
        let listener = runtime()
            .block_on(TcpListener::bind(("127.0.0.1", 0)))
            .expect("a free port");
        let witness = Self {
            address: listener.local_addr().expect("an address"),
            seen: Arc::default(),
            connections: watch::Sender::default(),
        };
        let seen = Arc::clone(&witness.seen);
        let connections = witness.connections.clone();
        runtime().spawn(async move {
            while let Ok((stream, client)) = listener.accept().await {
                let (seen, acceptor) = (Arc::clone(&seen), acceptor.clone());
                let connections = connections.clone();
                connections.send_modify(|now| {
                    now.accepted += 1;
                    now.latest = Some(client);
                });
                tokio::spawn(async move {
                    converse(stream, acceptor, seen).await;
                    connections.send_modify(|now| now.ended += 1);
                });
            }
        });
        witness
    }
}

async fn converse(stream: TcpStream, acceptor: Option<TlsAcceptor>, seen: Arc<Mutex<BTreeSet<Seen>>>) {
    let Some(acceptor) = acceptor else {
        return serve(stream, Seen::default(), seen).await;
    };
    // A client that does not trust the certificate ends the handshake.
    if let Ok(stream) = acceptor.accept(stream).await {
        let connection = stream.get_ref().1;
        let handshake = Seen {
            server_name: connection.server_name().map(str::to_owned),
            shows_certificate: connection.peer_certificates().is_some(),
            headers: Vec::new(),
        };
        serve(stream, handshake, seen).await;
    }
}

fn acceptor() -> TlsAcceptor {
    let control_plane = ControlPlane::shared();
    let file = |name: &str| control_plane.data_dir().join(name);
    let certificates = |path: &std::path::Path| -> Vec<CertificateDer<'static>> {
        CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .expect("certificates")
    };
    let mut authorities = RootCertStore::empty();
    authorities.add_parsable_certificates(certificates(control_plane.certificate_authority()));
    let provider = Arc::new(default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(&provider))
        .allow_unauthenticated()
        .build()
        .expect("a verifier of clients");
    let key = PrivateKeyDer::from_pem_file(file("apiserver.key")).expect("the API server's key");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_client_cert_verifier(clients)
        .with_single_cert(certificates(&file("apiserver.crt")), key)
        .expect("a certificate with its key");
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    handshake: Seen,
    seen: Arc<Mutex<BTreeSet<Seen>>>,
) {
    let answer = service_fn(|request: Request<Incoming>| {
        let mut seen = seen.lock().expect("no panic in the server");
        seen.insert(Seen {
            headers: shown(request.headers()),
            ..handshake.clone()
        });
        let response = Response::builder()
            .status(403)
            .body(Full::new(Bytes::from_static(b"no")));
        async move { Ok::<_, Infallible>(response.expect("a response")) }
    });
    // A client that has what it wants hangs up.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

fn shown(headers: &HeaderMap) -> Vec<(String, String)> {
    let is_shown = |name: &str| {
        name == header::HOST || name == header::AUTHORIZATION || name.starts_with("impersonate-")
    };
    let mut shown: Vec<(String, String)> = headers
        .iter()
        .filter(|(name, _)| is_shown(name.as_str()))
        .map(|(name, value)| (name.to_string(), value.to_str().expect("ASCII").to_owned()))
        .collect();
    shown.sort();
    shown
}
