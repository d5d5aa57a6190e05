//! What is never deleted to be created again, and what only with `--allow-data-loss`.

use std::slice::from_ref;

use controlplane::Grant;
use serde_json::{Value, json};

use super::{annotated, assert_stays, diff, frozen, job, marked, uid};
use crate::suite::deletion::deny_deletion_in;
use crate::suite::rights::{grant_what_is_printed, rule, user};
use crate::support::{
    Files, Program, Set, cluster, cluster_role, config_map, custom_resource, definition, fresh, identities,
    named, namespace, objects_file, with,
};

fn owned_by(object: Value, owner: &Value) -> Value {
    let reference = json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": uid(owner),
    });
    with(object, &json!({"metadata": {"ownerReferences": [reference]}}))
}

#[test]
fn what_a_prune_would_keep_is_not_recreated() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let names = ["owned", "kept", "owner"];
    let old = names.map(|name| frozen(&home, name, "1"));
    let dependent = config_map(&home, "dependent", "1");
    set.apply(&[&old[..], from_ref(&dependent)].concat());
    let foreign = cluster().create(&config_map(&home, "foreign", "1"));
    let patch = |object: &Value, with: Value| cluster().patch(object, &json!({"metadata": with}));
    let owners = |owner: &Value| owned_by(json!({}), owner)["metadata"].clone();
    patch(&old[0], owners(&foreign));
    patch(
        &old[1],
        json!({"annotations": {"helm.sh/resource-policy": "keep"}}),
    );
    patch(&dependent, owners(&old[2]));
    for (name, text) in names.into_iter().zip([
        "not recreated: owned by ConfigMap foreign",
        "not recreated: kept by helm.sh/resource-policy: keep",
        "not recreated: the garbage collector would then delete configmap/dependent",
    ]) {
        let new = marked(frozen(&home, name, "2"));
        let others = old.iter().filter(|object| object["metadata"]["name"] != name);
        let mut objects: Vec<Value> = others.cloned().collect();
        objects.extend([new.clone(), dependent.clone()]);
        let run = assert_stays(&set, &objects, &new, &["--allow-data-loss"]);
        assert!(run.stderr.contains(text), "{}", run.stderr);
        let diff = diff(&set, &objects, &["-o", "json"]).expect(1);
        assert_eq!(diff.results("failed"), identities([&new]));
        assert!(diff.stdout.contains(text), "{}", diff.stdout);
    }
    assert!(cluster().live(&dependent).is_some());
}

#[test]
fn a_mark_of_the_manifest_keeps_the_object_as_well() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[frozen(&home, "one", "1")]);
    let new = annotated(
        marked(frozen(&home, "one", "2")),
        "helm.sh/resource-policy",
        "keep",
    );
    assert_stays(&set, from_ref(&new), &new, &[]);
}

/// The server refuses to apply a manifest with a UID while no object has this UID.
#[test]
fn a_manifest_with_a_uid_cannot_be_created_again() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[frozen(&home, "one", "1")]);
    let uid = uid(&frozen(&home, "one", "1"));
    let new = with(
        marked(frozen(&home, "one", "2")),
        &json!({"metadata": {"uid": uid}}),
    );
    let run = assert_stays(&set, from_ref(&new), &new, &[]);
    assert!(run.stderr.contains("remove metadata.uid"), "{}", run.stderr);
    let diff = diff(&set, from_ref(&new), &["-o", "json"]).expect(1);
    assert_eq!(diff.results("failed"), identities([&new]));
}

/// `--prune=false` keeps everything that a run would prune. It does not lift the protection of a keep annotation.
#[test]
fn an_owner_of_a_kept_object_stays_without_prunes_as_well() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let owner = frozen(&home, "owner", "1");
    let kept = annotated(config_map(&home, "kept", "1"), "helm.sh/resource-policy", "keep");
    set.apply(&[owner.clone(), kept.clone()]);
    cluster().patch(&kept, &owned_by(json!({}), &owner));
    let new = marked(frozen(&home, "owner", "2"));
    let run = assert_stays(&set, from_ref(&new), &new, &["--prune=false"]);
    let text = "the garbage collector would then delete configmap/kept";
    assert!(run.stderr.contains(text), "{}", run.stderr);
    assert!(cluster().live(&kept).is_some());
}

