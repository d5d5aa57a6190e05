use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::file_with_digest::{PlanFileError, parse, to_text_with_digest};
use super::*;
use crate::error::ErrorKind;
use crate::manifest::{self, Recursion, Source};
use crate::model::applyset::Record;
use crate::model::applyset::parent::{annotations, labels};
use crate::model::set::{ParentObject, Set};
use crate::model::write_settings::{Conflicts, Validation};
use crate::plan::{
    Dependent, Dependents, Detachment, LiveMembership, ReasonToKeep, Refusal, Risk, Unchanged, fixtures,
};

const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: login\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: in-the-annotation\n    note: the key is in-the-text\n    other: nothing\ndata:\n  a/b: aW4tdGhlLWRhdGE=\nstringData:\n  key: in-the-text\n";

fn salt() -> Salt {
    Salt::random().expect("random bytes")
}

fn cluster(uid: Option<&str>, server: &str, authority: Option<&str>) -> SavedCluster {
    SavedCluster {
        uid: uid.map(str::to_owned),
        server: server.to_owned(),
        certificate_authority: authority.map(str::to_owned),
    }
}

fn plan_of(manifests: Vec<SavedManifest>, salt: Salt) -> SavedPlan {
    let set = fixtures::set();
    SavedPlan {
        set: SavedSet {
            id: set.id,
            resource: "secrets".to_owned(),
            name: set.parent.name,
            namespace: "shop".to_owned(),
            tooling: set.tooling,
        },
        policy: fixtures::policy(),
        take_over: Risk::Refused,
        field_manager: "applyset".to_owned(),
        conflicts: Conflicts::Reported,
        validation: Validation::Strict,
        ignore: None,
        salt,
        cluster: cluster(Some("of-this"), "https://one", Some("a")),
        manifests,
        namespaces: BTreeMap::new(),
        parent: None,
        record: Record::default(),
        objects: Vec::new(),
        detached: Vec::new(),
    }
}

/// A directory with this manifest in it, and a plan that was made with it.
fn saved(text: &str) -> (TempDir, SavedPlan) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("login.yaml");
    fs::write(&file, text).expect("a file");
    let read = manifest::read(&[Source::Path(file)], Recursion::Flat).expect("manifests");
    let salt = salt();
    let manifests = read
        .iter()
        .map(|manifest| SavedManifest::new(manifest, &salt))
        .collect();
    (directory, plan_of(manifests, salt))
}

#[test]
fn a_sealed_plan_is_read_again() {
    let (_directory, plan) =
        saved("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {key: '1.0'}\n");
    let sealed = to_text_with_digest(&plan);
    assert_eq!(parse(&sealed).expect("a plan"), plan);
}

#[test]
fn a_plan_that_would_show_values_of_a_secret_is_refused() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {key: b25l}\n";
    let (_directory, plan) = saved(secret);
    assert_eq!(parse(&to_text_with_digest(&plan)).expect("a plan"), plan);
    let read = |change: fn(&mut SavedManifest)| {
        let mut changed = plan.clone();
        change(&mut changed.manifests[0]);
        parse(&to_text_with_digest(&changed))
            .map(drop)
            .expect_err("no plan")
    };
    let as_another_kind = read(|saved| saved.object["kind"] = json!("ConfigMap"));
    assert!(matches!(as_another_kind, PlanFileError::Changed));
    let elsewhere = read(|saved| {
        saved.object["type"] = json!("***");
        let digest = saved.hidden["/data/key"].clone();
        saved.hidden.insert("/type".to_owned(), digest);
    });
    assert!(matches!(elsewhere, PlanFileError::Changed));
}

