//! What each command costs: how many requests a run sends, and of which sort.
//!
//! Runs go to the control plane that a test has to itself, so that no kind of another test is
//! searched, and no object of another test is found.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Files, OwnControlPlane, Program, Proxy, Sent, Set, cluster, cluster_role, config_map, custom_resource,
    definition, deployment, eventually, fresh, named, namespace, objects_file, secret, service, with,
};

/// How many requests of each sort a run sends; a sort is what [`sort`] returns.
type Cost<'a> = &'a [(usize, &'a str)];

/// The sort of a request: its verb and resource, and for a list what it selects and where.
fn sort(sent: &Sent) -> String {
    let (path, query) = sent.path.split_once('?').unwrap_or((&sent.path, ""));
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    // `api/VERSION` and `apis/GROUP/VERSION`.
    let root = if segments[0] == "api" { 2 } else { 3 };
    if segments.len() <= root {
        return "discover".to_owned();
    }
    let (place, rest) = match &segments[root..] {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => ("in a namespace", rest),
        rest => ("everywhere", rest),
    };
    let resource = rest[0];
    if sent.method == Method::GET && rest.len() == 1 {
        let page = if query.contains("continue=") {
            ", a further page"
        } else {
            ""
        };
        return format!("list {} {place}{page}", selected(query, resource));
    }
    let verb = if sent.method == Method::GET {
        "get"
    } else if query.contains("dryRun=All") {
        "dry-run"
    } else if query.contains("fieldManager=kubectl-applyset-parent") {
        "record on"
    } else {
        match sent.method {
            Method::POST => "create",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => sent.method.as_str(),
        }
    };
    format!("{verb} {resource}")
}

/// What the part-of label in the query of a list selects.
fn selected(query: &str, resource: &str) -> String {
    let selector = query
        .split('&')
        .find_map(|parameter| parameter.strip_prefix("labelSelector="))
        .unwrap_or_default();
    if selector.contains("%21%3D") {
        "members of other sets".to_owned()
    } else if selector.contains("%3D") {
        "members".to_owned()
    } else if selector.starts_with("%21") {
        "objects in no set".to_owned()
    } else if selector.ends_with("part-of") {
        "members of any set".to_owned()
    } else if selector.is_empty() {
        format!("all {resource}")
    } else {
        format!("{resource} by {selector}")
    }
}

/// Asserts that a run sent exactly these requests, in any order.
#[track_caller]
fn assert_cost(sent: &[Sent], expected: Cost<'_>) {
    let mut actual: BTreeMap<String, usize> = BTreeMap::new();
    for sent in sent {
        *actual.entry(sort(sent)).or_default() += 1;
    }
    let expected: BTreeMap<String, usize> = expected
        .iter()
        .map(|(count, sort)| ((*sort).to_owned(), *count))
        .collect();
    let sorts: BTreeSet<&String> = actual.keys().chain(expected.keys()).collect();
    let differences: Vec<String> = sorts
        .into_iter()
        .filter(|sort| actual.get(*sort) != expected.get(*sort))
        .map(|sort| {
            let count = |of: &BTreeMap<String, usize>| of.get(sort).copied().unwrap_or_default();
            format!("  {sort}: {}, expected {}", count(&actual), count(&expected))
        })
        .collect();
    let all: Vec<String> = sent
        .iter()
        .map(|sent| format!("  {} {}", sent.method, sent.path))
        .collect();
    assert!(
        differences.is_empty(),
        "a run has another cost than before:\n{}\nit sent {} requests:\n{}",
        differences.join("\n"),
        sent.len(),
        all.join("\n"),
    );
}

/// What a command on the set sends until it ends with success. A document would cost one request more.
fn sent_by(set: &Set, command: &str, arguments: &[&str]) -> Vec<Sent> {
    let proxy = Proxy::transparent();
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    set.invocation(program, command, arguments).run().expect(0);
    proxy.sent()
}

/// The same of a command that reads manifests.
fn sent_with(set: &Set, command: &str, objects: &[Value]) -> Vec<Sent> {
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    let directory = files.directory().to_string_lossy().into_owned();
    sent_by(set, command, &["-f", &directory])
}

/// A control plane without custom kinds, in discovery either.
fn own_control_plane() -> OwnControlPlane {
    let own = OwnControlPlane::start();
    eventually("only built-in groups are served", || {
        let groups = cluster().get("/apis").expect("groups");
        let groups = groups["groups"].as_array().expect("groups");
        let mut names = groups.iter().filter_map(|group| group["name"].as_str());
        names
            .all(|name| !name.contains('.') || name.ends_with(".k8s.io"))
            .then_some(())
    });
    own
}

/// How many kinds of the server have these verbs.
fn kinds_with(verbs: &[&str]) -> usize {
    let groups = cluster().get("/apis").expect("groups");
    let groups = groups["groups"].as_array().expect("groups");
    let preferred = |group: &Value| {
        let version = &group["preferredVersion"]["groupVersion"];
        format!("/apis/{}", version.as_str().expect("a version"))
    };
    let roots = ["/api/v1".to_owned()]
        .into_iter()
        .chain(groups.iter().map(preferred));
    let has_verbs = |resource: &&Value| {
        let has = |verb: &&str| {
            let known = resource["verbs"].as_array();
            known.is_some_and(|known| known.contains(&json!(verb)))
        };
        verbs.iter().all(has)
    };
    roots
        .map(|root| {
            let list = cluster().get(&root).expect("resources");
            let resources = list["resources"].as_array().expect("resources");
            resources.iter().filter(has_verbs).count()
        })
        .sum()
}

/// A set in the namespace `home`, and its objects: three kinds in two namespaces and a kind
/// outside of namespaces.
fn small_set() -> (Set, Vec<Value>) {
    let [home, away] = [namespace("home"), namespace("away")];
    let objects = vec![
        config_map(&home, "one", "1"),
        config_map(&away, "two", "1"),
        secret(&home, "three"),
        service(&away, "web", 80),
        cluster_role(&fresh("role")),
    ];
    (Set::secret(&home, "web"), objects)
}

/// The small set after a first apply.
fn applied_set() -> (Set, Vec<Value>) {
    let (set, objects) = small_set();
    set.apply(&objects);
    (set, objects)
}

#[test]
fn a_first_apply_reads_each_place_once() {
    let _own = own_control_plane();
    let (set, objects) = small_set();

    let sent = sent_with(&set, "apply", &objects);

    assert_cost(
        &sent,
        &[
            (2, "discover"),
            (2, "get namespaces"),
            (1, "get secrets"),
            (6, "list members of any set in a namespace"),
            (1, "list members of any set everywhere"),
            // A lost parent may have had members in other namespaces.
            (3, "list members everywhere"),
            (1, "create selfsubjectaccessreviews"),
            (1, "create selfsubjectreviews"),
            // The record, and the history.
            (2, "record on secrets"),
            (1, "patch clusterroles"),
            (2, "patch configmaps"),
            (1, "patch secrets"),
            (1, "patch services"),
        ],
    );
}

/// What a run reads that finds the small set unchanged.
const READS_OF_SMALL_SET: Cost<'_> = &[
    (2, "discover"),
    (2, "get namespaces"),
    (1, "get secrets"),
    (6, "list members in a namespace"),
    (1, "list members everywhere"),
];

#[test]
fn apply_and_diff_read_an_unchanged_set_once() {
    let _own = own_control_plane();
    let (set, objects) = applied_set();
    for command in ["apply", "diff"] {
        assert_cost(&sent_with(&set, command, &objects), READS_OF_SMALL_SET);
    }
}

#[test]
fn the_definitions_of_custom_kinds_are_read_with_one_list_if_they_are_in_the_set() {
    let _own = own_control_plane();
    let home = namespace("home");
    let groups = [fresh("a"), fresh("b")].map(|name| format!("{name}.example.com"));
    let objects: Vec<Value> = groups
        .iter()
        .flat_map(|group| {
            [
                definition(group, "Namespaced"),
                custom_resource(group, Some(&home), "one"),
            ]
        })
        .collect();
    let set = Set::secret(&home, "web");
    set.apply(&objects);
    let outside = custom_resource(&groups[0], Some(&home), "two");
    let other = Set::secret(&home, "other");
    other.apply(std::slice::from_ref(&outside));

    assert_cost(
        &sent_with(&set, "apply", &objects),
        &[
            (2, "discover"),
            (1, "get namespaces"),
            (1, "get secrets"),
            (2, "list members everywhere"),
            (2, "list members in a namespace"),
        ],
    );
    assert_cost(
        &sent_with(&other, "apply", std::slice::from_ref(&outside)),
        &[
            (2, "discover"),
            (1, "get namespaces"),
            (1, "get secrets"),
            (1, "get customresourcedefinitions"),
            (1, "list members in a namespace"),
        ],
    );
}

#[test]
fn replicas_that_leave_the_manifest_cost_a_list_at_most() {
    let _own = own_control_plane();
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let mut web = deployment(&home, "web", 5);
    set.apply(std::slice::from_ref(&web));
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let autoscaler = with(
        named("autoscaling/v2", "HorizontalPodAutoscaler", Some(&home), "web"),
        &json!({"spec": {"maxReplicas": 9, "scaleTargetRef": target}}),
    );
    cluster().create(&autoscaler);
    web["spec"].as_object_mut().expect("a spec").remove("replicas");
    let unchanged = [
        (2, "discover"),
        (1, "get namespaces"),
        (1, "get secrets"),
        (1, "list members in a namespace"),
    ];
    let list = (1, "list all horizontalpodautoscalers in a namespace");
    // Until a run writes, the manifests are not those of the last run, so it seems to have something to write.
    let reviews = [
        (1, "create selfsubjectaccessreviews"),
        (1, "create selfsubjectreviews"),
    ];

    for _ in 0..2 {
        let sent = sent_with(&set, "apply", std::slice::from_ref(&web));
        assert_cost(&sent, &[&unchanged[..], &[list], &reviews].concat());
    }
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}}});
    let web = with(web, &image);
    let sent = sent_with(&set, "apply", std::slice::from_ref(&web));
    assert_cost(
        &sent,
        &[
            &unchanged[..],
            &reviews,
            &[
                list,
                // The beginning and the end of the run.
                (2, "record on secrets"),
                (1, "patch deployments"),
            ],
        ]
        .concat(),
    );
    // The manifests show their autoscaler, and the object its own.
    set.apply(&[web.clone(), autoscaler.clone()]);
    let sent = sent_with(&set, "apply", &[web.clone(), autoscaler]);
    let members = (2, "list members in a namespace");
    assert_cost(&sent, &[&unchanged[..3], &[members]].concat());
    cluster().scale(&web, 7);
    let sent = sent_with(&set, "apply", &[web]);
    assert!(
        !sent
            .iter()
            .any(|sent| sent.path.ends_with("/horizontalpodautoscalers"))
    );
}

