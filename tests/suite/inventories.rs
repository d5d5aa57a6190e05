//! `adopt --from`: what other tools have in their inventories becomes a set, and their own
//! records stay as they are.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::support::{
    Fault, Omission, PART_OF, Program, Proxy, Run, Set, Verdict, cluster, cluster_role, config_map,
    custom_resource, definition, deployment, fresh, identities, named, namespace, namespace_object,
    objects_file, secret, service, with,
};

/// The kinds that are defined so far: two tests may need the same one.
static DEFINED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Defines a kind whose objects may hold anything, as the tool's own definition does.
pub(super) fn define(group: &str, version: &str, kind: &str, plural: &str) {
    let mut defined = DEFINED.lock().expect("no panic");
    if !defined.insert(format!("{plural}.{group}")) {
        return;
    }
    let definition = with(
        named(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            None,
            &format!("{plural}.{group}"),
        ),
        &json!({"spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        }}),
    );
    cluster().define(&definition);
}

/// Adopts from the inventory, and asserts that this took exactly these objects as they are,
/// left the record alone, and reported what to do with the tool.
#[track_caller]
fn assert_adopted(set: &Set, from: &str, record: &Value, objects: &[Value], advice: &str) {
    let contents = |objects: &[Value]| -> Vec<Value> {
        objects.iter().map(|object| cluster().content(object)).collect()
    };
    let before = contents(objects);
    let dry = set
        .invoke("adopt", &["--from", from, "--dry-run=server"])
        .expect(0);
    assert_eq!(dry.results("adopted"), identities(objects));
    assert!(!dry.warnings().join("\n").contains(advice), "{}", dry.stderr);
    assert_eq!(set.live_parent(), None);

    let run = confirmed(set, from, objects);

    assert_eq!(run.results("adopted"), identities(objects));
    assert_eq!(contents(objects), before);
    set.assert_holds(objects);
    assert_eq!(cluster().live(record).as_ref(), Some(record));
    let warnings = run.warnings().join("\n");
    assert!(warnings.contains(advice), "{warnings}");
    let again = set.invoke("adopt", &["--from", from]).expect(0);
    assert_eq!(again.results("unchanged"), identities(objects));
    // A manifest that goes takes its object along.
    let run = set.apply_with(&objects[..1], &["--force-conflicts"]).expect(0);
    assert_eq!(run.results("pruned"), identities(&objects[1..]));
    assert_eq!(cluster().live(record).as_ref(), Some(record));
}

/// Adopts from the inventory, and asserts that this takes `--yes` exactly if one of the objects is
/// outside of the set's namespace, or the inventory is one of Argo CD's.
#[track_caller]
fn confirmed(set: &Set, from: &str, objects: &[Value]) -> Run {
    let outside: Vec<&Value> = objects
        .iter()
        // An Application outside of `argocd` may be a namesake.
        .filter(|object| {
            from.starts_with("argocd/") || object["metadata"]["namespace"] != set.namespace.as_str()
        })
        .collect();
    if outside.is_empty() {
        return set.invoke("adopt", &["--from", from]).expect(0);
    }
    let run = set.invoke("adopt", &["--from", from]).expect(3);
    for object in &outside {
        let name = object["metadata"]["name"].as_str().expect("a name");
        assert!(run.stderr.contains(name), "{}", run.stderr);
    }
    assert!(run.stderr.contains("--yes"), "{}", run.stderr);
    assert_eq!(set.live_parent(), None);
    for object in objects {
        let live = cluster().live(object).expect("the object");
        assert_eq!(live["metadata"]["labels"][PART_OF], Value::Null, "{live}");
    }
    set.invoke("adopt", &["--from", from, "--yes"]).expect(0)
}

fn created(objects: &[Value]) {
    for object in objects {
        cluster().create(object);
    }
}

/// The object with the annotations that Helm writes on what it installs.
pub(super) fn by_helm(object: Value, namespace: &str, release: &str) -> Value {
    let owner = json!({"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace});
    with(object, &json!({"metadata": {"annotations": owner}}))
}

/// A release as Helm stores it.
pub(super) fn release(namespace: &str, name: &str, version: u32, status: &str, objects: &[Value]) -> Value {
    let payload = json!({
        "name": name, "namespace": namespace, "version": version,
        "info": {"status": status}, "manifest": objects_file(objects),
        "hooks": [{"name": "hook", "kind": "Job"}],
    });
    release_of(namespace, name, version, status, &payload)
}

/// A release whose Secret says one thing and whose payload may say another.
fn release_of(namespace: &str, name: &str, version: u32, status: &str, payload: &Value) -> Value {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder
        .write_all(payload.to_string().as_bytes())
        .expect("written");
    let packed = STANDARD.encode(encoder.finish().expect("packed"));
    with(
        named(
            "v1",
            "Secret",
            Some(namespace),
            &format!("sh.helm.release.v1.{name}.v{version}"),
        ),
        &json!({
            "type": "helm.sh/release.v1",
            "metadata": {"labels": {
                "owner": "helm", "name": name, "status": status, "version": version.to_string(),
            }},
            "data": {"release": STANDARD.encode(packed)},
        }),
    )
}

#[test]
fn a_release_of_helm() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let objects = [
        by_helm(config_map(&home, "one", "1"), &home, "web"),
        by_helm(service(&away, "web", 80), &home, "web"),
        by_helm(cluster_role(&fresh("role")), &home, "web"),
    ];
    let gone_elsewhere = by_helm(config_map(&home, "theirs", "1"), &home, "other");
    created(&objects);
    cluster().create(&gone_elsewhere);
    let old = release(&home, "web", 1, "superseded", &[secret(&home, "old")]);
    cluster().create(&old);
    cluster().create(&secret(&home, "old"));
    let mut manifests = objects.to_vec();
    // Helm fills in the namespace of the release where a manifest names none.
    let metadata = manifests[0]["metadata"].as_object_mut().expect("metadata");
    metadata.remove("namespace");
    let record = cluster().create(&release(&home, "web", 2, "deployed", &manifests));
    assert_adopted(&set, "helm/web", &record, &objects, "owner=helm,name=web");

    let taken = release(
        &home,
        "other",
        1,
        "deployed",
        std::slice::from_ref(&gone_elsewhere),
    );
    cluster().create(&taken);
    let mine = release(
        &home,
        "mine",
        1,
        "deployed",
        std::slice::from_ref(&gone_elsewhere),
    );
    cluster().create(&mine);
    let third = Set::secret(&home, "third");
    let run = third.invoke("adopt", &["--from", "helm/mine"]).expect(3);
    assert_eq!(run.results("skipped"), identities([&gone_elsewhere]));
    assert_eq!(third.live_parent(), None);
}

#[test]
fn a_forged_release_of_helm_takes_nothing_that_is_not_its_own() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let own = by_helm(config_map(&home, "own", "1"), &home, "web");
    let others = [
        cluster_role(&fresh("admin")),
        secret(&away, "victim"),
        config_map(&home, "bystander", "1"),
        by_helm(config_map(&away, "theirs", "1"), &away, "web"),
        // Of half an owner, which Helm never writes.
        with(
            config_map(&home, "half", "1"),
            &json!({"metadata": {"annotations": {"meta.helm.sh/release-name": "web"}}}),
        ),
    ];
    cluster().create(&own);
    created(&others);
    let mut named = vec![own.clone()];
    named.extend(others.clone());
    cluster().create(&release(&home, "web", 1, "deployed", &named));

    let run = set.invoke("adopt", &["--from", "helm/web"]).expect(0);

    assert_eq!(run.results("adopted"), identities([&own]));
    assert_eq!(run.results("skipped"), identities(&others));
    set.assert_holds(std::slice::from_ref(&own));
    // Nor does the next apply prune any of them.
    let run = set
        .apply_with(&[config_map(&home, "new", "1")], &["--force-conflicts"])
        .expect(0);
    assert_eq!(run.results("pruned"), identities([&own]));
    for object in &others {
        assert!(cluster().live(object).is_some());
    }
}

#[test]
fn a_release_of_helm_that_disagrees_with_its_secret() {
    let home = namespace("home");
    let object = by_helm(config_map(&home, "one", "1"), &home, "web");
    cluster().create(&object);
    let payload = |changes: Value| {
        let manifest = objects_file(std::slice::from_ref(&object));
        with(
            json!({"name": "web", "namespace": home, "version": 1, "manifest": manifest}),
            &changes,
        )
    };
    let secret = |changes: Value| release_of(&home, "web", 1, "deployed", &payload(changes));
    let nothing = || json!({});
    let table = [
        ("name", secret(json!({"name": "other"}))),
        ("namespace", secret(json!({"namespace": "kube-system"}))),
        ("version", secret(json!({"version": 2}))),
        ("type", with(secret(nothing()), &json!({"type": "Opaque"}))),
        (
            "whose name is",
            with(
                secret(nothing()),
                &json!({"metadata": {"name": "release-of-web"}}),
            ),
        ),
        (
            "version",
            with(
                secret(nothing()),
                &json!({"metadata": {"labels": {"version": "01"}}}),
            ),
        ),
    ];
    for (what, secret) in table {
        cluster().create(&secret);
        let set = Set::secret(&home, "web");
        let run = set.invoke("adopt", &["--from", "helm/web"]).expect(2);
        let name = secret["metadata"]["name"].as_str().expect("a name");
        assert!(
            run.stderr.contains(what) && run.stderr.contains(name),
            "{what}: {}",
            run.stderr
        );
        assert_eq!(set.live_parent(), None);
        cluster().delete(&secret);
    }
}

#[test]
fn a_release_of_helm_that_is_larger_than_any_release() {
    let home = namespace("home");
    let object = by_helm(config_map(&home, "one", "1"), &home, "web");
    cluster().create(&object);
    let manifest = objects_file(std::slice::from_ref(&object));
    let payload = json!({
        "name": "web", "namespace": home, "version": 1, "manifest": manifest,
        "chart": vec![0_u8; 9 << 20],
    });
    cluster().create(&release_of(&home, "web", 1, "deployed", &payload));
    let set = Set::secret(&home, "web");
    let run = set.invoke("adopt", &["--from", "helm/web"]).expect(2);
    assert!(
        run.stderr.contains("16 MiB") && run.stderr.contains("sh.helm.release.v1.web.v1"),
        "{}",
        run.stderr
    );
    assert_eq!(set.live_parent(), None);
}

#[test]
fn objects_without_the_marks_of_helm_are_adopted_by_manifests_alone() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "one", "1");
    created(std::slice::from_ref(&object));
    cluster().create(&release(
        &home,
        "web",
        1,
        "deployed",
        std::slice::from_ref(&object),
    ));
    let run = set.invoke("adopt", &["--from", "helm/web"]).expect(3);
    assert_eq!(run.results("skipped"), identities([&object]));
    assert!(
        run.stderr.contains("adopt the objects with -f MANIFESTS"),
        "{}",
        run.stderr
    );
    assert_eq!(set.live_parent(), None);
}

