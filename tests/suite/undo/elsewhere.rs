//! An undo in another cluster.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;

use super::*;
use crate::support::{Proxy, Sent, Verdict, Watch};

/// Another cluster, with objects of the same names.
struct Elsewhere;

impl Watch for Elsewhere {
    fn before(&self, _sent: &Sent, _writes: usize) -> Verdict {
        Verdict::Forward
    }

    fn after(&self, sent: &Sent, answer: Response<Bytes>) -> Response<Bytes> {
        if !sent.path.contains("/namespaces/kube-system") {
            return answer;
        }
        answer.map(|body| {
            let mut object: Value = serde_json::from_slice(&body).expect("an object");
            object["metadata"]["uid"] = json!("of-another-cluster");
            Bytes::from(object.to_string())
        })
    }
}

#[test]
fn nothing_of_the_file_is_sent_to_another_cluster() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let value = |value: &str| with(secret(&home, "keys"), &json!({"data": {"key": value}}));
    runs.set.apply(&[value("b2xk")]);
    runs.apply("undo", &[value("bmV3")], &[]).expect(0);
    // There, the object has another value.
    cluster().patch(&value("b2xk"), &json!({"data": {"key": "b3RoZXI="}}));
    let proxy = Proxy::watched(Arc::new(Elsewhere));
    let run = runs
        .undo_by(Program::with_kubeconfig(&proxy.kubeconfig()), "undo")
        .run()
        .expect(3);
    assert!(run.stdout.contains("another cluster") || run.stderr.contains("another cluster"));
    let sent: Vec<String> = proxy
        .sent()
        .into_iter()
        .filter(|sent| sent.path.contains("/secrets/keys"))
        .map(|sent| format!("{} {}", sent.method, sent.path))
        .collect();
    assert_eq!(sent, Vec::<String>::new());
}
