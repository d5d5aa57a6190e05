//! Runs the writes of one wave, as many at once as the pace allows.
//!
//! What each write does is told by the caller; one that is slow holds up no other.

use std::time::Instant;

use futures_util::stream::{FuturesUnordered, StreamExt as _};

use super::Interrupt;
use super::pace::Pace;
use crate::apiserver::ApiServer;

/// Begins a write for each of `items` and hands on each answer as it comes. After an
/// interrupt nothing more is begun, and what is under way is waited for.
pub(super) async fn each<T, A>(
    server: &ApiServer,
    interrupt: &Interrupt,
    items: impl IntoIterator<Item = T>,
    write: impl AsyncFn(T) -> A,
    pace: &mut Pace,
    mut answered: impl FnMut(A),
) {
    let mut items = items.into_iter();
    let mut under_way = FuturesUnordered::new();
    loop {
        while under_way.len() < pace.limit() && !interrupt.is_requested() {
            let Some(item) = items.next() else { break };
            let write = &write;
            under_way.push(async move {
                let begun = Instant::now();
                (write(item).await, begun.elapsed())
            });
        }
        let pushbacks = server.pushbacks();
        let Some((answer, latency)) = under_way.next().await else {
            break;
        };
        if server.pushbacks() > pushbacks {
            pace.pushed_back();
        } else {
            pace.answered(latency);
        }
        answered(answer);
    }
}