#[test]
fn an_inventory_without_objects_is_refused() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    cluster().create(&release(&home, "web", 1, "deployed", &[]));
    record_of_kapp(
        &home,
        &json!({"labelKey": "kapp.k14s.io/app", "labelValue": fresh("1"), "usedGKs": []}),
    );
    for from in ["helm/web", "kapp/web"] {
        let run = set.invoke("adopt", &["--from", from]).expect(3);
        let error = &run.document()["error"];
        assert_eq!(error["exitCode"], 3, "{from}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains("nothing to adopt"), "{from}: {message}");
        assert_eq!(run.results("skipped"), Vec::<String>::new(), "{from}");
        assert_eq!(set.live_parent(), None, "{from}");
    }
}

#[test]
fn an_app_of_kapp_that_claims_objects_by_another_label() {
    let home = namespace("home");
    let victim = with(
        config_map(&home, "victim", "1"),
        &json!({"metadata": {"labels": {"app": "shop"}}}),
    );
    cluster().create(&victim);
    for (key, value) in [("app", "shop"), ("kapp.k14s.io/app", "1,app=shop")] {
        let spec = json!({"labelKey": key, "labelValue": value});
        let record = record_of_kapp(&home, &spec);
        let set = Set::secret(&home, "web");
        set.invoke("adopt", &["--from", "kapp/web"]).expect(2);
        assert_eq!(set.live_parent(), None);
        cluster().delete(&record);
    }
}

