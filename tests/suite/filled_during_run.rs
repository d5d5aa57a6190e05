//! Namespaces and definitions of kinds into which something comes after it was decided that
//! they go: they stay, and what came in stays with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::{
    Fault, Program, Proxy, Sent, Set, Verdict, Watch, cluster, cluster_role, config_map, custom_resource,
    definition, fresh, identities, named, namespace, namespace_object, with,
};

/// A proxy through which a stranger makes an object before the first write.
fn strangers(object: &Value) -> Proxy {
    let object = object.clone();
    Proxy::before_write(0, move || {
        cluster().create(&object);
    })
}

#[track_caller]
fn assert_there_to_stay(objects: &[&Value]) {
    for object in objects {
        let live = cluster().live(object).expect("the object");
        assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null, "{object}");
    }
}

/// A container, a member in it, and what a stranger puts there.
fn containers() -> [[Value; 3]; 2] {
    let (away, group) = (fresh("away"), format!("{}.example.com", fresh("g")));
    [
        [
            namespace_object(&away),
            config_map(&away, "inside", "1"),
            config_map(&away, "stranger", "1"),
        ],
        [
            definition(&group, "Cluster"),
            custom_resource(&group, None, "inside"),
            custom_resource(&group, None, "stranger"),
        ],
    ]
}

#[test]
fn what_comes_into_a_container_during_a_run_keeps_it() {
    for [container, inside, stranger] in containers() {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let kept = config_map(&home, "kept", "1");
        set.apply(&[kept.clone(), container.clone(), inside.clone()]);

        let run = set
            .apply_through(&strangers(&stranger), std::slice::from_ref(&kept), &[])
            .expect(0);

        assert_there_to_stay(&[&container, &stranger]);
        assert_eq!(cluster().live(&inside), None);
        assert_eq!(set.members(), identities(&[kept.clone(), container.clone()]));
        assert_eq!(set.unrecorded(), Vec::<String>::new());
        let name = stranger["metadata"]["name"].as_str().expect("a name");
        assert!(run.stderr.contains(name), "{}", run.stderr);
        // From now on it is refused before anything is written, until the stranger is gone.
        set.apply_with(std::slice::from_ref(&kept), &[]).expect(3);
        cluster().delete(&stranger);
        set.apply(std::slice::from_ref(&kept));
        set.assert_holds_without(&container, &[kept]);
    }
}

#[test]
fn what_comes_into_a_container_goes_where_all_losses_are_allowed() {
    let [[container, inside, stranger], _] = containers();
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    set.apply(&[kept.clone(), container.clone(), inside]);
    let proxy = strangers(&stranger);
    set.apply_through(&proxy, std::slice::from_ref(&kept), &["--allow-data-loss"])
        .expect(0);
    set.assert_holds_without(&container, &[kept]);
}

#[test]
fn what_comes_into_the_namespace_of_the_parent_keeps_both() {
    let home = fresh("home");
    let set = Set::secret(&home, "web");
    let (own, inside) = (namespace_object(&home), config_map(&home, "inside", "1"));
    set.apply(&[own.clone(), inside.clone()]);
    let stranger = config_map(&home, "stranger", "1");

    let proxy = strangers(&stranger);
    set.delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &[])
        .expect(1);

    assert_there_to_stay(&[&own, &stranger]);
    assert_eq!(cluster().live(&inside), None);
    set.assert_holds(std::slice::from_ref(&own));
    cluster().delete(&stranger);
    set.delete(&[]).expect(0);
    assert_eq!(set.live_parent(), None);
}

#[test]
fn what_controllers_make_of_members_during_a_run_keeps_nothing() {
    let [[container, inside, _], _] = containers();
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    set.apply(&[kept.clone(), container.clone(), inside.clone()]);
    let uid = cluster().live(&inside).expect("a member")["metadata"]["uid"].clone();
    let place = inside["metadata"]["namespace"].as_str();
    let made = with(
        named("v1", "Secret", place, "made"),
        &json!({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "inside", "uid": uid},
        ]}}),
    );
    set.apply_through(&strangers(&made), std::slice::from_ref(&kept), &[])
        .expect(0);
    set.assert_holds_without(&container, &[kept]);
}

