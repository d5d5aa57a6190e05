//! Owners of what holds objects that stay: of namespaces, and of the definitions of kinds.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::Value;

use super::during_run::giving;
use super::{ALLOWED, assert_refused, give, kept};
use crate::support::{
    Program, Proxy, Run, Sent, Set, Verdict, Watch, cluster, cluster_role, config_map, custom_resource,
    definition, fresh, identities, namespace, namespace_object,
};

/// Asserts that the set is not deleted, whatever is allowed, and that the error names both.
#[track_caller]
fn assert_not_deleted(set: &Set, members: &[Value], holder: &Value) {
    for mode in [&[][..], &ALLOWED, &["--dry-run=client"], &["--dry-run=server"]] {
        let run = set.delete(mode).expect(3);
        let errors = run.errors();
        assert_eq!(errors.len(), 1, "{}", run.stderr);
        for object in [&members[0], holder] {
            let name = object["metadata"]["name"].as_str().expect("a name");
            assert!(errors[0].contains(&format!("/{name}")), "{}", run.stderr);
        }
        set.assert_holds(members);
    }
}

#[test]
fn the_namespace_of_a_kept_object() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let a = cluster_role(&fresh("tenant"));
    let b = kept(config_map(&away, "b", "1"));
    let c = config_map(&home, "c", "1");
    let members = [a.clone(), b.clone(), c.clone()];
    set.apply(&members);
    let place = namespace_object(&away);
    give(&place, &[&a]);
    for flags in [&[][..], &ALLOWED] {
        assert_refused(&set, std::slice::from_ref(&c), flags, &a, &place);
    }
    assert_not_deleted(&set, &members, &place);

    give(&place, &[]);
    set.delete(&[]).expect(0);
    assert_eq!(cluster().live(&a), None);
    assert!(cluster().live(&b).is_some());
}

#[test]
fn the_namespace_of_the_parent() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let a = cluster_role(&fresh("tenant"));
    let b = cluster_role(&fresh("other"));
    set.apply(&[a.clone(), b.clone()]);
    let place = namespace_object(&home);
    give(&place, &[&a]);
    assert_refused(&set, std::slice::from_ref(&b), &[], &a, &place);
    assert_not_deleted(&set, &[a, b], &place);

    give(&place, &[]);
    set.delete(&[]).expect(0);
    assert_eq!(set.live_parent(), None);
}

/// Asserts that the run has left `a`, which owns the holder by now, and says so.
#[track_caller]
fn assert_left(run: Run, set: &Set, members: &[Value], holder: &Value) {
    let run = run.expect(1);
    let a = &members[..1];
    assert_eq!(run.results("failed"), identities(a), "{}", run.stderr);
    let name = holder["metadata"]["name"].as_str().expect("a name");
    assert!(run.stderr.contains(&format!("/{name}")), "{}", run.stderr);
    set.assert_holds(members);
}

#[test]
fn a_namespace_that_is_owned_after_the_plan() {
    let [home, away] = [namespace("home"), namespace("away")];
    for (place, is_parent_lost) in [(&home, false), (&home, true), (&away, false)] {
        let place = namespace_object(place);
        let set = Set::secret(&home, &fresh("web"));
        let a = cluster_role(&fresh("tenant"));
        let b = kept(config_map(&away, &fresh("b"), "1"));
        let c = cluster_role(&fresh("other"));
        let members = [a.clone(), b, c.clone()];
        set.apply(&members);
        if is_parent_lost {
            cluster().delete(&set.parent);
        }

        let run = set.apply_through(&giving(&place, &a), &[c], &ALLOWED);

        assert_left(run, &set, &members, &place);
        give(&place, &[]);
    }
}

#[test]
fn the_namespace_of_a_kept_object_that_is_owned_after_the_plan_of_a_deletion() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let a = cluster_role(&fresh("tenant"));
    let members = [a.clone(), kept(config_map(&away, "b", "1"))];
    set.apply(&members);
    let place = namespace_object(&away);
    let proxy = giving(&place, &a);

    let run = set.delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &ALLOWED);

    assert_left(run, &set, &members, &place);
}

/// A kind of its own, which belongs to no set.
fn kind(scope: &str) -> (String, Value) {
    let group = format!("{}.example.com", fresh("holders"));
    let definition = definition(&group, scope);
    cluster().define(&definition);
    (group, definition)
}