#[test]
fn view_reads_the_parent_and_each_recorded_place() {
    let _own = own_control_plane();
    let (set, _) = applied_set();

    let sent = sent_by(&set, "view", &[]);

    assert_cost(
        &sent,
        &[
            (2, "discover"),
            (1, "get secrets"),
            (6, "list members in a namespace"),
            (1, "list members everywhere"),
        ],
    );
}

#[test]
fn a_prune_reads_the_places_that_leave_the_record_before_it_is_written() {
    let _own = own_control_plane();
    let (set, objects) = applied_set();

    // The Service and the ClusterRole go, and with each its kind.
    let sent = sent_with(&set, "apply", &objects[..3]);

    assert_cost(
        &sent,
        &[
            (2, "discover"),
            (4, "get namespaces"),
            (2, "get secrets"),
            // For the plan, before the first delete, and where the record is narrowed.
            (14, "list members in a namespace"),
            (3, "list members everywhere"),
            // One of them may be a member without its label.
            (2, "list objects in no set in a namespace"),
            (1, "list objects in no set everywhere"),
            (1, "create selfsubjectaccessreviews"),
            (1, "delete clusterroles"),
            (1, "delete services"),
            (1, "create selfsubjectreviews"),
            // The beginning and the end of the run.
            (2, "record on secrets"),
        ],
    );
}

