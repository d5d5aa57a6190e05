//! When objects are ready, and which rule says so. The tests play the controllers and write the
//! statuses.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

use crate::support::{
    Files, Program, Proxy, Run, Sent, Set, Verdict, Watch, cluster, config_map, custom_resource, definition,
    deployment, fresh, named, namespace, objects_file, with,
};

/// A kind of its own, with the subresource `status` and any fields in it.
fn reporting_definition(group: &str) -> Value {
    let mut definition = definition(group, "Namespaced");
    let version = &mut definition["spec"]["versions"][0];
    version["subresources"] = json!({"status": {}});
    version["schema"]["openAPIV3Schema"]["x-kubernetes-preserve-unknown-fields"] = json!(true);
    definition
}

/// Widgets of a new kind that the server serves.
fn widgets<const N: usize>(home: &str, names: [&str; N]) -> [Value; N] {
    let group = format!("{}.example.com", fresh("g"));
    cluster().define(&reporting_definition(&group));
    names.map(|name| custom_resource(&group, Some(home), name))
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": format!("about {kind}")})
}

/// Name, status, reason and rule of each member.
fn viewed(set: &Set, flags: &[&str]) -> Vec<[String; 4]> {
    let run = set.invoke("view", flags).expect(0);
    let document = run.document();
    let members = document["members"].as_array().expect("a list").iter();
    let fields = ["name", "status", "reason", "rule"];
    let text = |member: &Value, field: &str| member[field].as_str().unwrap_or_default().to_owned();
    members
        .map(|member| fields.map(|field| text(member, field)))
        .collect()
}

#[track_caller]
fn assert_waits_for(run: &Run, name: &str, reason: &str) {
    let document = run.document();
    let waiting = document["waiting"].as_array().expect("a list");
    let entry = waiting.iter().find(|entry| entry["name"] == name);
    let entry = entry.unwrap_or_else(|| panic!("no {name} in {waiting:?}"));
    let found = entry["reason"].as_str().unwrap_or_default();
    assert!(found.contains(reason), "{found}");
}

#[test]
fn custom_resources_are_judged_by_what_their_controllers_write() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = widgets(&home, ["bad", "good", "late", "quiet", "rests", "wrong"]);
    set.apply(&objects);
    let [bad, good, late, _, rests, wrong] = &objects;
    let conditions = |list: &[Value]| json!({"conditions": list});
    let ready = condition("Ready", "True", "Ok");
    for (object, status) in [
        (
            bad,
            conditions(&[ready.clone(), condition("Degraded", "True", "NoQuorum")]),
        ),
        (
            good,
            json!({"observedGeneration": "1", "conditions": [ready.clone()]}),
        ),
        (late, json!({"observedGeneration": "0", "conditions": [ready]})),
        (rests, json!({"phase": "Paused"})),
        (wrong, json!({"state": "Failed"})),
    ] {
        cluster().patch_status(object, &status);
    }

    let found = viewed(&set, &[]);
    let conventions = "API conventions";
    for (name, status, reason, rule) in [
        ("bad", "InProgress", "NoQuorum: about Degraded", conventions),
        ("good", "Current", "Ready is True", conventions),
        ("late", "InProgress", "generation 0 of 1", "rule for all kinds"),
        ("quiet", "InProgress", "others of its kind", conventions),
        ("rests", "Current", "Paused", conventions),
        ("wrong", "Failed", "Failed", conventions),
    ] {
        let member = found.iter().find(|member| member[0] == name).expect("a member");
        assert_eq!(member[1], status, "{member:?}");
        assert!(member[2].contains(reason), "{member:?}");
        assert_eq!(member[3], rule, "{member:?}");
    }
    let run = set.invocation(Program::new(), "view", &["-v"]).run().expect(0);
    assert!(
        run.stdout
            .contains("its condition Ready is True [API conventions]"),
        "{}",
        run.stdout
    );

    // What will not heal ends the wait.
    let run = set.apply_with(&objects, &["--wait=0"]).expect(1);
    assert_waits_for(&run, "wrong", "Failed");
}