#[test]
fn the_definition_of_the_kind_of_a_desired_object() {
    let (group, definition) = kind("Namespaced");
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let a = cluster_role(&fresh("tenant"));
    let b = custom_resource(&group, Some(&home), "b");
    let members = [a.clone(), b.clone()];
    set.apply(&members);
    let desired = std::slice::from_ref(&b);

    let run = set.apply_through(&giving(&definition, &a), desired, &ALLOWED);

    assert_left(run, &set, &members, &definition);
    for flags in [&[][..], &ALLOWED] {
        assert_refused(&set, desired, flags, &a, &definition);
    }
    give(&definition, &[]);
    set.apply(desired);
    set.assert_holds(desired);
}

#[test]
fn the_definition_of_the_kind_of_a_kept_object() {
    let (group, definition) = kind("Cluster");
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let a = cluster_role(&fresh("tenant"));
    let b = kept(custom_resource(&group, None, &fresh("b")));
    let c = config_map(&home, "c", "1");
    let members = [a.clone(), b, c.clone()];
    set.apply(&members);
    give(&definition, &[&a]);
    assert_refused(&set, &[c], &ALLOWED, &a, &definition);
    assert_not_deleted(&set, &members, &definition);
}

#[test]
fn the_definition_of_the_kind_of_the_parent() {
    let (group, definition) = kind("Cluster");
    let home = namespace("home");
    let set = Set::custom(&group, None, &home);
    cluster().create(&set.parent);
    let (a, b) = (cluster_role(&fresh("tenant")), config_map(&home, "b", "1"));
    let members = [a.clone(), b.clone()];
    set.apply(&members);
    give(&definition, &[&a]);
    assert_refused(&set, &[b], &ALLOWED, &a, &definition);
    assert_not_deleted(&set, &members, &definition);
}

#[test]
fn a_definition_among_the_manifests_is_detached() {
    let group = format!("{}.example.com", fresh("holders"));
    let definition = definition(&group, "Namespaced");
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let a = cluster_role(&fresh("tenant"));
    let desired = [definition.clone(), custom_resource(&group, Some(&home), "b")];
    set.apply(&[std::slice::from_ref(&a), &desired].concat());
    give(&definition, &[&a]);
    assert_refused(&set, &desired, &[], &a, &definition);
    set.apply_with(&desired, &ALLOWED).expect(0);
    assert_eq!(cluster().live(&a), None);
    set.assert_holds(&desired);
}

/// Answers all requests to a path with this status.
struct Answered(String, StatusCode);

impl Watch for Answered {
    fn before(&self, _: &Sent, _: usize) -> Verdict {
        Verdict::Forward
    }

    fn after(&self, sent: &Sent, answer: Response<Bytes>) -> Response<Bytes> {
        if sent.path.split('?').next() != Some(&self.0) {
            return answer;
        }
        let status = Bytes::from(r#"{"kind":"Status","apiVersion":"v1","message":"a test"}"#);
        let answer = Response::builder().status(self.1);
        let answer = answer.header("Content-Type", "application/json").body(status);
        answer.expect("an answer")
    }
}

#[test]
fn an_owner_goes_only_if_the_owners_of_all_holders_can_be_read() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let a = cluster_role(&fresh("tenant"));
    let (b, c) = (kept(config_map(&away, "b", "1")), config_map(&home, "c", "1"));
    let members = [a.clone(), b, c.clone()];
    set.apply(&members);
    let path = format!("/api/v1/namespaces/{away}");
    for (status, code) in [(StatusCode::INTERNAL_SERVER_ERROR, 4), (StatusCode::FORBIDDEN, 3)] {
        let proxy = || Proxy::watched(Arc::new(Answered(path.clone(), status)));
        let applied = set.apply_through(&proxy(), std::slice::from_ref(&c), &ALLOWED);
        let proxy = proxy();
        let deleted = set.delete_with(Program::with_kubeconfig(&proxy.kubeconfig()), &ALLOWED);
        for run in [applied, deleted] {
            let run = run.expect(code);
            assert!(run.stderr.contains("namespace"), "{}", run.stderr);
        }
        set.assert_holds(&members);
    }
}