#[test]
fn a_plan_that_was_touched_is_refused() {
    let (_directory, plan) = saved("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    let sealed = to_text_with_digest(&plan);
    let read = |text: &str| parse(text).map(drop).expect_err("no plan");
    assert!(matches!(
        read(&sealed.replace("\"name\": \"a\"", "\"name\": \"b\"")),
        PlanFileError::Changed
    ));
    assert!(matches!(
        read(&sealed.replace("\"version\": 1", "\"version\": 2")),
        PlanFileError::Version(_)
    ));
    assert!(matches!(
        read(&sealed.replace("\"kind\": \"Plan\"", "\"kind\": \"Report\"")),
        PlanFileError::Other
    ));
    assert!(matches!(
        read(&sealed[..sealed.len() / 2]),
        PlanFileError::Syntax(_)
    ));
    assert!(matches!(read("[]"), PlanFileError::Other));
    // The digest does not cover the white space of the file.
    let document: Value = serde_json::from_str(&sealed).expect("JSON");
    assert!(parse(&document.to_string()).is_ok());
}

#[cfg(unix)]
#[test]
fn a_plan_replaces_files_alone() {
    use std::os::unix::fs::{FileTypeExt as _, symlink};
    use std::os::unix::net::UnixListener;

    let (directory, plan) = saved("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    let path = |name: &str| directory.path().join(name);
    // A socket is not a regular file, like a device, and needs no root to be made.
    let _listener = UnixListener::bind(path("socket")).expect("a socket");
    symlink(path("plan"), path("link")).expect("a link");
    for name in ["socket", "link", "."] {
        assert!(write(&path(name), &plan).is_err(), "{name}");
    }
    let kind = fs::metadata(path("socket")).expect("still there").file_type();
    assert!(kind.is_socket());

    for name in ["plan", "plan", "link"] {
        write(&path(name), &plan).expect(name);
        assert_eq!(read(&path(name)).expect(name), plan);
    }
    assert!(path("link").is_symlink());
}

#[test]
fn values_of_secrets_are_not_in_the_file_and_come_back_from_the_manifest() {
    let (directory, plan) = saved(SECRET);
    let sealed = to_text_with_digest(&plan);
    for value in ["in-the", "aW4tdGhl"] {
        assert!(!sealed.contains(value), "{value} in {sealed}");
    }
    assert_eq!(plan.manifests[0].hidden.len(), 5);
    let restored = restore_manifests_with_secrets(&plan).expect("the same");
    assert_eq!(restored[0].object.value()["stringData"]["key"], "in-the-text");
    let file = directory.path().join("login.yaml");
    // The object may be on another line of the file.
    fs::write(&file, format!("# A comment.\n{SECRET}")).expect("a file");
    assert!(restore_manifests_with_secrets(&plan).is_ok());
    for (from, to) in [
        ("in-the-text", "other"),
        ("name: login", "name: other"),
        ("a/b", "c"),
    ] {
        fs::write(&file, SECRET.replace(from, to)).expect("a file");
        let error = restore_manifests_with_secrets(&plan).expect_err("another");
        assert_eq!((error.kind, error.messages.len()), (ErrorKind::Outdated, 1));
        let text = &error.messages[0].text;
        assert!(text.ends_with(": secret/login changed since the plan"), "{text}");
    }
    fs::remove_file(&file).expect("removed");
    assert!(restore_manifests_with_secrets(&plan).is_err());
}

#[cfg(unix)]
fn not_unicode() -> std::path::PathBuf {
    use std::os::unix::ffi::OsStringExt as _;

    std::ffi::OsString::from_vec(b"\xff.yaml".to_vec()).into()
}

#[test]
fn what_cannot_be_read_again_is_lost_and_addresses_are_not_kept() {
    let read = |text: &str| {
        let read =
            manifest::read_with_standard_input(&[Source::StandardInput], Recursion::Flat, text.as_bytes());
        read.expect("a manifest").remove(0)
    };
    let secret_from = |source: Source| {
        let mut manifest = read(SECRET);
        manifest.position.source = Arc::new(source);
        manifest
    };
    let table = [
        (Source::StandardInput, true),
        (
            Source::Url("https://user:hush@example.com/a.yaml".to_owned()),
            true,
        ),
        (Source::kustomization("https://user:hush@example.com/a"), true),
        (Source::kustomization("overlays/test"), false),
        (Source::from_filename_flag("a.yaml"), false),
        // A path that is not a file, like a pipe.
        #[cfg(unix)]
        (Source::from_filename_flag("/dev/null"), true),
        #[cfg(unix)]
        (Source::Path(not_unicode()), true),
    ];
    for (source, lost) in table {
        let manifest = secret_from(source);
        assert_eq!(would_lose_secret_values(&manifest), lost, "{}", manifest.position);
        let plan = plan_of(vec![SavedManifest::new(&manifest, &salt())], salt());
        assert!(
            !to_text_with_digest(&plan).contains("hush"),
            "{}",
            manifest.position
        );
    }
    assert!(!would_lose_secret_values(&read(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: empty}\n"
    )));
}

#[test]
fn equal_values_have_different_digests_in_different_plans_and_fields() {
    let [one, other] = [salt(), salt()];
    let value = json!("password");
    assert_eq!(one.digest("/data/a", &value), one.digest("/data/a", &value));
    assert_ne!(one.digest("/data/a", &value), one.digest("/data/b", &value));
    assert_ne!(one.digest("/data/a", &value), other.digest("/data/a", &value));
}

#[test]
fn what_others_do_to_an_object_counts_but_for_its_status() {
    let salt = salt();
    let object = json!({"metadata": {"uid": "u", "resourceVersion": "1", "generation": 1, "labels": {"a": "1"},
        "managedFields": []}, "spec": {"a": 1}, "status": {"ready": false}});
    let then = Seen::from_object(&object, &salt).expect("an object");
    let with = |pointer: &str, value: Value| {
        let mut object = object.clone();
        *object.pointer_mut(pointer).expect("a field") = value;
        Seen::from_object(&object, &salt).expect("an object")
    };
    for pointer in [
        "/metadata/resourceVersion",
        "/metadata/managedFields",
        "/metadata/generation",
        "/status",
    ] {
        assert_eq!(with(pointer, json!("2")).digest, then.digest, "{pointer}");
    }
    for pointer in ["/metadata/labels/a", "/spec/a"] {
        assert_ne!(with(pointer, json!("2")).digest, then.digest, "{pointer}");
    }
}

#[test]
fn the_record_is_not_part_of_a_parent_with_a_manifest() {
    let salt = salt();
    let seen = |metadata: Value, data: &str| {
        let mut object = json!({"metadata": metadata, "data": {"key": data}});
        object["metadata"]["uid"] = json!("u");
        object["metadata"]["resourceVersion"] = json!("1");
        Seen::from_parent_without_record(&object, &salt).expect("an object")
    };
    let bare = seen(json!({}), "1");
    let recorded = json!({"labels": labels(&fixtures::set().id),
        "annotations": annotations(&fixtures::set().tooling, &Record::default())});
    assert_eq!(seen(recorded.clone(), "1"), bare);
    assert_ne!(seen(recorded, "2"), bare);
    assert_ne!(seen(json!({"labels": {"app": "web"}}), "1"), bare);
    assert_ne!(seen(json!({"annotations": {"note": "x"}}), "1"), bare);
}

/// A set of three members: one is applied, one is unchanged, one is pruned.
struct Scene {
    saved: SavedPlan,
    cluster: SavedCluster,
    set: Set,
    plan: Plan,
    desired: Desired,
    parent: Option<ParentObject>,
    namespaces: NamespaceUids,
    seen: BTreeMap<ObjectKey, Seen>,
}

fn seen(uid: &str, version: &str, digest: &str) -> Seen {
    Seen {
        uid: uid.to_owned(),
        resource_version: version.to_owned(),
        digest: digest.to_owned(),
    }
}

fn scene() -> Scene {
    let desired = Desired {
        members: ["sent", "kept", "new"]
            .map(|name| fixtures::desired("ConfigMap", Some("shop"), name))
            .into(),
        ..Desired::default()
    };
    let [kept, pruned] = ["kept", "pruned"].map(|name| fixtures::live("ConfigMap", Some("shop"), name));
    let apply = |index| crate::plan::Apply {
        index,
        live_membership: LiveMembership::NotAMember,
    };
    let plan = Plan {
        record_during: Record::default(),
        record_after: Record::default(),
        prerequisites: Vec::new(),
        waves: vec![vec![apply(0), apply(2)]],
        unchanged: vec![Unchanged {
            index: 1,
            uid: kept.uid.clone(),
        }],
        prunes: vec![vec![pruned.clone()]],
        last_prunes: Vec::new(),
        edges: crate::plan::DependencyEdges::default(),
        skips: Vec::new(),
        dependents: Dependents::default(),
        preconditions: crate::plan::Preconditions::default(),
        accepted: Vec::new(),
        refusals: Vec::new(),
    };
    let key = |index: usize| desired.members[index].key.clone();
    let there = BTreeMap::from([
        (key(0), seen("sent", "1", "a")),
        (pruned.key.clone(), seen("pruned", "1", "a")),
    ]);
    let object = |key: &ObjectKey, intent, seen| SavedObject {
        taken_in: false,
        recreated: false,
        lost: BTreeSet::new(),
        left_to_autoscaler: None,
        prune_time: String::new(),
        key: key.clone(),
        intent,
        seen,
    };
    let mut saved = plan_of(Vec::new(), salt());
    saved.objects = vec![
        object(&key(0), Intent::Apply, there.get(&key(0)).cloned()),
        object(
            &kept.key,
            Intent::LeaveAlone,
            Some(Seen::for_unwritten_object(&kept.uid)),
        ),
        object(&key(2), Intent::Apply, None),
        object(&pruned.key, Intent::Prune, there.get(&pruned.key).cloned()),
    ];
    Scene {
        cluster: saved.cluster.clone(),
        set: fixtures::set(),
        saved,
        plan,
        desired,
        parent: None,
        namespaces: BTreeMap::new(),
        seen: there,
    }
}

impl Scene {
    fn find_drift(&self) -> Vec<String> {
        find_drift(&self.saved, &self.fresh())
    }

    fn fresh(&self) -> CurrentState<'_> {
        CurrentState {
            cluster: &self.cluster,
            set: &self.set,
            desired: &self.desired,
            plan: &self.plan,
            parent: self.parent.as_ref(),
            parent_seen: None,
            namespaces: &self.namespaces,
            seen: &self.seen,
        }
    }

    fn key(&self, name: &str) -> ObjectKey {
        let mut objects = self.saved.objects.iter();
        objects
            .find(|object| object.key.name == name)
            .expect("an object")
            .key
            .clone()
    }
}

