//! An object that the server does not show is left as it is, and the others are undone.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Response, StatusCode};

use super::*;
use crate::support::{Fault, Proxy, Sent, Verdict, Watch};

/// Answers as if the server did not know the paths of single objects of this kind.
struct UnknownPath(String);

impl Watch for UnknownPath {
    fn before(&self, _: &Sent, _: usize) -> Verdict {
        Verdict::Forward
    }

    fn after(&self, sent: &Sent, answer: Response<Bytes>) -> Response<Bytes> {
        if sent.method != "GET" || !sent.path.contains(&self.0) {
            return answer;
        }
        let (mut parts, _) = answer.into_parts();
        parts.status = StatusCode::NOT_FOUND;
        parts.headers.remove(CONTENT_LENGTH);
        Response::from_parts(parts, Bytes::from("404 page not found\n"))
    }
}

fn definition_of_two_versions(group: &str) -> Value {
    let mut kind = definition(group, "Namespaced");
    let versions = kind["spec"]["versions"].as_array_mut().expect("versions");
    let mut newer = versions[0].clone();
    newer["name"] = json!("v2");
    newer["storage"] = json!(false);
    versions.insert(0, newer);
    kind
}

fn newer_widget(group: &str, namespace: &str, size: u64) -> Value {
    let mut object = custom_resource(group, Some(namespace), "one");
    object["apiVersion"] = json!(format!("{group}/v2"));
    object["spec"]["size"] = json!(size);
    object
}

#[test]
fn a_version_that_is_no_longer_served_does_not_keep_the_others_from_being_undone() {
    let home = namespace("undo");
    let group = format!("{}.example.com", fresh("g"));
    let kind = definition_of_two_versions(&group);
    cluster().define(&kind);
    let runs = Runs::of(Set::secret(&home, "web"));
    let widget = |size| newer_widget(&group, &home, size);
    let old = [config_map(&home, "two", "1"), widget(1)];
    let new = [config_map(&home, "two", "2"), widget(2)];
    runs.set.apply(&old);
    runs.apply("undo", &new, &[]).expect(0);
    let mut versions = kind["spec"]["versions"].clone();
    versions[0]["served"] = json!(false);
    cluster().patch(&kind, &json!({"spec": {"versions": versions}}));
    eventually("the newer version is not served any more", || {
        (!cluster().knows(&format!("/apis/{group}/v2/widgets"))).then_some(())
    });

    let run = runs.undo("undo", &[]).expect(1);

    assert_eq!(actions(&run)["ConfigMap/two"], "configured");
    let (action, reason) = &results(&run)["Widget/one"];
    assert_eq!(action, "skipped");
    assert_eq!(
        *reason,
        format!("the server no longer serves its version {group}/v2")
    );
    let live = cluster().live(&old[0]).expect("the ConfigMap");
    assert_eq!(live["data"], old[0]["data"]);
    let mut stored = widget(2);
    stored["apiVersion"] = json!(format!("{group}/v1"));
    let live = cluster().live(&stored).expect("the custom resource");
    assert_eq!(live["spec"]["size"], json!(2));
    assert_eq!(runs.set.members().len(), 2);
    cluster().delete(&kind);
}

#[test]
fn an_answer_that_may_change_stops_an_undo_before_it_writes() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let objects = |value| ["one", "two"].map(|name| config_map(&home, name, value));
    let (old, new) = (objects("1"), objects("2"));
    runs.set.apply(&old);
    runs.apply("undo", &new, &[]).expect(0);

    let proxy = Proxy::breaking(Fault::Unauthorized, |sent| sent.path.contains("/configmaps/one"));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());

    runs.undo_by(program, "undo").run().expect(4);

    for object in &new {
        assert_eq!(cluster().live(object).expect("it")["data"], object["data"]);
    }
    runs.undo("undo", &[]).expect(0);
    for object in &old {
        assert_eq!(cluster().live(object).expect("it")["data"], object["data"]);
    }
}

#[test]
fn a_path_that_is_unknown_although_the_version_is_served_stops_an_undo() {
    let home = namespace("undo");
    let group = format!("{}.example.com", fresh("g"));
    let kind = definition_of_two_versions(&group);
    cluster().define(&kind);
    let runs = Runs::of(Set::secret(&home, "web"));
    let objects = |value: &str, size| [config_map(&home, "two", value), newer_widget(&group, &home, size)];
    runs.set.apply(&objects("1", 1));
    let new = objects("2", 2);
    runs.apply("undo", &new, &[]).expect(0);
    let proxy = Proxy::watched(Arc::new(UnknownPath("/widgets/one".to_owned())));

    runs.undo_by(Program::with_kubeconfig(&proxy.kubeconfig()), "undo")
        .run()
        .expect(4);

    let live = cluster().live(&new[0]).expect("the ConfigMap");
    assert_eq!(live["data"], new[0]["data"]);
    runs.undo("undo", &[]).expect(0);
    cluster().delete(&kind);
}

#[test]
fn an_object_without_a_kind_or_a_namespace_does_not_keep_the_others_from_being_undone() {
    let [home, away] = [namespace("undo"), namespace("undo-away")];
    let group = format!("{}.example.com", fresh("g"));
    let kind = definition(&group, "Namespaced");
    cluster().define(&kind);
    let runs = Runs::of(Set::secret(&home, "web"));
    let changed = |value| config_map(&home, "changed", value);
    let pruned = [
        custom_resource(&group, Some(&home), "kindless"),
        config_map(&away, "homeless", "1"),
    ];
    runs.set.apply(&[&[changed("1")], &pruned[..]].concat());
    runs.apply("undo", &[changed("2")], &[]).expect(0);
    cluster().delete(&kind);
    cluster().delete(&namespace_object(&away));
    eventually("the kind and the namespace are gone", || {
        let is_gone = !cluster().knows(&format!("/apis/{group}/v1/widgets"))
            && cluster().live(&namespace_object(&away)).is_none();
        is_gone.then_some(())
    });

    let run = runs.undo("undo", &[]).expect(1);

    let results = results(&run);
    assert_eq!(results["ConfigMap/changed"].0, "configured");
    for (name, reason) in [
        ("Widget/kindless", "the server no longer serves its kind"),
        ("ConfigMap/homeless", "its namespace does not exist"),
    ] {
        assert_eq!(results[name], ("skipped".to_owned(), reason.to_owned()));
    }
    assert_eq!(
        cluster().live(&changed("1")).expect("it")["data"],
        changed("1")["data"]
    );
}

#[test]
fn a_parent_that_was_deleted_loses_no_member_by_an_undo() {
    let [home, away] = [namespace("undo"), namespace("undo-away")];
    let runs = Runs::of(Set::secret(&home, "web"));
    let created = [config_map(&home, "one", "1"), service(&away, "two", 80)];
    let kept = secret(&away, "kept");
    runs.set.apply(std::slice::from_ref(&kept));
    runs.apply("undo", &[&created[..], std::slice::from_ref(&kept)].concat(), &[])
        .expect(0);
    cluster().delete(&secret(&home, "web"));

    let run = runs.undo("undo", &[]).expect(0);

    assert_eq!(
        actions(&run),
        expected(&[("ConfigMap/one", "pruned"), ("Service/two", "pruned")])
    );
    runs.set.assert_holds(std::slice::from_ref(&kept));
    assert_eq!(runs.set.unrecorded(), Vec::<String>::new());
}
