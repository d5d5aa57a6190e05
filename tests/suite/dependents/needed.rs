//! Objects with an owner that leaves, which something else keeps as well.

use serde_json::{Value, json};

use super::{ALLOWED, assert_collected, assert_refused, family, give, owners, sentinel};
use crate::suite::depends_on::after;
use crate::support::{Set, cluster, cluster_role, config_map, fresh, namespace, namespace_object, with};

/// Asserts that a run of `desired` keeps `dependent`, and deletes its owner only with data loss allowed.
#[track_caller]
fn assert_outlives(set: &Set, desired: &[Value], flags: &[&str], owner: &Value, dependent: &Value) {
    assert_refused(set, desired, flags, owner, dependent);
    let sentinel = sentinel(&set.namespace, owner);
    set.apply_with(desired, &[flags, &ALLOWED].concat()).expect(0);
    assert_collected(&sentinel);
    assert_eq!(cluster().live(owner), None);
    assert_eq!(owners(dependent), 0);
}

#[test]
fn a_member_that_a_desired_object_depends_on() {
    let (set, a, b) = family();
    let web = after(config_map(&set.namespace, "web", "1"), &[&b]);
    assert_outlives(&set, &[web], &[], &a, &b);
}

#[test]
fn an_object_of_no_set_that_a_desired_object_depends_on() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [owner, outside, web] = ["owner", "outside", "web"].map(|name| config_map(&home, name, "1"));
    set.apply(&[owner.clone(), web.clone()]);
    cluster().create(&outside);
    give(&outside, &[&owner]);
    assert_outlives(&set, &[after(web, &[&outside])], &[], &owner, &outside);
}

#[test]
fn a_hook_that_is_skipped() {
    let (set, a, b) = family();
    let hook = with(
        b.clone(),
        &json!({"metadata": {"annotations": {"helm.sh/hook": "post-install"}}}),
    );
    let web = config_map(&set.namespace, "web", "1");
    assert_outlives(&set, &[web, hook], &["--hooks=skip"], &a, &b);
}

#[test]
fn a_namespace_with_an_object_that_an_annotation_keeps() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let (tenant, town) = (cluster_role(&fresh("tenant")), fresh("town"));
    let space = namespace_object(&town);
    set.apply(&[tenant.clone(), space.clone()]);
    give(&space, &[&tenant]);
    let precious = super::kept(config_map(&town, "precious", "1"));
    cluster().create(&precious);
    set.delete(&ALLOWED);
    assert_eq!(cluster().live(&tenant), None);
    assert_eq!(owners(&space), 0);
    let again = set.delete(&ALLOWED);
    assert!(again.stderr.contains("precious"), "{}", again.stderr);
    assert!(cluster().live(&precious).is_some());
}

#[test]
fn a_namespace_with_an_object_of_no_set_that_a_desired_object_depends_on() {
    let home = namespace("home");
    let town = fresh("town");
    let set = Set::secret(&home, "web");
    let (web, space) = (config_map(&home, "web", "1"), namespace_object(&town));
    set.apply(&[web.clone(), space.clone()]);
    let needed = config_map(&town, "needed", "1");
    cluster().create(&needed);
    let run = set.apply_with(&[after(web, &[&needed])], &ALLOWED).expect(0);
    assert_eq!(run.results("pruned").len(), 0, "{}", run.stdout);
    assert!(cluster().live(&needed).is_some());
}