#[test]
fn objects_are_detached_from_the_owners_that_the_plan_names() {
    let mut scene = scene();
    let mut dependent = Dependent::from_live(&fixtures::live("ConfigMap", Some("shop"), "kept"));
    dependent.owners = vec!["pruned".to_owned()];
    let key = dependent.key.clone();
    scene.plan.dependents.detachments = vec![Detachment {
        owners: dependent.owners.iter().cloned().collect(),
        dependent,
        pruned: BTreeSet::new(),
    }];
    assert_eq!(
        scene.find_drift(),
        [format!("{key}: other owner references would be removed")]
    );
    scene.saved.detached = saved_detachments(&scene.plan);
    assert_eq!(scene.find_drift(), [""; 0]);
    let text = to_text_with_digest(&scene.saved);
    assert_eq!(parse(&text).expect("a plan").detached, scene.saved.detached);
    scene.plan.dependents = Dependents::default();
    assert_eq!(
        scene.find_drift(),
        [format!("{key}: other owner references would be removed")]
    );
}

#[test]
fn what_is_lost_with_a_container_is_bound_by_the_plan() {
    let mut scene = scene();
    let container = scene.key("pruned");
    let holds = |uids: &[&str]| Refusal::HoldsOthers {
        container: container.clone(),
        lost: Vec::new(),
        uids: uids.iter().map(|&uid| uid.to_owned()).collect(),
        unknown: Vec::new(),
    };
    scene.plan.accepted = vec![holds(&["one"])];
    assert_eq!(scene.find_drift(), [holds(&["one"]).to_string()]);
    for object in &mut scene.saved.objects {
        object.lost = BTreeSet::from(["one".to_owned(), "two".to_owned()]);
    }
    assert_eq!(scene.find_drift(), [""; 0]);
    scene.plan.accepted = vec![holds(&["one", "three"])];
    assert_eq!(scene.find_drift().len(), 1);
}

