//! `adopt --from` ends the ownership of the former tool: the next `apply` changes and removes the fields
//! that the tool has written, as if they had been ours from the start.

use serde_json::{Value, json};

use super::inventories::{by_helm, define, release};
use crate::support::{
    Program, ProgramEnd, Proxy, Run, Set, cluster, config_map, fresh, identities, named, namespace, with,
};

/// How a tool writes.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// By POST, PUT or a patch.
    Updates,
    /// By server-side apply.
    Applies,
}

/// A Service as the tool has it.
fn before(home: &str) -> Value {
    with(
        named("v1", "Service", Some(home), "web"),
        &json!({
            "metadata": {"annotations": {"note": "old"}},
            "spec": {
                "selector": {"app": "web", "tier": "front"},
                "ports": [{"name": "http", "port": 80}, {"name": "metrics", "port": 9090}],
            },
        }),
    )
}

/// The same Service with another list key, and without a list item, a field and an annotation.
fn after(home: &str) -> Value {
    with(
        named("v1", "Service", Some(home), "web"),
        &json!({"spec": {
            "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 8080}],
        }}),
    )
}

fn write(manager: &str, way: Way, object: &Value) {
    match way {
        Way::Updates => cluster().create_as(manager, object),
        Way::Applies => cluster().apply_as(manager, object),
    };
}

fn adopt(set: &Set, from: &str, flags: &[&str]) -> Run {
    let arguments = [&["--from", from, "--yes"][..], flags].concat();
    set.invoke("adopt", &arguments).expect(0)
}

/// Asserts that the apply of the changed Service has changed what the tool wrote, and nothing of others.
#[track_caller]
fn assert_left(set: &Set, home: &str) {
    let object = after(home);
    let run = set.apply(std::slice::from_ref(&object));
    assert_eq!(run.results("configured"), identities([&object]));
    let live = cluster().live(&object).expect("the object");
    assert_eq!(live["spec"]["selector"], json!({"app": "web"}));
    let ports = live["spec"]["ports"].as_array().expect("ports");
    let ports: Vec<&Value> = ports.iter().map(|port| &port["port"]).collect();
    assert_eq!(ports, [8080]);
    assert_eq!(live["metadata"]["annotations"], json!({"theirs": "1"}));
    set.assert_holds(std::slice::from_ref(&object));
    let run = set.apply(std::slice::from_ref(&object));
    assert_eq!(run.results("unchanged"), identities([&object]));
}

/// Has each of the tool's managers write a Service with the tool's mark, adopts that from the inventory, and
/// changes it. `prepare` makes the inventory in the given namespace and returns its name and the mark.
#[track_caller]
fn assert_leaves(managers: &[(&str, Way)], prepare: impl Fn(&str) -> (String, Value)) {
    for &(manager, way) in managers {
        for keeps_first in [false, true] {
            let home = namespace("home");
            let (from, mark) = prepare(&home);
            let object = with(before(&home), &mark);
            write(manager, way, &object);
            cluster().patch(&object, &json!({"metadata": {"annotations": {"theirs": "1"}}}));
            let set = Set::secret(&home, "web");
            if keeps_first {
                adopt(&set, &from, &["--keep-field-ownership"]);
                set.apply_with(&[after(&home)], &[]).expect(1);
            }
            let state = cluster().state(&[&home]);
            let content = cluster().content(&object);
            for dry_run in ["--dry-run=client", "--dry-run=server"] {
                let run = adopt(&set, &from, &[dry_run]);
                assert_eq!(run.results("adopted"), identities([&object]), "{manager} {way:?}");
                assert_eq!(cluster().state(&[&home]), state);
            }
            let run = adopt(&set, &from, &[]);
            assert_eq!(run.results("adopted"), identities([&object]), "{manager} {way:?}");
            assert_eq!(cluster().content(&object), content);
            let run = adopt(&set, &from, &[]);
            assert_eq!(run.results("unchanged"), identities([&object]));
            assert_left(&set, &home);
        }
    }
}