#[test]
fn rules_of_ones_own_come_first() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [widget] = widgets(&home, ["a"]);
    let group = widget["apiVersion"]
        .as_str()
        .expect("one")
        .split('/')
        .next()
        .expect("a group");
    let rules = format!(
        "healthCheckExprs:\n- apiVersion: {group}/v9\n  failed: status.broken\n  current: status.done == 2\n"
    );
    let files = Files::new().with("objects.yaml", &objects_file(std::slice::from_ref(&widget)));
    let own = Files::new()
        .with("rules.yaml", &rules)
        .with("wrong.yaml", &rules.replace("status.broken", "broken("));
    let apply = |rules: &str, wait: &str| {
        let rules = own.path(rules);
        let flags = [wait, "--wait-rules", rules.to_str().expect("UTF-8"), "-o", "json"];
        set.command(Program::new(), &files).args(flags).run()
    };
    let run = apply("wrong.yaml", "--wait").expect(2);
    assert!(run.stderr.contains("wrong.yaml:2: failed: "), "{}", run.stderr);
    assert_eq!(set.live_parent(), None);
    apply("missing.yaml", "--wait").expect(2);

    let run = apply("rules.yaml", "--wait=1s").expect(1);
    assert_waits_for(&run, "a", "status is missing, in its rule failed: status.broken");
    // Current by the conventions, and not by the rule.
    let ready = condition("Ready", "True", "Ok");
    cluster().patch_status(
        &widget,
        &json!({"broken": false, "done": 1, "conditions": [ready]}),
    );
    let run = apply("rules.yaml", "--wait=1s").expect(1);
    assert_waits_for(&run, "a", "not Current by its rule yet: status.done == 2");
    cluster().patch_status(&widget, &json!({"done": 2}));
    apply("rules.yaml", "--wait=0").expect(0);
    let rules = own.path("rules.yaml");
    let rules = rules.to_str().expect("UTF-8");
    assert_eq!(viewed(&set, &["--wait-rules", rules])[0][3], format!("{rules}:2"));
    cluster().patch_status(&widget, &json!({"broken": true}));
    apply("rules.yaml", "--wait=0").expect(1);
    set.apply_with(std::slice::from_ref(&widget), &["--wait=0"])
        .expect(0);
}

#[test]
fn an_object_that_says_nothing_is_given_time() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [one, other] = widgets(&home, ["one", "other"]);
    let objects = [one.clone(), other];
    // Both are young.
    let run = set.apply_with(&objects, &["--wait=1s"]).expect(1);
    assert_waits_for(&run, "one", "it has no status yet");
    // An hour later they are not expected to get one.
    let later = Proxy::watched(Arc::new(Later));
    let run = set.apply_through(&later, &objects, &["--wait=0"]).expect(0);
    assert_eq!(run.document()["waiting"], json!([]));
    // Unless a controller is at work.
    cluster().patch_status(&one, &json!({"phase": "Ready"}));
    let run = set.apply_through(&later, &objects, &["--wait=1s"]).expect(1);
    assert_waits_for(&run, "other", "as others of its kind have");
    // A kind without the subresource never gets a status.
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "silent");
    let silent = [
        definition(&group, "Namespaced"),
        custom_resource(&group, Some(&home), "a"),
    ];
    set.apply_with(&silent, &["--wait=0"]).expect(0);
    assert!(
        viewed(&set, &[])
            .iter()
            .any(|member| member[3] == "nothing reports its health")
    );
}

/// A server whose clock is an hour ahead.
struct Later;

impl Watch for Later {
    fn before(&self, _: &Sent, _: usize) -> Verdict {
        Verdict::Forward
    }

    fn after(&self, _: &Sent, mut answer: Response<Bytes>) -> Response<Bytes> {
        let date = HeaderValue::from_static("Sun, 06 Nov 2050 08:49:37 GMT");
        answer.headers_mut().insert(header::DATE, date);
        answer
    }
}

#[test]
fn annotations_of_other_tools_exempt_objects() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let [argo, kapp] = widgets(&home, ["argo", "kapp"]);
    let annotated = |object: Value, name: &str, value: &str| {
        with(object, &json!({"metadata": {"annotations": {name: value}}}))
    };
    let objects = [
        annotated(argo, "argocd.argoproj.io/ignore-healthcheck", "true"),
        annotated(kapp, "kapp.k14s.io/disable-wait", ""),
        annotated(
            deployment(&home, "web", 1),
            "argocd.argoproj.io/ignore-healthcheck",
            "true",
        ),
    ];
    set.apply_with(&objects, &["--wait=0"]).expect(0);
    let found = viewed(&set, &[]);
    assert!(
        found.iter().all(|member| member[3].starts_with("annotation ")),
        "{found:?}"
    );
}