#[test]
fn where_nothing_moved_nothing_is_reported() {
    let mut scene = scene();
    assert_eq!(scene.find_drift(), [""; 0]);
    let sent = scene.key("sent");
    // A write that changed the resourceVersion and not the content.
    scene.seen.insert(sent, seen("sent", "2", "a"));
    assert_eq!(scene.find_drift(), [""; 0]);
}

#[test]
fn what_moved_is_reported_of_each_object_once() {
    type Move = fn(&mut Scene);
    type Expected = &'static str;
    let table: [(Move, Expected); 9] = [
        (
            |now| drop(now.seen.insert(now.key("sent"), seen("sent", "2", "b"))),
            "configmap/sent in namespace shop was changed",
        ),
        (
            |now| drop(now.seen.insert(now.key("sent"), seen("other", "1", "a"))),
            "configmap/sent in namespace shop was deleted and recreated",
        ),
        (
            |now| drop(now.seen.remove(&now.key("sent"))),
            "configmap/sent in namespace shop was deleted",
        ),
        (
            |now| drop(now.seen.insert(now.key("new"), seen("new", "1", "a"))),
            "configmap/new in namespace shop was created",
        ),
        (
            |now| now.plan.prunes.clear(),
            "configmap/pruned in namespace shop left the set",
        ),
        (
            |now| {
                let live = now.plan.prunes.remove(0).remove(0);
                now.plan.skips.push(crate::plan::Skip {
                    live,
                    reason: ReasonToKeep::HoldsParent,
                });
                let pruned = now.key("pruned");
                now.plan.skips[0].live.uid = now.seen[&pruned].uid.clone();
            },
            "configmap/pruned in namespace shop changed: it would be skipped: it contains the set's parent",
        ),
        (
            |now| {
                let live = fixtures::live("ConfigMap", Some("shop"), "stranger");
                now.plan.prunes[0].push(live);
            },
            "configmap/stranger in namespace shop joined the set",
        ),
        (
            |now| drop(now.namespaces.insert("shop".to_owned(), Some("u".to_owned()))),
            "namespace/shop was deleted or recreated",
        ),
        (
            |now| {
                now.plan
                    .refusals
                    .push(Refusal::EmptyManifests { objects: Vec::new() });
            },
            "no objects in the manifests",
        ),
    ];
    for (step, expected) in table {
        let mut now = scene();
        step(&mut now);
        assert_eq!(now.find_drift(), [expected]);
    }
    let mut now = scene();
    now.plan.unchanged[0].uid = "other".to_owned();
    assert_eq!(
        now.find_drift(),
        ["configmap/kept in namespace shop was deleted and recreated"]
    );
    let mut now = scene();
    now.plan.unchanged.clear();
    now.plan.waves[0].push(crate::plan::Apply {
        index: 1,
        live_membership: LiveMembership::NotAMember,
    });
    let kept = now.key("kept");
    let uid = fixtures::live("ConfigMap", Some("shop"), "kept").uid;
    now.seen.insert(kept.clone(), seen(&uid, "2", "b"));
    let sent = format!("{kept} changed: it would be applied");
    assert_eq!(now.find_drift(), [sent]);
}