fn annotated(annotations: &Value) -> Value {
    json!({"metadata": {"annotations": annotations}})
}

fn helm(home: &str) -> (String, Value) {
    cluster().create(&release(home, "web", 1, "deployed", &[before(home)]));
    (
        "helm/web".to_owned(),
        by_helm(json!({"metadata": {}}), home, "web"),
    )
}

#[test]
fn helm_is_left() {
    assert_leaves(&[("helm", Way::Updates), ("helm", Way::Applies)], helm);
}

#[test]
fn kapp_is_left() {
    assert_leaves(&[("kapp", Way::Updates)], |home| {
        let value = fresh("1657185600");
        let spec = json!({
            "labelKey": "kapp.k14s.io/app", "labelValue": value,
            "usedGKs": [{"Group": "", "Kind": "Service"}],
        });
        cluster().create(&with(
            named("v1", "ConfigMap", Some(home), "web.apps.k14s.io"),
            &json!({"metadata": {"labels": {"kapp.k14s.io/is-app": ""}}, "data": {"spec": spec.to_string()}}),
        ));
        let identity = format!("v1;{home}//Service/web;v1");
        let mark = json!({"metadata": {
            "labels": {"kapp.k14s.io/app": value},
            "annotations": {"kapp.k14s.io/identity": identity},
        }});
        ("kapp/web".to_owned(), mark)
    });
}

#[test]
fn kpt_is_left() {
    let managers = [("kubectl", Way::Updates), ("kubectl", Way::Applies)];
    assert_leaves(&managers, |home| {
        cluster().create(&with(
            named("v1", "ConfigMap", Some(home), "inventory"),
            &json!({
                "metadata": {"labels": {"cli-utils.sigs.k8s.io/inventory-id": home}},
                "data": {format!("{home}_web__Service"): ""},
            }),
        ));
        let mark = annotated(&json!({"config.k8s.io/owning-inventory": home}));
        ("kpt/inventory".to_owned(), mark)
    });
}

fn flux(group: &str, version: &str, kind: &str, home: &str) -> (String, Value) {
    define(group, version, kind, &format!("{}s", kind.to_lowercase()));
    cluster().create(&with(
        named(&format!("{group}/{version}"), kind, Some(home), "apps"),
        &json!({"status": {"inventory": {"entries": [{"id": format!("{home}_web__Service"), "v": "v1"}]}}}),
    ));
    let labels = json!({format!("{group}/name"): "apps", format!("{group}/namespace"): home});
    ("flux/apps".to_owned(), json!({"metadata": {"labels": labels}}))
}

#[test]
fn a_kustomization_of_flux_is_left() {
    let managers = [
        ("kustomize-controller", Way::Applies),
        ("kustomize-controller", Way::Updates),
    ];
    assert_leaves(&managers, |home| {
        flux("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", home)
    });
}

#[test]
fn a_helm_release_of_flux_is_left() {
    let managers = [
        ("helm-controller", Way::Updates),
        ("helm-controller", Way::Applies),
    ];
    assert_leaves(&managers, |home| {
        flux("helm.toolkit.fluxcd.io", "v2", "HelmRelease", home)
    });
}

#[test]
fn argo_cd_is_left() {
    define("argoproj.io", "v1alpha1", "Application", "applications");
    let managers = [
        ("argocd-controller", Way::Applies),
        ("argocd-controller", Way::Updates),
        ("argocd-application-controller", Way::Updates),
    ];
    assert_leaves(&managers, |home| {
        cluster().create(&with(
            named("argoproj.io/v1alpha1", "Application", Some(home), "shop"),
            &json!({
                "spec": {"destination": {"server": "https://kubernetes.default.svc"}},
                "status": {"resources": [{"version": "v1", "kind": "Service", "namespace": home, "name": "web"}]},
            }),
        ));
        let id = format!("{home}_shop:/Service:{home}/web");
        let mark = annotated(&json!({"argocd.argoproj.io/tracking-id": id}));
        (format!("argocd/{home}/shop"), mark)
    });
}