/// The list of members does not show an object that the run has yet to apply.
#[test]
fn an_owner_of_an_object_that_joins_later_in_the_run_is_not_recreated() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let owner = frozen(&home, "owner", "1");
    set.apply(from_ref(&owner));
    let late = job(&home, "late", "a");
    cluster().create(&owned_by(late.clone(), &owner));
    let before = uid(&late);
    let new = marked(frozen(&home, "owner", "2"));
    let run = set.apply_with(&[new.clone(), late.clone()], &[]).expect(1);
    assert_eq!(run.results("failed"), identities([&new]));
    assert!(run.stderr.contains("job.batch/late"), "{}", run.stderr);
    assert_eq!(uid(&late), before);
}

#[test]
fn what_is_not_a_member_is_not_deleted() {
    let home = namespace("home");
    let [set, other] = [Set::secret(&home, "web"), Set::secret(&home, "other")];
    cluster().create(&frozen(&home, "one", "1"));
    let new = marked(frozen(&home, "one", "2"));
    let run = assert_stays(&set, from_ref(&new), &new, &["--force-conflicts"]);
    assert!(run.stderr.contains("not a member"), "{}", run.stderr);

    other.apply(&[frozen(&home, "two", "1")]);
    let taken = marked(frozen(&home, "two", "2"));
    assert_stays(&set, from_ref(&taken), &taken, &["--take-ownership"]);
}

#[test]
fn data_are_lost_only_with_consent() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let claim = |class: &str| {
        with(
            named("v1", "PersistentVolumeClaim", Some(&home), "data"),
            &json!({"spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": class,
                "resources": {"requests": {"storage": "1Gi"}},
            }}),
        )
    };
    set.apply(&[claim("slow")]);
    let new = [claim("fast")];
    let run = assert_stays(&set, &new, &new[0], &["--recreate=PersistentVolumeClaim"]);
    assert!(run.stderr.contains("its data would be lost"), "{}", run.stderr);
    assert!(run.stderr.contains("--allow-data-loss"), "{}", run.stderr);
}

#[test]
fn the_printed_permissions_allow_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let someone = user(&[]);
    let role = fresh("role");
    let binding = |to: &str| {
        marked(with(
            named("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", None, &role),
            &json!({
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": to},
                "subjects": [],
            }),
        ))
    };
    let other = fresh("role");
    cluster().create(&cluster_role(&other));
    cluster().create(&cluster_role(&role));
    let old = [binding(&role), marked(job(&home, "migrate", "one"))];
    let new = [binding(&other), marked(job(&home, "migrate", "two"))];
    grant_what_is_printed(&someone, &set, &new);
    set.apply(&old);
    let files = Files::new().with("objects.yaml", &objects_file(&new));
    let program = Program::with_kubeconfig(&someone.kubeconfig);
    let run = set.command(program, &files).args(["-o", "json"]).run().expect(0);
    assert_eq!(run.results("recreated"), identities(&new));
}

#[test]
fn what_the_user_may_not_create_is_not_deleted() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[frozen(&home, "one", "1")]);
    let verbs = ["get", "list", "patch", "delete"];
    let someone = user(&[Grant::in_namespace(
        &home,
        [
            rule("", "configmaps", &verbs),
            rule("", "secrets", &["get", "patch"]),
        ],
    )]);
    let new = marked(frozen(&home, "one", "2"));
    let before = uid(&new);
    let files = Files::new().with("objects.yaml", &objects_file(from_ref(&new)));
    let program = Program::with_kubeconfig(&someone.kubeconfig);
    let run = set.command(program, &files).run().expect(1);
    assert!(
        run.stderr
            .contains("not recreated: a dry run of its creation failed"),
        "{}",
        run.stderr
    );
    assert_eq!(uid(&new), before);
}

#[test]
fn a_fault_of_fields_that_others_own_recreates_nothing() {
    let group = format!("{}.example.com", fresh("recreation"));
    let mut kind = definition(&group, "Namespaced");
    let spec = &mut kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["properties"]["extra"] = json!({"type": "integer"});
    spec["x-kubernetes-validations"] = json!([{
        "rule": "!has(self.extra) || self.size + self.extra <= 10",
        "message": "too much",
        "fieldPath": ".extra",
    }]);
    cluster().define(&kind);
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let old = custom_resource(&group, Some(&home), "one");
    set.apply(from_ref(&old));
    let mut extra = with(old.clone(), &json!({"spec": {"extra": 9}}));
    extra["spec"].as_object_mut().expect("a spec").remove("size");
    cluster().apply_as("others", &extra);
    let new = with(old, &json!({"spec": {"size": 2}}));
    let flag = format!("--recreate=Widget.{group}");
    let run = assert_stays(&set, from_ref(&new), &new, &[&flag]);
    let reason = "not recreated: only other managers own the refused fields: spec.extra (others)";
    assert!(run.stderr.contains(reason), "{}", run.stderr);
    let diff = diff(&set, from_ref(&new), &[&flag, "-o", "json"]).expect(1);
    assert!(diff.stdout.contains(reason), "{}", diff.stdout);
}