#[test]
fn jobs_are_waited_for_until_they_have_completed() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let job = with(
        named("batch/v1", "Job", Some(&home), "migrate"),
        &json!({"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "app", "image": "app"}],
        }}}}),
    );
    let objects = [job.clone()];
    set.apply(&objects);
    cluster().patch_status(&job, &json!({"startTime": "2026-01-01T00:00:00Z", "active": 1}));
    set.apply_with(&objects, &["--wait=0"]).expect(0);
    let run = set
        .apply_with(&objects, &["--wait=1s", "--wait-for-jobs"])
        .expect(1);
    assert_waits_for(&run, "migrate", "it is running: 1 active, 0 of 1");
    let done = json!({
        "active": 0, "succeeded": 1, "completionTime": "2026-01-01T00:01:00Z",
        "conditions": [
            {"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"},
        ],
    });
    cluster().patch_status(&job, &done);
    set.apply_with(&objects, &["--wait=0", "--wait-for-jobs"])
        .expect(0);
    // Without --wait it means nothing.
    set.apply_with(&objects, &["--wait-for-jobs"]).expect(2);
}

/// Nodes that have logs.
struct Logs;

impl Watch for Logs {
    fn before(&self, _: &Sent, _: usize) -> Verdict {
        Verdict::Forward
    }

    fn after(&self, sent: &Sent, mut answer: Response<Bytes>) -> Response<Bytes> {
        if sent.path.contains("/log?") {
            // A container that waits to be started again has a log of its last run.
            let is_previous = sent.path.contains("previous=true");
            assert!(is_previous == sent.path.contains("/web-1/") && sent.path.contains("container=app"));
            *answer.status_mut() = StatusCode::OK;
            answer.headers_mut().remove(header::CONTENT_LENGTH);
            *answer.body_mut() = Bytes::from_static(b"starting\npanic: no such table\n");
        }
        answer
    }
}

#[test]
fn the_end_of_a_log_is_part_of_the_reason() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let web = deployment(&home, "web", 1);
    let pod = with(
        named("v1", "Pod", Some(&home), "web-1"),
        &json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "app"}]},
        }),
    );
    cluster().create(&pod);
    cluster().crash_pod(&pod, 3, &json!({"exitCode": 2, "reason": "Error"}));
    let objects = [web, config_map(&home, "one", "1")];
    let run = set
        .apply_through(&Proxy::watched(Arc::new(Logs)), &objects, &["--wait=1s"])
        .expect(1);
    assert_waits_for(&run, "web", "CrashLoopBackOff");
    assert_waits_for(
        &run,
        "web",
        "log of container app: starting | panic: no such table",
    );
    // Where there is none, the rest of the reason is still there.
    let run = set.apply_with(&objects, &["--wait=1s"]).expect(1);
    assert_waits_for(&run, "web", "CrashLoopBackOff");
}

#[test]
fn the_end_of_a_log_is_part_of_the_reason_of_a_failed_job() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let job = with(
        named("batch/v1", "Job", Some(&home), "migrate"),
        &json!({"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "app", "image": "app"}],
        }}}}),
    );
    let objects = [job.clone()];
    let live = {
        set.apply(&objects);
        cluster().live(&job).expect("a Job")
    };
    let pod = with(
        named("v1", "Pod", Some(&home), "migrate-1"),
        &json!({
            "metadata": {"labels": live["spec"]["selector"]["matchLabels"]},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "app", "image": "app"}]},
        }),
    );
    cluster().create(&pod);
    let container = json!({
        "name": "app", "image": "app", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 1, "reason": "Error"}},
    });
    cluster().patch_status(
        &pod,
        &json!({"phase": "Failed", "containerStatuses": [container]}),
    );
    let failed = json!([
        {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"},
        {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"},
    ]);
    cluster().patch_status(
        &job,
        &json!({"startTime": "2026-01-01T00:00:00Z", "failed": 1, "conditions": failed}),
    );
    let run = set
        .apply_through(&Proxy::watched(Arc::new(Logs)), &objects, &["--wait=0"])
        .expect(1);
    assert_waits_for(&run, "migrate", "too often");
    assert_waits_for(
        &run,
        "migrate",
        "log of container app: starting | panic: no such table",
    );
    let run = set.apply_with(&objects, &["--wait=0"]).expect(1);
    assert_waits_for(&run, "migrate", "too often");
}
