//! Objects that a run takes for unchanged are not sent. That makes no difference to the
//! cluster: a run that sends everything brings it to the same place.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Proxy, Set, cluster, config_map, named, namespace, path_of, secret, service, with};

/// Objects whose values the server writes in another way, defaults, or owns itself.
fn objects(home: &str) -> Vec<Value> {
    let namespaced = |api_version: &str, kind: &str, name: &str, more: Value| {
        with(named(api_version, kind, Some(home), name), &more)
    };
    let pod = json!({
        "metadata": {"labels": {"app": "web"}, "creationTimestamp": null},
        "spec": {"containers": [{
            "name": "web",
            "image": "registry.example.com/web:1",
            "args": [],
            "env": [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"limits": {"cpu": "1000m", "memory": 0.5e9}},
        }]},
    });
    let selector = json!({"matchLabels": {"app": "web"}});
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}});
    vec![
        config_map(home, "plain", "1"),
        config_map(home, "dropped", "1"),
        secret(home, "plain"),
        namespaced(
            "v1",
            "Secret",
            "written",
            json!({"stringData": {"a": "b"}, "data": {"c": "ZG\nVm\n"}}),
        ),
        service(home, "web", 80),
        namespaced(
            "v1",
            "PersistentVolumeClaim",
            "pending",
            json!({"spec": claim, "status": {}}),
        ),
        namespaced(
            "v1",
            "LimitRange",
            "limits",
            json!({"spec": {"limits": [
                {"type": "Container", "max": {"cpu": 2}, "defaultRequest": {"cpu": 0.1}},
            ]}}),
        ),
        namespaced(
            "apps/v1",
            "Deployment",
            "web",
            json!({"spec": {"selector": selector, "template": pod}, "status": {}}),
        ),
        namespaced(
            "apps/v1",
            "StatefulSet",
            "data",
            json!({"spec": {
                "selector": selector,
                "serviceName": "web",
                "template": pod,
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim, "status": {}}],
            }}),
        ),
        namespaced(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            "web",
            json!({
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["192.0.2.1"]}],
                "ports": [{"port": 80}],
            }),
        ),
        namespaced(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "all",
            json!({"spec": {
                "podSelector": {}, "ingress": [{"ports": [{"port": 80}]}],
            }}),
        ),
    ]
}

/// What others do in the meantime: add, change, take out, and take over.
fn meddle(home: &str) {
    let objects = objects(home);
    let find = |kind: &str, name: &str| {
        let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        objects.iter().find(is_it).expect("one of the objects")
    };
    cluster().patch(
        find("ConfigMap", "plain"),
        &json!({"data": {"key": "2", "other": "3"}}),
    );
    cluster().patch(
        find("Service", "web"),
        &json!({"metadata": {"labels": {"x": "y"}}}),
    );
    cluster().patch(
        find("Deployment", "web"),
        &json!({"spec": {"template": {"metadata": {"labels": {"app": "web", "more": "x"}}}}}),
    );
    cluster().patch(find("NetworkPolicy", "all"), &json!({"spec": {"ingress": null}}));
    cluster().apply_as(
        "other",
        &with(
            named("v1", "Secret", Some(home), "plain"),
            &json!({"data": {"more": "eA=="}}),
        ),
    );
}

/// Everything of these objects but what differs between two of the same.
fn contents(set: &Set, objects: &[Value]) -> Vec<(String, Option<Value>)> {
    let everything = objects.iter().chain([&set.parent]);
    everything
        .map(|object| {
            let general = |text: String| {
                let text = text.replace(&format!("\"{}\"", set.namespace), "\"NAMESPACE\"");
                text.replace(&set.id, "ID")
            };
            let live = cluster().live(object).map(|mut live| {
                let metadata = live["metadata"].as_object_mut().expect("metadata");
                for field in ["uid", "resourceVersion", "creationTimestamp"] {
                    metadata.remove(field).expect("every object has it");
                }
                // The history has the digest of manifests, which name the namespace, and times.
                if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                    annotations.remove("kubectl-applyset/history");
                }
                for entry in metadata["managedFields"].as_array_mut().expect("managers") {
                    entry.as_object_mut().expect("an entry").remove("time");
                }
                if let Some(spec) = live.get_mut("spec").and_then(Value::as_object_mut) {
                    spec.retain(|field, _| !matches!(field.as_str(), "clusterIP" | "clusterIPs"));
                }
                serde_json::from_str(&general(live.to_string())).expect("still an object")
            });
            (path_of(object).replace(&set.namespace, "NAMESPACE"), live)
        })
        .collect()
}

/// Applies the objects, and reports how many of them were sent.
fn sent(set: &Set, objects: &[Value], flags: &[&str]) -> usize {
    let proxy = Proxy::transparent();
    set.apply_through(&proxy, objects, flags).expect(0);
    let is_apply = |path: &str| path.contains("fieldManager=applyset&");
    let sent = proxy.sent();
    sent.iter()
        .filter(|request| request.method == Method::PATCH && is_apply(&request.path))
        .count()
}

#[test]
fn leaving_out_what_is_unchanged_makes_no_difference() {
    let [detecting, sending] = ["detecting", "sending"].map(|prefix| Set::secret(&namespace(prefix), "web"));
    let both = [
        (&detecting, &["--force-conflicts"][..]),
        (&sending, &["--force-conflicts", "--apply-unchanged"][..]),
    ];
    let compare = |step: &str| {
        let [ours, theirs] = [&detecting, &sending].map(|set| contents(set, &objects(&set.namespace)));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours, theirs, "{step}");
        }
    };
    let all = objects("").len();

    let [_, _] = both.map(|(set, flags)| sent(set, &objects(&set.namespace), flags));
    compare("created");

    let counts = both.map(|(set, flags)| sent(set, &objects(&set.namespace), flags));
    assert_eq!(counts, [0, all], "sent again");
    compare("applied again");

    for (set, _) in both {
        meddle(&set.namespace);
    }
    let counts = both.map(|(set, flags)| sent(set, &objects(&set.namespace), flags));
    assert!(counts[0] < all / 2, "{counts:?} sent after others meddled");
    compare("others meddled");

    let later = |home: &str| {
        let mut objects = objects(home);
        objects.remove(1);
        objects[0]["data"] = json!({"changed": "1"});
        objects[5]["metadata"]["labels"] = json!({"changed": "1"});
        objects
    };
    let counts = both.map(|(set, flags)| sent(set, &later(&set.namespace), flags));
    assert_eq!(counts, [2, all - 1], "changed and dropped");
    compare("changed and dropped");

    // The same of one cluster: what detection leaves alone, sending leaves as it is.
    let before = contents(&detecting, &objects(&detecting.namespace));
    sent(&detecting, &later(&detecting.namespace), &["--apply-unchanged"]);
    assert_eq!(contents(&detecting, &objects(&detecting.namespace)), before);
}