#[test]
fn a_missing_permission_is_named() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[frozen(&home, "one", "1")]);
    let new = marked(frozen(&home, "one", "2"));
    let before = uid(&new);
    for (missing, verbs) in [
        ("delete", ["get", "list", "patch", "create"]),
        ("create", ["get", "list", "patch", "delete"]),
    ] {
        let someone = user(&[Grant::in_namespace(
            &home,
            [
                rule("", "configmaps", &verbs),
                rule("", "secrets", &["get", "patch"]),
            ],
        )]);
        let files = Files::new().with("objects.yaml", &objects_file(from_ref(&new)));
        let program = Program::with_kubeconfig(&someone.kubeconfig);
        let run = set.command(program, &files).run().expect(1);
        let denied = format!("cannot {missing} resource \"configmaps\"");
        assert!(run.stderr.contains(&denied), "{}", run.stderr);
        let hint = "hint: remove the cause, or keep the old value";
        assert!(run.stderr.contains(hint), "{}", run.stderr);
        assert!(
            !run.stderr.contains("run the same command again"),
            "{}",
            run.stderr
        );
        assert_eq!(uid(&new), before);
    }
}

#[test]
fn a_definition_or_namespace_is_never_recreated() {
    let group = format!("{}.example.com", fresh("recreation"));
    let old = definition(&group, "Namespaced");
    cluster().define(&old);
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let member = custom_resource(&group, Some(&home), "one");
    let foreign = cluster().create(&custom_resource(&group, Some(&home), "foreign"));
    set.apply(&[old.clone(), member.clone()]);
    let new = with(old.clone(), &json!({"spec": {"scope": "Cluster"}}));

    let flags = ["--recreate=CustomResourceDefinition", "--allow-data-loss"];
    let parent = set.parent_version();
    for command in ["apply", "diff", "rbac"] {
        let files = Files::new().with("objects.yaml", &objects_file(from_ref(&new)));
        let run = set.invocation(Program::new(), command, &["-f"]);
        let flags = if command == "rbac" { &flags[..1] } else { &flags };
        let run = run.args([files.path("objects.yaml")]).args(flags).run().expect(2);
        let text = "CustomResourceDefinition: never recreated";
        assert!(run.stderr.contains(text), "{command}: {}", run.stderr);
    }
    assert_eq!(set.parent_version(), parent);
    let run = set.apply_with(from_ref(&old), &["--recreate=ns"]).expect(2);
    assert!(
        run.stderr.contains("Namespace: never recreated"),
        "{}",
        run.stderr
    );

    let new = marked(new);
    let flags = ["--allow-data-loss", "--force-conflicts"];
    let run = assert_stays(&set, &[new.clone(), member.clone()], &new, &flags);
    assert!(run.stderr.contains("another name"), "{}", run.stderr);
    assert!(cluster().live(&foreign).is_some());
    assert!(cluster().live(&member).is_some());
}

#[test]
fn what_admission_denies_to_delete_is_not_recreated_and_no_hint_says_to_run_again() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[frozen(&home, "one", "1")]);
    let new = marked(frozen(&home, "one", "2"));
    let policy = deny_deletion_in(&home, "configmaps", &new);
    for flag in ["--dry-run=server", "--dry-run=none"] {
        let run = assert_stays(&set, from_ref(&new), &new, &[flag]);
        assert!(
            run.stderr.contains("denied request: not this one"),
            "{}",
            run.stderr
        );
        assert!(
            !run.stderr.contains("run the same command again"),
            "{}",
            run.stderr
        );
    }
    let diff = diff(&set, from_ref(&new), &["-o", "json"]).expect(1);
    assert_eq!(diff.results("failed"), identities([&new]));
    for object in &policy {
        cluster().delete(object);
    }
}