#[test]
fn keys_of_a_secret_that_helm_applied_as_text_leave_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let of = |data: Value| {
        with(
            named("v1", "Secret", Some(&home), "data"),
            &json!({"stringData": data}),
        )
    };
    let object = of(json!({"a": "1", "b": "2"}));
    cluster().create(&release(
        &home,
        "web",
        1,
        "deployed",
        std::slice::from_ref(&object),
    ));
    cluster().apply_as("helm", &by_helm(object, &home, "web"));
    adopt(&set, "helm/web", &[]);
    let less = of(json!({"a": "1"}));
    set.apply(std::slice::from_ref(&less));
    assert_eq!(cluster().live(&less).expect("it")["data"], json!({"a": "MQ=="}));
}

#[test]
fn what_an_autoscaler_has_taken_from_helm_stays_with_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = crate::support::deployment(&home, "web", 2);
    cluster().create(&release(
        &home,
        "web",
        1,
        "deployed",
        std::slice::from_ref(&object),
    ));
    cluster().create_as("helm", &by_helm(object.clone(), &home, "web"));
    cluster().patch(&object, &json!({"spec": {"replicas": 5}}));
    adopt(&set, "helm/web", &[]);
    let mut less = object;
    less["spec"].as_object_mut().expect("a spec").remove("replicas");
    set.apply(std::slice::from_ref(&less));
    let live = cluster().live(&less).expect("it");
    assert_eq!(live["spec"]["replicas"], 5);
    assert_eq!(live["metadata"].get("annotations"), None);
}

#[test]
fn a_run_that_was_killed_anywhere_is_finished_by_the_same_run() {
    for writes in 0.. {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let (from, mark) = helm(&home);
        let object = with(before(&home), &mark);
        write("helm", Way::Updates, &object);
        cluster().patch(&object, &json!({"metadata": {"annotations": {"theirs": "1"}}}));
        let proxy = Proxy::holding_after(writes);
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        let end = set
            .invocation(program, "adopt", &["--from", &from])
            .run_until_held(&proxy);
        assert_eq!(set.unrecorded(), Vec::<String>::new(), "after {writes} writes");
        if end == ProgramEnd::Killed {
            adopt(&set, &from, &[]);
        }
        assert_left(&set, &home);
        if end == ProgramEnd::Finished {
            // The parent twice, and one patch for the label and the fields with its dry run.
            assert_eq!(writes, 4);
            return;
        }
    }
}

#[test]
fn what_another_client_writes_at_the_same_time_is_neither_lost_nor_taken() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let (from, mark) = helm(&home);
    let object = with(before(&home), &mark);
    write("helm", Way::Updates, &object);
    let target = object.clone();
    let proxy = Proxy::before_write(1, move || {
        cluster().patch(&target, &json!({"metadata": {"annotations": {"theirs": "1"}}}));
    });
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let run = set.invoke_by(program, "adopt", &["--from", &from]).expect(0);
    assert_eq!(run.results("adopted"), identities([&object]));
    assert_left(&set, &home);
}

/// The inventory lists what it does not own: nothing is taken from the objects that do not point back.
#[test]
fn an_object_that_does_not_point_back_keeps_its_owners() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [own, other] = ["own", "other"].map(|name| config_map(&home, name, "1"));
    let own = by_helm(own, &home, "web");
    for object in [&own, &other] {
        cluster().create_as("helm", object);
    }
    cluster().create(&release(
        &home,
        "web",
        1,
        "deployed",
        &[own.clone(), other.clone()],
    ));
    let before = cluster().live(&other);
    let run = adopt(&set, "helm/web", &[]);
    assert_eq!(run.results("adopted"), identities([&own]));
    assert_eq!(cluster().live(&other), before);
}
