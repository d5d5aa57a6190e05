//! A link with latency to the API server: a TCP proxy that delays all bytes by half of the round trip
//! each way, and counts sequential round trips. Without latency, there is no proxy: it would use processor
//! time, and more of it for many connections than for few.
//!
//! Bytes of the client belong to the round trip after the last one whose answer has arrived, on
//! whichever connection. Each round trip takes its time, so a client cannot have more of them in a row
//! than fit into its run, and with a long link the count is exact. To connect is one, too.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use crate::Result;
use crate::connection::Address;
use crate::server::Server;

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// A link to a server; it is open until the bench ends.
pub(crate) struct Link {
    /// The server at the other end.
    pub(crate) address: Address,
    /// The admin's kubeconfig with this way to the server.
    pub(crate) kubeconfig: PathBuf,
    trips: Arc<AtomicU64>,
}

impl Link {
    /// Opens a link with this round trip.
    pub(crate) async fn open(server: &Server, round_trip: Duration, scratch: &Path) -> Result<Self> {
        if round_trip.is_zero() {
            return Ok(Self {
                address: server.address.clone(),
                kubeconfig: server.control_plane.admin_kubeconfig().to_owned(),
                trips: Arc::default(),
            });
        }
        let url = server.control_plane.server_url();
        let (_, target) = url.split_once("://").ok_or("the server has no URL")?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let own_url = format!("https://127.0.0.1:{port}");
        let text = fs::read_to_string(server.control_plane.admin_kubeconfig())?;
        if !text.contains(url) {
            return Err("the admin's kubeconfig does not name the server".into());
        }
        let kubeconfig = scratch.join(format!("link-{port}.kubeconfig"));
        fs::write(&kubeconfig, text.replace(url, &own_url))?;
        let trips = Arc::new(AtomicU64::new(0));
        tokio::spawn(serve(listener, target.to_owned(), round_trip, Arc::clone(&trips)));
        Ok(Self {
            address: server.address_at(&own_url)?,
            kubeconfig,
            trips,
        })
    }

    /// Begins to count.
    pub(crate) fn reset(&self) {
        self.trips.store(0, Ordering::SeqCst);
    }

    /// The sequential round trips since then, without that of the first TCP connection.
    pub(crate) fn round_trips(&self) -> u64 {
        self.trips.load(Ordering::SeqCst).saturating_sub(1)
    }
}

async fn serve(listener: TcpListener, target: String, round_trip: Duration, trips: Arc<AtomicU64>) {
    while let Ok((client, _)) = listener.accept().await {
        let (target, trips) = (target.clone(), Arc::clone(&trips));
        tokio::spawn(async move {
            // The kernel has connected already, so the bytes wait instead.
            let trip = trips.load(Ordering::SeqCst) + 1;
            sleep(round_trip).await;
            trips.fetch_max(trip, Ordering::SeqCst);
            let Ok(server) = TcpStream::connect(&target).await else {
                return;
            };
            if client.set_nodelay(true).is_err() || server.set_nodelay(true).is_err() {
                return;
            }
            relay(client, server, round_trip / 2, &trips).await;
        });
    }
}

async fn relay(client: TcpStream, server: TcpStream, delay: Duration, trips: &AtomicU64) {
    // The round trip of what the server got last.
    let asked = AtomicU64::new(0);
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let up = pump(
        from_client,
        to_server,
        delay,
        || trips.load(Ordering::SeqCst) + 1,
        |trip| _ = asked.fetch_max(trip, Ordering::SeqCst),
    );
    let down = pump(
        from_server,
        to_client,
        delay,
        || asked.load(Ordering::SeqCst),
        |trip| _ = trips.fetch_max(trip, Ordering::SeqCst),
    );
    join(up, down).await;
}

/// Moves bytes one way. `trip` says to which round trip bytes belong that are read now; `arrived` is
/// called before they are written.
async fn pump(
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    delay: Duration,
    trip: impl Fn() -> u64,
    arrived: impl Fn(u64),
) {
    let (sender, mut receiver) = mpsc::unbounded_channel::<(Instant, u64, Vec<u8>)>();
    let reading = async move {
        let mut buffer = vec![0; CHUNK];
        loop {
            let read = read(&from, &mut buffer).await.unwrap_or(0);
            let chunk = (Instant::now() + delay, trip(), buffer[..read].to_vec());
            if sender.send(chunk).is_err() || read == 0 {
                return;
            }
        }
    };
    let writing = async move {
        while let Some((time, trip, bytes)) = receiver.recv().await {
            sleep_until(time).await;
            if bytes.is_empty() {
                break;
            }
            arrived(trip);
            if write(&to, &bytes).await.is_err() {
                return;
            }
        }
    };
    join(reading, writing).await;
}

async fn read(from: &OwnedReadHalf, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        from.readable().await?;
        match from.try_read(buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            read => return read,
        }
    }
}

async fn write(to: &OwnedWriteHalf, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
