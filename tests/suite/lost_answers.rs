//! Writes that were carried out while the answer did not come through: they are sent again,
//! and what is reported is what was done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::support::{
    Fault, Proxy, Sent, Set, Verdict, Watch, cluster, config_map, fresh, identities, namespace,
    namespace_object, with,
};

/// Breaks the first write of each object with a fault that loses the answer.
pub(super) struct Losing(pub(super) Fault, pub(super) Mutex<BTreeSet<String>>);

impl Watch for Losing {
    fn before(&self, sent: &Sent, _: usize) -> Verdict {
        // The record is another matter.
        let is_member = sent.is_write() && !sent.path.contains("/secrets/web");
        if is_member && self.1.lock().expect("no panic").insert(sent.path.clone()) {
            Verdict::Break(self.0)
        } else {
            Verdict::Forward
        }
    }
}

#[test]
fn what_was_made_while_the_answer_was_lost_is_reported_to_be_created() {
    for fault in [Fault::ClosedAfter, Fault::CutInHalf, Fault::GatewayTimeout] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let kept = config_map(&home, "kept", "1");
        set.apply(std::slice::from_ref(&kept));
        let objects = [config_map(&home, "kept", "2"), config_map(&home, "new", "1")];
        // The record is wide enough, so that only members are written.
        let proxy = Proxy::watched(Arc::new(Losing(fault, Mutex::default())));

        let run = set.apply_through(&proxy, &objects, &["-o", "json"]).expect(0);

        let attempts = |name: &str| {
            let path = format!("/api/v1/namespaces/{home}/configmaps/{name}");
            let sent = proxy.sent();
            sent.iter()
                .filter(|sent| sent.is_write() && sent.path.starts_with(&path))
                .count()
        };
        // Each is applied over what was read, which the first attempt has changed.
        assert_eq!([attempts("kept"), attempts("new")], [3, 3], "{fault:?}");
        let document = run.document();
        let results = document["results"].as_array().expect("results");
        let actions: BTreeMap<_, _> = results
            .iter()
            .map(|result| (result["name"].as_str(), result["action"].as_str()))
            .collect();
        let expected = [(Some("kept"), Some("configured")), (Some("new"), Some("created"))];
        assert_eq!(actions, expected.into(), "{fault:?}");
    }
}

#[test]
fn what_goes_while_the_answer_is_lost_is_reported_to_be_pruned_and_holds_nothing_back() {
    for fault in [Fault::ClosedAfter, Fault::CutInHalf, Fault::GatewayTimeout] {
        let (home, away) = (namespace("home"), fresh("away"));
        let set = Set::secret(&home, "web");
        let kept = config_map(&home, "kept", "1");
        let held = with(
            config_map(&away, "held", "1"),
            &json!({"metadata": {"finalizers": ["example.com/held"]}}),
        );
        let pruned = [
            namespace_object(&away),
            held.clone(),
            config_map(&away, "inside", "1"),
        ];
        set.apply(&[std::slice::from_ref(&kept), &pruned].concat());
        let proxy = Proxy::watched(Arc::new(Losing(fault, Mutex::default())));

        let run = set
            .apply_through(&proxy, std::slice::from_ref(&kept), &["-o", "json"])
            .expect(0);

        assert_eq!(
            run.results("pruned"),
            identities(&pruned),
            "{fault:?}: {}",
            run.stderr
        );
        assert_eq!(run.results("skipped"), Vec::<String>::new(), "{fault:?}");
        for name in ["held", "inside", &away] {
            assert_eq!(run.reason(name), "", "{fault:?}: {name}");
        }
        cluster().patch(&held, &json!({"metadata": {"finalizers": null}}));
    }
}

#[test]
fn what_goes_while_the_answer_is_lost_is_pruned() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    let held = with(
        config_map(&home, "held", "1"),
        &json!({"metadata": {"finalizers": ["example.com/held"]}}),
    );
    set.apply(&[kept.clone(), held.clone()]);
    let proxy = Proxy::watched(Arc::new(Losing(Fault::ClosedAfter, Mutex::default())));

    let run = set
        .apply_through(&proxy, std::slice::from_ref(&kept), &[])
        .expect(0);

    assert_eq!(run.results("pruned"), identities([&held]), "{}", run.stderr);
    cluster().patch(&held, &json!({"metadata": {"finalizers": null}}));
}
