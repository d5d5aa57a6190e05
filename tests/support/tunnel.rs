//! A proxy that knows the CONNECT of HTTP and SOCKS5, and leads to one server, mostly the API
//! server, whatever it is asked for.

use std::io::{self, Read as _, Write as _, copy};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

use controlplane::ControlPlane;

/// A running proxy; it serves until the tests end.
pub(crate) struct Tunnel {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Tunnel {
    /// A proxy to the shared API server.
    pub(crate) fn new() -> Self {
        let server = ControlPlane::shared().server_url();
        Self::to(server.strip_prefix("https://").expect("https"))
    }

    /// A proxy to this host and port.
    pub(crate) fn to(target: &str) -> Self {
        let target = target.to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let tunnel = Self {
            address: listener.local_addr().expect("an address"),
            heads: Arc::default(),
        };
        let heads = Arc::clone(&tunnel.heads);
        spawn(move || {
            for stream in listener.incoming().flatten() {
                let (target, heads) = (target.clone(), Arc::clone(&heads));
                spawn(move || lead(stream, &target, &heads));
            }
        });
        tunnel
    }

    /// Its address, with credentials that end in `@`, or without.
    pub(crate) fn url(&self, credentials: &str) -> String {
        format!("http://{credentials}{}", self.address)
    }

    /// Its address as a proxy of the SOCKS protocol.
    pub(crate) fn socks_url(&self) -> String {
        format!("socks5://{}", self.address)
    }

    /// The heads of the requests so far, small letters throughout; of SOCKS `socks HOST:PORT`.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic in the proxy").clone()
    }
}

fn lead(mut client: TcpStream, target: &str, heads: &Mutex<Vec<String>>) {
    let mut first = [0];
    let asked = client.read_exact(&mut first).and_then(|()| match first {
        [5] => socks(&mut client),
        [byte] => connect(&mut client, byte),
    });
    let Ok((head, established)) = asked else { return };
    let mut kept = heads.lock().expect("no panic in the proxy");
    kept.push(head.to_lowercase());
    drop(kept);
    let server = TcpStream::connect(target).expect("the server of the tunnel");
    if client.write_all(established).is_ok() {
        let both = [(&client, &server), (&server, &client)];
        for (from, to) in both {
            let (mut from, mut to) = (
                from.try_clone().expect("a socket"),
                to.try_clone().expect("a socket"),
            );
            // Either side hangs up when it is done.
            spawn(move || {
                let _ = copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Write);
            });
        }
    }
}

/// What is asked for by HTTP, and what says that it is there.
fn connect(client: &mut TcpStream, first: u8) -> io::Result<(String, &'static [u8])> {
    let mut head = vec![first];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(byte(client)?);
    }
    let head = String::from_utf8(head).expect("ASCII");
    Ok((head, b"HTTP/1.1 200 Connection established\r\n\r\n"))
}

/// What is asked for by SOCKS5 behind its version, by name and without a password (RFC 1928).
fn socks(client: &mut TcpStream) -> io::Result<(String, &'static [u8])> {
    let methods = byte(client)?;
    bytes(client, methods)?;
    client.write_all(&[5, 0])?;
    let request = bytes(client, 4)?;
    assert_eq!(request, [5, 1, 0, 3], "a connection to a host that is named");
    let length = byte(client)?;
    let host = String::from_utf8(bytes(client, length)?).expect("ASCII");
    let port = u16::from_be_bytes([byte(client)?, byte(client)?]);
    let established = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00";
    Ok((format!("socks {host}:{port}"), established))
}

fn byte(client: &mut TcpStream) -> io::Result<u8> {
    Ok(bytes(client, 1)?[0])
}

fn bytes(client: &mut TcpStream, count: u8) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::from(count)];
    client.read_exact(&mut bytes)?;
    Ok(bytes)
}