#[test]
fn a_release_of_helm_whose_last_upgrade_failed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = ["one", "new"].map(|name| by_helm(config_map(&home, name, "1"), &home, "web"));
    created(&objects);
    cluster().create(&release(&home, "web", 1, "deployed", &objects[..1]));
    cluster().create(&release(&home, "web", 2, "failed", &objects));

    let run = set.invoke("adopt", &["--from", "helm/web"]).expect(2);

    assert!(
        run.stderr
            .contains("its newest revision 2 is failed, not deployed"),
        "{}",
        run.stderr
    );
    assert_eq!(set.live_parent(), None);
}

#[test]
fn forgetting_a_release_is_not_advised_before_all_of_it_is_in_the_set() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = ["one", "two"].map(|name| by_helm(config_map(&home, name, "1"), &home, "web"));
    created(&objects);
    cluster().create(&release(&home, "web", 1, "deployed", &objects));
    // The parent is made, and the label of one object cannot be written.
    let proxy = Proxy::gated(|writes| {
        if writes == 2 {
            Verdict::Break(Fault::Unauthorized)
        } else {
            Verdict::Forward
        }
    });
    let adopt = |program| set.invoke_by(program, "adopt", &["--from", "helm/web"]);
    let run = adopt(Program::with_kubeconfig(&proxy.kubeconfig())).expect(1);
    let is_advice = |warning: &&String| warning.contains("kubectl delete secret");
    assert_eq!(run.warnings().iter().filter(is_advice).count(), 0);
    let run = adopt(Program::new()).expect(0);
    assert_eq!(run.warnings().iter().filter(is_advice).count(), 1);
}

