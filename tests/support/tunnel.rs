//! An HTTP proxy that knows CONNECT, and leads to the API server whatever it is asked for.

use std::io::{Read as _, Write as _, copy};
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
        let target = server.strip_prefix("https://").expect("https").to_owned();
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

    /// The heads of the requests so far, small letters throughout.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic in the proxy").clone()
    }
}

fn lead(mut client: TcpStream, target: &str, heads: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if client.read_exact(&mut byte).is_err() {
            return;
        }
        head.extend(byte);
    }
    let head = String::from_utf8(head).expect("ASCII");
    let mut kept = heads.lock().expect("no panic in the proxy");
    kept.push(head.to_lowercase());
    drop(kept);
    let server = TcpStream::connect(target).expect("the API server");
    let established = b"HTTP/1.1 200 Connection established\r\n\r\n";
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
