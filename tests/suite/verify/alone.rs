//! `verify -A`: all sets of a cluster, and members of sets that are gone. It looks at
//! everything, so each test has a cluster of its own.

use controlplane::ControlPlane;
use serde_json::{Value, json};

use super::{WITHOUT_QUESTION, reported, rules};
use crate::support::{
    Cluster, Files, GROUP_KINDS, ID, NAMESPACES, PART_OF, Program, Run, Set, TOOLING, cluster_role,
    config_map, custom_resource, definition, eventually, named, namespace_object, objects_file, secret, with,
};

struct Alone {
    control_plane: ControlPlane,
    cluster: Cluster,
}

impl Alone {
    fn start() -> Self {
        let control_plane = ControlPlane::start().expect("a control plane");
        let cluster = Cluster::of(&control_plane);
        for name in ["home", "away"] {
            cluster.create(&namespace_object(name));
        }
        Self {
            control_plane,
            cluster,
        }
    }

    fn program(&self) -> Program {
        Program::with_kubeconfig(self.control_plane.admin_kubeconfig())
    }

    fn apply(&self, set: &Set, objects: &[Value]) -> Run {
        let files = Files::new().with("objects.yaml", &objects_file(objects));
        let run = set.command(self.program(), &files).args(["-o", "json"]).run();
        run.expect(0)
    }

    fn verify(&self, flags: &[&str]) -> Run {
        self.program()
            .args(["verify", "-A", "-o", "json"])
            .args(flags)
            .run()
    }

    fn spoil(&self, set: &Set, metadata: &Value) {
        self.cluster.patch(&set.parent, &json!({"metadata": metadata}));
    }
}

#[test]
fn all_sets_of_a_cluster_are_verified_and_repaired() {
    let alone = Alone::start();
    let run = alone.verify(&[]).expect(0);
    assert_eq!((run.document()["sets"].clone(), rules(&run)), (json!([]), vec![]));

    let group = "web.example.com";
    alone.cluster.define(&definition(group, "Cluster"));
    alone.cluster.create(&custom_resource(group, None, "web"));
    let sets = [
        Set::secret("home", "one"),
        Set::config_map("away", "two"),
        Set::custom(group, None, "home"),
    ];
    let of = |name: &str| [config_map("home", name, "1"), secret("away", name)];
    for (set, name) in sets.iter().zip(["one", "two", "three"]) {
        alone.apply(set, &of(name));
    }
    let run = alone.verify(&[]).expect(0);
    assert_eq!(rules(&run), [""; 0]);
    assert_eq!(run.document()["sets"].as_array().map(Vec::len), Some(3));

    alone.spoil(&sets[0], &json!({"labels": {ID: null}}));
    alone.spoil(&sets[1], &json!({"annotations": {GROUP_KINDS: "Secret"}}));
    alone.spoil(
        &sets[2],
        &json!({"annotations": {NAMESPACES: "away,default,home"}}),
    );
    let run = alone.verify(&[]).expect(1);
    let expected = [
        "missing-id Secret home/one+",
        "record-too-narrow ConfigMap away/two+",
        "record-too-wide Widget -/web+",
        "unrecorded-member ConfigMap home/two+",
    ];
    assert_eq!(reported(&run), expected);
    let run = alone.verify(&WITHOUT_QUESTION).expect(0);
    assert_eq!(run.document()["summary"]["fixed"], 4);
    assert_eq!(rules(&alone.verify(&[]).expect(0)), [""; 0]);
    for (set, name) in sets.iter().zip(["one", "two", "three"]) {
        assert_eq!(alone.apply(set, &of(name)).results("unchanged").len(), 2);
    }
}

