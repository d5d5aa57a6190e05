//! A `StatefulSet` is created again around its Pods and claims.

use serde_json::{Value, json};

use crate::support::{Set, cluster, deletes_claims, eventually, identities, named, namespace, with};

fn stateful_set(home: &str, size: &str, label: &str) -> Value {
    let labels = json!({"app": label});
    with(
        named("apps/v1", "StatefulSet", Some(home), "db"),
        &json!({"spec": {
            "serviceName": "db",
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "db", "image": "db"}]},
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
            }],
        }}),
    )
}

/// A Pod as the controller makes it, which does not run here.
fn pod(home: &str, stateful_set: &Value) -> Value {
    let owner = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "db",
        "uid": stateful_set["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    });
    with(
        named("v1", "Pod", Some(home), "db-0"),
        &json!({
            "metadata": {"labels": {"app": "db"}, "ownerReferences": [owner]},
            "spec": {
                "automountServiceAccountToken": false,
                "containers": [{"name": "db", "image": "db"}],
            },
        }),
    )
}

#[test]
fn pods_are_left_to_the_new_one_unless_it_does_not_select_them() {
    for (label, selector, stays) in [
        ("db", json!({}), true),
        (
            "db",
            json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
            true,
        ),
        ("other", json!({}), false),
    ] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let old = stateful_set(&home, "1Gi", "db");
        set.apply(std::slice::from_ref(&old));
        let before = cluster().live(&old).expect("it");
        let pod = pod(&home, &before);
        cluster().create(&pod);
        let selector = json!({"spec": {"selector": selector}});
        let new = [with(stateful_set(&home, "2Gi", label), &selector)];

        let run = set.apply_with(&new, &["--recreate=StatefulSet"]).expect(0);

        assert_eq!(run.results("recreated"), identities(&new), "{label}");
        let after = cluster().live(&new[0]).expect("it");
        assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
        set.assert_holds(&new);
        let pod = eventually("the Pod is let go, or deleted", || match cluster().live(&pod) {
            None => Some(None),
            Some(pod) if pod["metadata"]["deletionTimestamp"].is_string() => Some(None),
            Some(pod) if pod["metadata"]["ownerReferences"].is_array() => None,
            pod => Some(pod),
        });
        assert_eq!(pod.is_some(), stays, "{label}");
    }
}

#[test]
fn one_that_deletes_its_claims_needs_the_flag() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [old, new] = ["1Gi", "2Gi"].map(|size| with(stateful_set(&home, size, "db"), &deletes_claims()));
    set.apply(&[old]);
    let new = [new];

    let run = set.apply_with(&new, &["--recreate=StatefulSet"]).expect(1);
    assert!(run.stderr.contains("its data would be lost"), "{}", run.stderr);
    let flags = ["--recreate=StatefulSet", "--allow-data-loss"];
    let run = set.apply_with(&new, &flags).expect(0);
    assert_eq!(run.results("recreated"), identities(&new));
}

#[test]
fn claims_stay_where_pods_do_although_they_would_go_with_it() {
    for (label, stays) in [("db", true), ("other", false)] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let [old, new] = [("1Gi", "db"), ("2Gi", label)]
            .map(|(size, label)| with(stateful_set(&home, size, label), &deletes_claims()));
        set.apply(std::slice::from_ref(&old));
        let owner = json!({
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": "db",
            "uid": cluster().live(&old).expect("it")["metadata"]["uid"],
            "controller": true,
        });
        let claim = with(
            named("v1", "PersistentVolumeClaim", Some(&home), "data-db-0"),
            &json!({
                "metadata": {"ownerReferences": [owner], "finalizers": null},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }),
        );
        cluster().create(&claim);
        let new = [new];
        let flags = ["--recreate=StatefulSet", "--allow-data-loss"];
        let preview = super::diff(&set, &new, &["-o", "markdown", flags[0], flags[1]]).expect(1);
        assert_eq!(
            preview.stdout.contains("its data would be lost"),
            !stays,
            "{}",
            preview.stdout
        );
        set.apply_with(&new, &flags).expect(0);
        let claim = eventually("the claim is let go, or deleted", || {
            match cluster().live(&claim) {
                None => Some(None),
                Some(claim) if claim["metadata"]["deletionTimestamp"].is_string() => Some(None),
                Some(claim) if claim["metadata"]["ownerReferences"].is_array() => None,
                claim => Some(claim),
            }
        });
        assert_eq!(claim.is_some(), stays, "{label}");
    }
}