#[test]
fn a_plan_is_for_one_cluster() {
    let other = || "the plan is for another cluster: https://one, not https://one".to_owned();
    let unknown = |now: &str| {
        format!(
            "the plan may be for another cluster: https://one, not {now}: the UID of namespace kube-system cannot be read"
        )
    };
    let made_for = [
        cluster(Some("of-this"), "https://one", Some("a")),
        cluster(None, "https://one", Some("a")),
    ];
    let table = [
        (cluster(Some("of-this"), "https://one", Some("a")), [None, None]),
        // The same cluster at another address.
        (
            cluster(Some("of-this"), "https://two", None),
            [None, Some(unknown("https://two"))],
        ),
        // Another cluster at the same address.
        (
            cluster(Some("of-another"), "https://one", Some("a")),
            [Some(other()), None],
        ),
        (cluster(None, "https://one", Some("a")), [None, None]),
        (
            cluster(None, "https://two", Some("a")),
            [Some(unknown("https://two")), Some(unknown("https://two"))],
        ),
        (
            cluster(None, "https://one", Some("b")),
            [Some(unknown("https://one")), Some(unknown("https://one"))],
        ),
    ];
    for (now, expected) in table {
        for (then, expected) in made_for.iter().zip(expected) {
            let mut scene = scene();
            scene.saved.cluster = then.clone();
            scene.cluster = now.clone();
            let reported: Vec<String> = expected.into_iter().collect();
            assert_eq!(scene.find_drift(), reported, "{then:?} {now:?}");
        }
    }
}

#[test]
fn what_both_clusters_have_shows_that_they_are_one() {
    let mut scene = scene();
    scene.cluster = cluster(None, "https://two", None);
    let namespaces = BTreeMap::from([("shop".to_owned(), Some("u".to_owned()))]);
    scene.saved.namespaces.clone_from(&namespaces);
    scene.namespaces = namespaces;
    assert_eq!(scene.find_drift(), [""; 0]);
}

#[test]
fn namespaces_are_compared_where_both_may_be_read() {
    let named = |uid: Option<Option<&str>>| {
        let uid = uid.map(|uid| ("shop".to_owned(), uid.map(str::to_owned)));
        uid.into_iter().collect::<NamespaceUids>()
    };
    let (missing, unread) = (None, Some(None));
    let [one, other] = ["one", "other"].map(|uid| Some(Some(uid)));
    // The UID then and now, and whether the namespace counts as changed.
    let table = [
        (one, one, false),
        (one, other, true),
        (one, missing, true),
        (missing, one, true),
        (one, unread, false),
        (unread, one, false),
        (unread, unread, false),
        (unread, missing, false),
        (missing, unread, false),
        (missing, missing, false),
    ];
    for (then, now, is_other) in table {
        let mut scene = scene();
        scene.saved.namespaces = named(then);
        scene.namespaces = named(now);
        let other = is_other.then(|| "namespace/shop was deleted or recreated".to_owned());
        assert_eq!(scene.find_drift(), Vec::from_iter(other), "{then:?} {now:?}");
    }
}