/// The object with the label of the app that has this value.
fn labeled_by_kapp(object: Value, value: &str) -> Value {
    with(
        object,
        &json!({"metadata": {"labels": {"kapp.k14s.io/app": value}}}),
    )
}

/// The object with what kapp writes on everything that it applies: `v1;NAMESPACE/GROUP/KIND/NAME;VERSION`.
fn by_kapp(object: Value, group: &str, value: &str) -> Value {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let identity = format!(
        "v1;{}/{group}/{}/{};{}",
        text("/metadata/namespace"),
        text("/kind"),
        text("/metadata/name"),
        text("/apiVersion"),
    );
    let annotations = json!({"metadata": {"annotations": {"kapp.k14s.io/identity": identity}}});
    labeled_by_kapp(with(object, &annotations), value)
}

/// Creates the record that kapp has of an app.
fn record_of_kapp(home: &str, spec: &Value) -> Value {
    cluster().create(&with(
        named("v1", "ConfigMap", Some(home), "web.apps.k14s.io"),
        &json!({"metadata": {"labels": {"kapp.k14s.io/is-app": ""}}, "data": {"spec": spec.to_string()}}),
    ))
}

#[test]
fn an_app_of_kapp() {
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let value = fresh("1657185600");
    let labeled = |object: Value| labeled_by_kapp(object, &value);
    let by_kapp = |object: Value, group: &str| by_kapp(object, group, &value);
    let role = cluster_role(&fresh("role"));
    let objects = [
        by_kapp(config_map(&home, "one", "1"), ""),
        by_kapp(secret(&away, "two"), ""),
        by_kapp(role, "rbac.authorization.k8s.io"),
    ];
    created(&objects);
    // Of a kind that the app does not use, so kapp would not delete it either.
    cluster().create(&by_kapp(service(&away, "web", 80), ""));
    // Copies that a controller made: with the labels alone, and with all of the metadata.
    let copies = [
        labeled(config_map(&home, "copy", "1")),
        with(objects[0].clone(), &json!({"metadata": {"name": "clone"}})),
    ];
    created(&copies);
    // A person's, and of the name that the app's record had in old versions.
    let bystander = cluster().create(&config_map(&home, "web", "1"));
    let spec = json!({
        "labelKey": "kapp.k14s.io/app", "labelValue": value,
        "lastChange": {"successful": true, "namespaces": [home, away]},
        "usedGKs": [
            {"Group": "", "Kind": "ConfigMap"}, {"Group": "", "Kind": "Secret"},
            {"Group": "rbac.authorization.k8s.io", "Kind": "ClusterRole"},
        ],
    });
    let record = record_of_kapp(&home, &spec);
    let advice = format!("`kubectl delete configmap -n {home} web.apps.k14s.io`");
    assert_adopted(&set, "kapp/web", &record, &objects, &advice);
    assert_eq!(cluster().live(&config_map(&home, "web", "1")), Some(bystander));
    for copy in &copies {
        assert!(cluster().live(copy).is_some());
    }
}

