//! Dependencies of live objects when they are deleted: cycles that an earlier run has begun to delete,
//! containers, and what the parent of the set lives in.

use http::Method;

use super::depends_on::{after, depend, held, let_go, reference, sent};
use crate::support::{
    Program, ProgramEnd, Proxy, Set, cluster, config_map, custom_resource, definition, eventually, fresh,
    namespace, namespace_object, secret,
};

#[test]
fn a_cycle_that_a_killed_run_has_begun_to_delete_does_not_keep_the_set() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [one, two] = ["one", "two"].map(|name| config_map(&home, name, "1"));
    set.apply(&[held(one.clone()), two.clone()]);
    depend(&one, &reference(&two));
    depend(&two, &reference(&one));
    let proxy = Proxy::holding_after(2);
    let end = set
        .deletion(Program::with_kubeconfig(&proxy.kubeconfig()))
        .args(["--yes", "--concurrency=1"])
        .run_until_held(&proxy);
    assert!(matches!(end, ProgramEnd::Killed));
    let live = cluster().live(&one).expect("an object with a finalizer");
    assert!(live["metadata"]["deletionTimestamp"].is_string(), "{live}");
    assert!(cluster().live(&two).is_some());

    let running = set
        .deletion(Program::new())
        .args(["--yes", "--timeout=2m", "-o", "json"])
        .start();
    // Its controller lets go of an object when those that depend on it are gone.
    eventually("the other object of the cycle goes", || {
        cluster().live(&two).is_none().then_some(())
    });
    let_go(&one);
    let run = running.finish().expect(0);
    let warnings = run.warnings().join("\n");
    assert!(warnings.contains("form a cycle"), "{warnings}");
    assert_eq!(set.live_parent(), None);
}

#[test]
fn a_dependency_on_itself_is_warned_of_and_ignored() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = ["kept", "one", "two"].map(|name| config_map(&home, name, "1"));
    set.apply(&objects);
    depend(&objects[0], "what");
    depend(&objects[1], &reference(&objects[1]));
    let run = set.apply(&objects[..1]);
    let warnings = run.warnings().join("\n");
    assert!(warnings.contains("itself"), "{warnings}");
    assert!(warnings.contains("\"what\""), "{warnings}");
    set.assert_holds(&objects[..1]);
    depend(&objects[0], &reference(&objects[0]));
    let run = set.delete(&[]).expect(0);
    assert!(run.stderr.contains("itself"), "{}", run.stderr);
    assert_eq!(cluster().members(&set.id), []);
}

#[test]
fn what_an_unchanged_object_depends_on_in_the_cluster_is_kept() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [web, database, free] = ["web", "database", "free"].map(|name| config_map(&home, name, "1"));
    set.apply(&[web.clone(), database.clone(), free.clone()]);
    depend(&web, &reference(&database));
    let run = set.apply(std::slice::from_ref(&web));
    assert_eq!(run.results("pruned").len(), 1);
    assert!(run.reason("database").contains("configmap/web"), "{}", run.stdout);
    set.assert_holds(&[web, database]);
}

#[test]
fn nothing_waits_for_the_namespace_of_the_parent() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let database = secret(&away, "database");
    set.apply(&[namespace_object(&home), database.clone()]);
    depend(&namespace_object(&home), &reference(&database));
    let proxy = Proxy::transparent();
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    set.delete_with(program, &["--wait=2m", "--allow-data-loss"])
        .expect(0);
    assert_eq!(sent(&proxy, &Method::DELETE), ["database", "web", home.as_str()]);
    assert_eq!(cluster().live(&database), None);
}

#[test]
fn what_the_parent_needs_is_written_and_deleted_in_its_order() {
    let shop = fresh("shop");
    let group = format!("{}.example.com", fresh("order"));
    let set = Set::custom(&group, Some(&shop), &shop);
    let namespace = namespace_object(&shop);
    let kind = after(definition(&group, "Namespaced"), &[&namespace]);
    let name = kind["metadata"]["name"].as_str().expect("a name").to_owned();
    let member = custom_resource(&group, Some(&shop), "member");
    let objects = [kind, namespace, member];
    let parent = custom_resource(&group, Some(&shop), "web");
    let manifests = [objects.as_slice(), &[parent]].concat();
    let proxy = Proxy::transparent();
    set.apply_through(&proxy, &manifests, &["--timeout=1m"]).expect(0);
    let order = |method: &Method| {
        let mut names = sent(&proxy, method);
        names.retain(|sent| *sent == shop || *sent == name);
        names
    };
    assert_eq!(order(&Method::PATCH), [shop.clone(), name.clone()]);
    set.assert_holds(&objects);

    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    set.delete_with(program, &["--timeout=2m", "--allow-data-loss"])
        .expect(0);
    assert_eq!(order(&Method::DELETE), [name.clone(), shop.clone()]);
    assert_eq!(cluster().live(&objects[0]), None);
}