#[test]
fn delete_reads_each_place_twice_before_and_once_after_the_deletes() {
    let _own = own_control_plane();
    let (set, _) = applied_set();

    let sent = sent_by(&set, "delete", &["--yes"]);

    assert_cost(
        &sent,
        &[
            (2, "discover"),
            (2, "get namespaces"),
            (3, "get secrets"),
            (18, "list members in a namespace"),
            (3, "list members everywhere"),
            // One of them may be a member without its label.
            (6, "list objects in no set in a namespace"),
            (1, "list objects in no set everywhere"),
            (1, "create selfsubjectaccessreviews"),
            (1, "delete clusterroles"),
            (2, "delete configmaps"),
            // A member and the parent.
            (2, "delete secrets"),
            (1, "delete services"),
            (1, "create selfsubjectreviews"),
            // The beginning: the end is the DELETE of the parent.
            (1, "record on secrets"),
        ],
    );
}

#[test]
fn disband_writes_each_member_and_the_parent_once() {
    let _own = own_control_plane();
    let (set, _) = applied_set();

    let sent = sent_by(&set, "disband", &["--yes"]);

    assert_cost(
        &sent,
        &[
            (2, "discover"),
            (2, "get secrets"),
            (12, "list members in a namespace"),
            (2, "list members everywhere"),
            (1, "create selfsubjectaccessreviews"),
            (1, "patch clusterroles"),
            (2, "patch configmaps"),
            (1, "patch secrets"),
            (1, "patch services"),
            (1, "create selfsubjectreviews"),
            // The beginning and the end of the run.
            (2, "record on secrets"),
        ],
    );
}