#[test]
fn a_kind_of_an_app_of_kapp_that_discovery_does_not_list_yet() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&definition(&group, "Namespaced"));
    let value = fresh("1657185600");
    let objects = [
        by_kapp(config_map(&home, "one", "1"), "", &value),
        by_kapp(custom_resource(&group, Some(&home), "one"), &group, &value),
    ];
    created(&objects);
    let spec = json!({
        "labelKey": "kapp.k14s.io/app", "labelValue": value,
        "usedGKs": [{"Group": "", "Kind": "ConfigMap"}, {"Group": group, "Kind": "Widget"}],
    });
    record_of_kapp(&home, &spec);
    // The set has a record, so nothing else waits for kinds.
    let set = Set::secret(&home, "web");
    set.apply(&[secret(&home, "other")]);

    let proxy = Proxy::watched(Arc::new(Omission::of(&group, 2)));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let run = set.invoke_by(program, "adopt", &["--from", "kapp/web"]).expect(0);
    assert_eq!(run.results("adopted"), identities(&objects));
}

#[test]
fn an_inventory_of_kpt() {
    define("kpt.dev", "v1alpha1", "ResourceGroup", "resourcegroups");
    let [home, away] = [namespace("home"), namespace("away")];
    let set = Set::secret(&home, "web");
    let owned = |object: Value, id: &str| {
        with(
            object,
            &json!({"metadata": {"annotations": {"config.k8s.io/owning-inventory": id}}}),
        )
    };
    let objects = [
        owned(config_map(&home, "one", "1"), "x"),
        owned(service(&away, "web", 80), "x"),
        owned(cluster_role(&fresh("kpt:role")), "x"),
    ];
    created(&objects);
    // What another inventory has taken over since, and what another client has recreated.
    let lost = [
        owned(config_map(&home, "taken", "1"), "z"),
        config_map(&home, "recreated", "1"),
    ];
    created(&lost);
    let entry = |group: &str, object: &Value| json!({"group": group, "kind": object["kind"], "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"].as_str().unwrap_or_default()});
    let record = cluster().create(&with(
        named("kpt.dev/v1alpha1", "ResourceGroup", Some(&home), "inventory-1"),
        &json!({
            "metadata": {"labels": {"cli-utils.sigs.k8s.io/inventory-id": "x"}},
            "spec": {"resources": [
                entry("", &objects[0]), entry("", &objects[1]),
                entry("", &lost[0]), entry("", &lost[1]),
                entry("rbac.authorization.k8s.io", &objects[2]),
                {"group": "gone.example.com", "kind": "Widget", "name": "x", "namespace": home},
            ]},
        }),
    ));
    assert_adopted(
        &set,
        "kpt/inventory-1",
        &record,
        &objects,
        "resourcegroup.kpt.dev",
    );

    for object in &lost {
        assert!(cluster().live(object).is_some());
    }

    let other = [owned(config_map(&home, "three", "1"), "y")];
    created(&other);
    let record = cluster().create(&with(
        named("v1", "ConfigMap", Some(&home), "inventory-2"),
        &json!({
            "metadata": {"labels": {"cli-utils.sigs.k8s.io/inventory-id": "y"}},
            "data": {format!("{home}_three__ConfigMap"): ""},
        }),
    ));
    let set = Set::secret(&home, "other");
    assert_adopted(&set, "kpt/inventory-2", &record, &other, "configmap");
}