#[test]
fn what_an_owner_that_could_not_be_deleted_owns_keeps_its_container() {
    let [[container, inside, _], _] = containers();
    let owner = cluster_role(&fresh("owner"));
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    set.apply(&[kept.clone(), owner.clone(), container.clone(), inside]);
    let owned = with(
        named("v1", "ConfigMap", container["metadata"]["name"].as_str(), "owned"),
        &json!({"metadata": {
            "annotations": {"helm.sh/resource-policy": "keep"},
            "ownerReferences": [{
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "name": owner["metadata"]["name"],
                "uid": cluster().live(&owner).expect("the owner")["metadata"]["uid"],
            }],
        }}),
    );
    cluster().create(&owned);
    let denied = Proxy::breaking(Fault::InternalError, |sent| {
        sent.method == "DELETE" && sent.path.contains("/clusterroles/")
    });

    let run = set
        .apply_through(&denied, std::slice::from_ref(&kept), &["-o", "json"])
        .expect(1);

    assert_eq!(run.results("failed"), identities([&owner]), "{}", run.stderr);
    assert_eq!(run.results("skipped"), identities([&container]), "{}", run.stderr);
    assert_there_to_stay(&[&container, &owned, &owner]);
}

/// Whether it asks for all Secrets, whatever their labels.
fn is_look(sent: &Sent) -> bool {
    sent.path.contains("/secrets?labelSelector=&")
}

/// Fails every look but so many first ones.
struct Failing(usize, Fault, AtomicUsize);

impl Watch for Failing {
    fn before(&self, sent: &Sent, _: usize) -> Verdict {
        if is_look(sent) && self.2.fetch_add(1, Ordering::SeqCst) >= self.0 {
            Verdict::Break(self.1)
        } else {
            Verdict::Forward
        }
    }
}

#[test]
fn what_cannot_be_looked_into_any_more_stays_and_fails() {
    let [[container, inside, _], _] = containers();
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    set.apply(&[kept.clone(), container.clone(), inside]);
    let failing = |looks, fault| Proxy::watched(Arc::new(Failing(looks, fault, AtomicUsize::new(0))));
    // What cannot be seen beforehand is refused, unless nothing can be seen by this user.
    for (fault, code) in [(Fault::InternalError, 3), (Fault::Unauthorized, 4)] {
        let proxy = failing(0, fault);
        set.apply_through(&proxy, std::slice::from_ref(&kept), &[])
            .expect(code);
    }
    let proxy = failing(1, Fault::InternalError);

    let run = set
        .apply_through(&proxy, std::slice::from_ref(&kept), &["-o", "json"])
        .expect(1);

    assert_eq!(run.results("failed"), identities([&container]), "{}", run.stderr);
    assert_there_to_stay(&[&container]);
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    set.apply(std::slice::from_ref(&kept));
    set.assert_holds_without(&container, &[kept]);
}

#[test]
fn a_dry_run_looks_into_containers_once() {
    let [[container, inside, _], _] = containers();
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kept = config_map(&home, "kept", "1");
    set.apply(&[kept.clone(), container, inside]);
    let looks = |flag: &str| {
        let proxy = Proxy::transparent();
        set.apply_through(&proxy, std::slice::from_ref(&kept), &[flag])
            .expect(0);
        let sent = proxy.sent();
        sent.iter().filter(|sent| is_look(sent)).count()
    };
    assert_eq!(looks("--dry-run=client"), 1);
    assert_eq!(looks("--dry-run=server"), 1);
    assert_eq!(looks("--dry-run=none"), 2);
}