#[test]
fn members_of_sets_that_are_gone_are_found_wherever_they_are() {
    let alone = Alone::start();
    let [one, two, three] = ["one", "two", "three"].map(|name| Set::secret("home", name));
    alone.apply(&one, &[config_map("away", "one", "1")]);
    alone.apply(&two, &[config_map("away", "two", "1")]);
    alone.apply(&three, &[config_map("away", "three", "1")]);
    alone.cluster.delete(&one.parent);
    // Another client has taken all marks off this one, and it still is what it was.
    let marks = json!({
        "labels": {ID: null},
        "annotations": {GROUP_KINDS: null, NAMESPACES: null, TOOLING: null},
    });
    alone.spoil(&two, &marks);
    let controllers = with(
        config_map("away", "copy", "1"),
        &json!({"metadata": {"labels": {PART_OF: one.id}}}),
    );
    alone.cluster.create(&controllers);
    // An object of a kind that may not be a parent, with the label of one.
    let account = named("v1", "ServiceAccount", Some("home"), "account");
    alone
        .cluster
        .create(&with(account, &json!({"metadata": {"labels": {ID: three.id}}})));

    let run = alone.verify(&WITHOUT_QUESTION).expect(1);

    let expected = [
        "label-copy ConfigMap away/copy",
        "no-bookkeeping Secret home/two",
        "orphan ConfigMap away/one",
        "parent-kind ServiceAccount home/account",
    ];
    assert_eq!(reported(&run), expected);
    let document = run.document();
    let orphan = document["findings"].as_array().expect("findings").iter();
    let orphan = orphan.filter(|finding| finding["rule"] == "orphan");
    assert_eq!(
        orphan.map(|finding| &finding["set"]).collect::<Vec<_>>(),
        [&json!(one.id)]
    );
}

#[test]
fn what_another_set_covers_is_not_counted_against_a_named_one() {
    let alone = Alone::start();
    let [one, other] = ["home", "away"].map(|namespace| Set::secret(namespace, "web"));
    let roles = ["one", "lost", "left"].map(cluster_role);
    alone.apply(&one, &roles[..1]);
    alone.apply(&other, &roles[1..]);
    alone
        .cluster
        .patch(&roles[1], &json!({"metadata": {"labels": {PART_OF: null}}}));
    let verify = |arguments: &[&str]| {
        let program = alone.program().args(["verify", "-o", "json"]);
        program.args(arguments).run()
    };

    for arguments in [&["web", "-n", "home"][..], &["-n", "home"]] {
        let run = verify(arguments).expect(0);
        assert_eq!(rules(&run), [""; 0], "{arguments:?}");
    }
    let run = alone.verify(&[]).expect(1);
    assert_eq!(reported(&run), ["lost-member ClusterRole -/lost"]);
    // Without the other set, only this one may have lost it.
    alone.cluster.delete(&other.parent);
    let run = verify(&["web", "-n", "home"]).expect(1);
    assert_eq!(reported(&run), ["lost-member ClusterRole -/lost"]);
}

#[test]
fn an_api_that_is_down_hides_what_it_serves() {
    let alone = Alone::start();
    let set = Set::secret("home", "web");
    alone.apply(&set, &[config_map("home", "one", "1")]);
    alone.spoil(
        &set,
        &json!({"annotations": {GROUP_KINDS: "ConfigMap,Secret,Thing.down.example.com"}}),
    );
    let service = with(
        named(
            "apiregistration.k8s.io/v1",
            "APIService",
            None,
            "v1.down.example.com",
        ),
        &json!({"spec": {
            "group": "down.example.com", "version": "v1",
            "service": {"namespace": "nowhere", "name": "none"},
            "groupPriorityMinimum": 1000, "versionPriority": 10, "insecureSkipTLSVerify": true,
        }}),
    );
    alone.cluster.create(&service);
    let orphan = with(
        config_map("away", "orphan", "1"),
        &json!({"metadata": {"labels": {PART_OF: "applyset-none-v1"}}}),
    );
    alone.cluster.apply_as("kubectl", &orphan);
    let run = eventually("the API is found to be down", || {
        let run = alone.verify(&WITHOUT_QUESTION);
        run.stdout.contains("unknowable-kind").then_some(run)
    });
    // Its parent may be a custom resource of the API that is down, so nothing is concluded.
    assert_eq!(rules(&run.expect(1)), ["incomplete-look", "unknowable-kind"]);
    let parent = alone.cluster.live(&set.parent).expect("a parent");
    assert_eq!(
        parent["metadata"]["annotations"][GROUP_KINDS],
        "ConfigMap,Secret,Thing.down.example.com"
    );

    alone.cluster.delete(&service);
    let run = eventually("the API is gone", || {
        let run = alone.verify(&WITHOUT_QUESTION);
        (!run.stdout.contains("incomplete-look")).then_some(run)
    });
    assert_eq!(rules(&run), ["orphan", "record-too-wide", "unserved-kind"]);
    let parent = alone.cluster.live(&set.parent).expect("a parent");
    assert_eq!(parent["metadata"]["annotations"][GROUP_KINDS], "ConfigMap");
}