#[test]
fn a_kustomization_of_flux() {
    define(
        "kustomize.toolkit.fluxcd.io",
        "v1",
        "Kustomization",
        "kustomizations",
    );
    let [home, system] = [namespace("home"), namespace("flux")];
    let brought = namespace_object(&namespace("brought"));
    let name = brought["metadata"]["name"].as_str().expect("a name");
    let set = Set::secret(&home, "web");
    let owned_by = |object: Value, owner: &str| {
        let labels = json!({
            "kustomize.toolkit.fluxcd.io/name": owner,
            "kustomize.toolkit.fluxcd.io/namespace": system,
        });
        with(object, &json!({"metadata": {"labels": labels}}))
    };
    let objects = [
        owned_by(brought.clone(), "apps"),
        owned_by(config_map(name, "one", "1"), "apps"),
        owned_by(service(&home, "web", 80), "apps"),
    ];
    cluster().patch(&objects[0], &objects[0]);
    created(&objects[1..]);
    let lost = [
        owned_by(config_map(&home, "taken", "1"), "others"),
        config_map(&home, "recreated", "1"),
    ];
    created(&lost);
    let record = cluster().create(&with(
        named(
            "kustomize.toolkit.fluxcd.io/v1",
            "Kustomization",
            Some(&system),
            "apps",
        ),
        &json!({
            "spec": {"prune": true},
            "status": {"inventory": {"entries": [
                {"id": format!("_{name}__Namespace"), "v": "v1"},
                {"id": format!("{name}_one__ConfigMap"), "v": "v1"},
                {"id": format!("{home}_web__Service"), "v": "v1"},
                {"id": format!("{home}_taken__ConfigMap"), "v": "v1"},
                {"id": format!("{home}_recreated__ConfigMap"), "v": "v1"},
            ]}},
        }),
    ));
    set.invoke("adopt", &["--from", "flux/apps"]).expect(2);
    let from = format!("flux/{system}/apps");
    assert_adopted(&set, &from, &record, &objects, "suspend");
    for object in &lost {
        assert!(cluster().live(object).is_some());
    }
    let remote = json!({"spec": {"kubeConfig": {"secretRef": {"name": "prod"}}}});
    cluster().patch(&record, &remote);
    assert_refused(&Set::secret(&home, "remote"), &from);
}

/// Asserts that nothing of the inventory is taken, since its objects are in another cluster.
#[track_caller]
fn assert_refused(set: &Set, from: &str) {
    let run = set.invoke("adopt", &["--from", from]).expect(2);
    assert!(run.stderr.contains("cluster"), "{}", run.stderr);
    assert_eq!(set.live_parent(), None);
}

fn tracked_by_argo_cd(object: Value, application: &str) -> Value {
    let kind = object["kind"].as_str().expect("a kind");
    let metadata = &object["metadata"];
    let [namespace, name] = ["namespace", "name"].map(|field| metadata[field].as_str().expect("a text"));
    let id = format!("{application}:/{kind}:{namespace}/{name}");
    with(
        object,
        &json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": id}}}),
    )
}

