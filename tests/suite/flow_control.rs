//! A server that gives this user a few seats and a queue for one request, and rejects all others (API
//! Priority and Fairness).

use http::Method;
use serde_json::{Value, json};

use crate::support::{
    Fault, Files, OwnControlPlane, Program, Proxy, Sent, Set, cluster, config_map, eventually, fresh, named,
    namespace, objects_file, with,
};

/// More objects than a run has requests in flight.
const OBJECTS: usize = 64;

/// Lets the user in, and gives this user few seats.
fn limit(user: &str) {
    let group = "flowcontrol.apiserver.k8s.io/v1";
    let queuing = json!({"queues": 1, "handSize": 1, "queueLengthLimit": 1});
    let seats = json!({
        "nominalConcurrencyShares": 1,
        "lendablePercent": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Queue", "queuing": queuing},
    });
    let level = named(group, "PriorityLevelConfiguration", None, user);
    cluster().create(&with(
        level,
        &json!({"spec": {"type": "Limited", "limited": seats}}),
    ));
    let subject = json!({"kind": "User", "user": {"name": user}});
    let everything = json!({
        "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true,
    });
    let urls = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
    let schema = named(group, "FlowSchema", None, user);
    cluster().create(&with(
        schema,
        &json!({"spec": {
            "matchingPrecedence": 50,
            "priorityLevelConfiguration": {"name": user},
            "rules": [{
                "subjects": [subject], "resourceRules": [everything], "nonResourceRules": [urls],
            }],
        }}),
    ));
    let group = "rbac.authorization.k8s.io";
    cluster().create(&with(
        named(&format!("{group}/v1"), "ClusterRoleBinding", None, user),
        &json!({
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        }),
    ));
}

/// How many requests of this level the server has counted in this metric.
fn counted(metric: &str, level: &str) -> f64 {
    let metrics = cluster().text("/metrics");
    let level = format!("priority_level=\"{level}\"");
    let lines = metrics
        .lines()
        .filter(|line| line.starts_with(metric) && line.contains(&level));
    lines
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
        .sum()
}

#[test]
fn rejected_requests_are_sent_again_until_there_is_a_seat() {
    let _own = OwnControlPlane::start();
    let home = namespace("home");
    let user = fresh("limited");
    limit(&user);
    let as_user = ["--as", &user];
    eventually("the user has seats of its own", || {
        Program::new()
            .args(["list", "-n", &home])
            .args(as_user)
            .run()
            .expect(0);
        (counted("apiserver_flowcontrol_dispatched_requests_total", &user) > 0.0).then_some(())
    });
    let set = Set::secret(&home, "web");
    let objects: Vec<Value> = (0..OBJECTS)
        .map(|number| config_map(&home, &format!("one-{number}"), "1"))
        .collect();

    let run = set.apply_with(&objects, &as_user).expect(0);

    assert_eq!(run.results("created").len(), OBJECTS);
    let rejected = counted("apiserver_flowcontrol_rejected_requests_total", &user);
    assert!(rejected > 0.0, "the server had a seat for each request");
    set.delete(&as_user).expect(0);
    assert!(cluster().members(&set.id).is_empty());
}

/// Returns whether it writes the object for which the server has no seat.
fn is_rejected(sent: &Sent) -> bool {
    sent.method == Method::PATCH && sent.path.contains("/configmaps/two")
}

#[test]
fn a_run_that_is_interrupted_does_not_wait_for_a_seat() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = ["one", "two"].map(|name| config_map(&home, name, "1"));
    let proxy = Proxy::breaking(Fault::TooManyRequestsRetryAfter, is_rejected);
    let files = Files::new().with("objects.yaml", &objects_file(&objects));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());
    let mut running = set.command(program, &files).start();
    let rejected = || proxy.sent().iter().filter(|sent| is_rejected(sent)).count();
    eventually("a rejected write", || (rejected() > 0).then_some(()));
    running.interrupt();
    running.wait_for_message("stopping");
    let before = rejected();
    running.finish().expect(130);
    // One may have been under way.
    assert!(rejected() <= before + 1, "{before} to {}", rejected());
    assert_eq!(set.unrecorded(), Vec::<String>::new());
    set.apply(&objects);
    set.assert_holds(&objects);
}

#[test]
fn a_run_says_that_it_waits_for_the_server_before_it_has_written_anything() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let proxy = Proxy::breaking(Fault::TooManyRequestsRetryAfter, |sent| sent.number < 20);
    let files = Files::new().with("objects.yaml", &objects_file(&[config_map(&home, "one", "1")]));
    let program = Program::with_kubeconfig(&proxy.kubeconfig());

    let run = set.command(program, &files).run();

    assert_eq!(run.code, 0, "{}", run.stderr);
    let notes = run.stderr.matches("does not accept requests").count();
    assert_eq!(notes, 1, "{}", run.stderr);
}