#[test]
fn verify_searches_each_kind_once() {
    let _own = own_control_plane();
    let (set, mut objects) = small_set();
    // Objects outside of namespaces are judged whichever test left them.
    objects.pop();
    set.apply(&objects);

    let sent = sent_by(&set, "verify", &[]);

    assert_cost(
        &sent,
        &[
            (2, "discover"),
            (1, "get secrets"),
            (1, "list all apiservices everywhere"),
            (1, "list all customresourcedefinitions everywhere"),
            (kinds_with(&["list"]), "list members everywhere"),
            (6, "list objects in no set in a namespace"),
        ],
    );
}

#[test]
fn adopt_into_a_new_set_searches_each_kind_once() {
    let _own = own_control_plane();
    let (set, objects) = small_set();
    for object in &objects {
        cluster().create(object);
    }

    let sent = sent_with(&set, "adopt", &objects);

    assert_cost(
        &sent,
        &[
            (2, "discover"),
            (1, "get namespaces"),
            (1, "get clusterroles"),
            (2, "get configmaps"),
            // A member, and the parent.
            (2, "get secrets"),
            (1, "get services"),
            (1, "list all apiservices everywhere"),
            (1, "list all customresourcedefinitions everywhere"),
            (kinds_with(&["list", "delete"]), "list members everywhere"),
            (1, "create selfsubjectaccessreviews"),
            (1, "create selfsubjectreviews"),
            // The beginning and the end of the run.
            (2, "record on secrets"),
            (1, "patch clusterroles"),
            (2, "patch configmaps"),
            (1, "patch secrets"),
            (1, "patch services"),
        ],
    );
}

#[test]
fn move_into_a_new_set_searches_each_kind_once() {
    let _own = own_control_plane();
    let (old, _) = applied_set();
    let new = Set::config_map(&old.namespace, "new");

    let sent = sent_by(&old, "move", &[&new.reference]);

    let of_the_new_set = kinds_with(&["list", "delete"]);
    assert_cost(
        &sent,
        &[
            (2, "discover"),
            (1, "get namespaces"),
            // The last one before the old parent is deleted: that may own the new one.
            (2, "get configmaps"),
            (2, "get secrets"),
            (1, "list all apiservices everywhere"),
            (1, "list all customresourcedefinitions everywhere"),
            (18, "list members in a namespace"),
            // Those of the old set for the plan, and before its parent is deleted; those of the new set,
            // which the old parent may own by then.
            (of_the_new_set + 3, "list members everywhere"),
            // The old set ends only if nothing in its scope has lost its label.
            (6, "list objects in no set in a namespace"),
            (1, "list objects in no set everywhere"),
            (1, "create selfsubjectaccessreviews"),
            (1, "create selfsubjectreviews"),
            // The beginning and the end of the run.
            (2, "record on configmaps"),
            // The beginning: the end is the DELETE of the parent.
            (1, "record on secrets"),
            // An object that leaves a set is tried first.
            (1, "dry-run clusterroles"),
            (2, "dry-run configmaps"),
            (1, "dry-run secrets"),
            (1, "dry-run services"),
            (1, "patch clusterroles"),
            (2, "patch configmaps"),
            (1, "patch secrets"),
            (1, "patch services"),
            (1, "delete secrets"),
        ],
    );
}

