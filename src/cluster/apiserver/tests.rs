use std::convert::Infallible;
use std::sync::atomic::AtomicUsize;

use futures_util::future::join_all;
use http::Response;

use super::*;

/// Returns the most requests that were under way at once, of ten.
async fn most_under_way(limit: usize) -> usize {
    let [under_way, most] = [0, 0].map(|zero| Arc::new(AtomicUsize::new(zero)));
    let seen = Arc::clone(&most);
    let service = tower::service_fn(move |_: Request<Body>| {
        let (under_way, most) = (Arc::clone(&under_way), Arc::clone(&seen));
        async move {
            let now = under_way.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            // All that may be sent at once is sent while the first one waits.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            under_way.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, Infallible>(Response::new(Body::from(b"{}".to_vec())))
        }
    });
    let client = kube::Client::new(service, "default");
    let server = ApiServer::new(client, "https://example.com", Duration::from_secs(10)).with_at_most(limit);
    let replies = join_all((0..10).map(|_| server.get("/api", "application/json"))).await;
    assert!(replies.iter().all(Result::is_ok));
    most.load(Ordering::SeqCst)
}

#[tokio::test]
async fn no_more_requests_are_under_way_than_the_user_allows() {
    for limit in [1, 3, 10] {
        assert_eq!(most_under_way(limit).await, limit);
    }
}