fn application(namespace: &str, objects: &[Value]) -> Value {
    let resources = objects.iter().map(|object| {
        let metadata = &object["metadata"];
        json!({
            "version": "v1", "kind": object["kind"], "namespace": metadata["namespace"],
            "name": metadata["name"], "status": "Synced",
        })
    });
    let resources: Vec<Value> = resources.collect();
    with(
        named("argoproj.io/v1alpha1", "Application", Some(namespace), "shop"),
        &json!({
            "spec": {"destination": {"server": "https://kubernetes.default.svc"}},
            "status": {"resources": resources},
        }),
    )
}

/// A tenant can write an Application with the name of one in `argocd`.
#[test]
fn an_application_of_argo_cd_in_another_namespace() {
    define("argoproj.io", "v1alpha1", "Application", "applications");
    let [home, team] = [namespace("home"), namespace("team")];
    let set = Set::secret(&home, "web");
    let own = format!("{team}_shop");
    let objects = [
        tracked_by_argo_cd(config_map(&home, "one", "1"), &own),
        tracked_by_argo_cd(service(&home, "web", 80), &own),
    ];
    let instance = json!({"metadata": {"labels": {"app.kubernetes.io/instance": "shop"}}});
    let theirs = [
        tracked_by_argo_cd(config_map(&home, "theirs", "1"), "shop"),
        with(config_map(&home, "labeled", "1"), &instance),
        config_map(&home, "unmarked", "1"),
    ];
    created(&objects);
    created(&theirs);
    let listed = [&objects[..], &theirs].concat();
    let record = cluster().create(&application(&team, &listed));
    let from = format!("argocd/{team}/shop");
    assert_adopted(&set, &from, &record, &objects, "--cascade=false");
    for object in &theirs {
        assert!(cluster().live(object).is_some());
    }
    for destination in [
        json!({"server": "https://10.1.2.3:6443"}),
        json!({"server": null, "name": "prod"}),
    ] {
        cluster().patch(&record, &json!({"spec": {"destination": destination}}));
        assert_refused(&Set::secret(&home, "remote"), &from);
    }
}

#[test]
fn the_label_of_kapp_in_selectors_is_kept_or_its_objects_are_recreated() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let value = fresh("1657185600");
    let labels = json!({"kapp.k14s.io/app": value});
    let manifests = [config_map(&home, "one", "1"), deployment(&home, "web", 1)];
    let labeled = with(
        manifests[1].clone(),
        &json!({"spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}}),
    );
    cluster().create_as("kapp", &by_kapp(manifests[0].clone(), "", &value));
    cluster().create_as("kapp", &by_kapp(labeled.clone(), "apps", &value));
    let spec = json!({
        "labelKey": "kapp.k14s.io/app", "labelValue": value,
        "usedGKs": [{"Group": "", "Kind": "ConfigMap"}, {"Group": "apps", "Kind": "Deployment"}],
    });
    record_of_kapp(&home, &spec);
    let run = set.invoke("adopt", &["--from", "kapp/web"]).expect(0);
    let hint = run
        .stderr
        .lines()
        .find(|line| line.starts_with("hint: copy the label"));
    let hint = hint.unwrap_or_else(|| panic!("no hint in\n{}", run.stderr));
    assert!(
        hint.contains("kapp.k14s.io/app") && hint.contains("--recreate"),
        "{hint}"
    );

    let run = set.apply_with(&manifests, &[]).expect(1);
    assert_eq!(run.results("failed"), identities(&manifests[1..]));
    assert!(run.stderr.contains("--recreate=Deployment"), "{}", run.stderr);
    assert!(!run.stdout.contains("unreadable managedFields"), "{}", run.stdout);
    set.apply(&[manifests[0].clone(), labeled]);
    set.apply_with(&manifests, &["--recreate=Deployment"]).expect(0);
    set.assert_holds(&manifests);
}