#[test]
fn twenty_kinds_in_fifty_namespaces_are_read_with_a_list_for_each_kind() {
    let _own = own_control_plane();
    let home = namespace("home");
    let names: Vec<String> = (0..50).map(|_| namespace("wide")).collect();
    let set = Set::secret(&home, "web");
    let objects = of_twenty_kinds(&names);
    let discovery = [(2, "discover"), (1, "list all namespaces everywhere")];
    let reads = [&discovery[..], &[(20, "list members everywhere")]].concat();

    let first = sent_with(&set, "apply", &objects);

    let (writes, first): (Vec<Sent>, Vec<Sent>) = first
        .into_iter()
        .partition(|sent| sort(sent).starts_with("patch "));
    assert_eq!(writes.len(), objects.len());
    let more = [
        (1, "get secrets"),
        (20, "list members of any set everywhere"),
        (20, "list members everywhere"),
        (1, "create selfsubjectaccessreviews"),
        (1, "create selfsubjectreviews"),
        // The beginning and the end of the run.
        (2, "record on secrets"),
    ];
    assert_cost(&first, &[&discovery[..], &more].concat());

    let unchanged = sent_with(&set, "apply", &objects);

    assert_cost(&unchanged, &[&reads[..], &[(1, "get secrets")]].concat());

    let dropped = sent_with(&set, "apply", &objects[1..]);

    // Kind and namespace have other members, so the record stays as it is. The members are read again before the delete.
    let more = [
        (2, "get secrets"),
        (40, "list members everywhere"),
        (1, "create selfsubjectaccessreviews"),
        (1, "delete configmaps"),
        (1, "create selfsubjectreviews"),
        // The beginning and the end of the run.
        (2, "record on secrets"),
    ];
    assert_cost(&dropped, &[&discovery[..], &more].concat());
}

/// Objects of twenty kinds, spread over these namespaces.
fn of_twenty_kinds(names: &[String]) -> Vec<Value> {
    let kinds = twenty_kinds();
    assert_eq!(kinds.len(), 20);
    names
        .iter()
        .enumerate()
        .flat_map(|(place, name)| {
            [2 * place, 2 * place + 1].map(|number| {
                let metadata = json!({"metadata": {"namespace": name, "name": "one"}});
                with(kinds[number % kinds.len()].clone(), &metadata)
            })
        })
        .collect()
}

fn twenty_kinds() -> Vec<Value> {
    let workload = |kind: &str, more: Value| {
        let spec = json!({
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "app", "image": "app"}]},
            },
        });
        with(
            with(named("apps/v1", kind, None, "one"), &json!({"spec": spec})),
            &more,
        )
    };
    let object =
        |api_version: &str, kind: &str, more: Value| with(named(api_version, kind, None, "one"), &more);
    let pods = json!({"spec": {"containers": [{"name": "app", "image": "app"}]}});
    let job = with(pods.clone(), &json!({"spec": {"restartPolicy": "Never"}}));
    vec![
        config_map("", "one", "1"),
        secret("", "one"),
        service("", "one", 80),
        deployment("", "one", 0),
        workload("DaemonSet", json!({})),
        workload("ReplicaSet", json!({})),
        workload("StatefulSet", json!({"spec": {"serviceName": "web"}})),
        object("v1", "ServiceAccount", json!({})),
        object("v1", "PodTemplate", json!({"template": pods})),
        object(
            "v1",
            "LimitRange",
            json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}),
        ),
        object(
            "v1",
            "PersistentVolumeClaim",
            json!({"spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            }}),
        ),
        object(
            "batch/v1",
            "CronJob",
            json!({"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": job}}}}),
        ),
        object(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({"spec": {
                "maxReplicas": 2,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            }}),
        ),
        object(
            "policy/v1",
            "PodDisruptionBudget",
            json!({"spec": {"minAvailable": 1}}),
        ),
        object(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({"spec": {"podSelector": {}}}),
        ),
        object(
            "networking.k8s.io/v1",
            "Ingress",
            json!({"spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}}),
        ),
        object("rbac.authorization.k8s.io/v1", "Role", json!({"rules": []})),
        object(
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"}}),
        ),
        object(
            "coordination.k8s.io/v1",
            "Lease",
            json!({"spec": {"holderIdentity": "web"}}),
        ),
        object(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            json!({"addressType": "IPv4", "endpoints": []}),
        ),
    ]
}
