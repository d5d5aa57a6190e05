//! A definition and objects of its kind change in one run: what the former schema refuses is sent again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::support::{
    Proxy, Sent, Set, Verdict, Watch, cluster, custom_resource, definition, fresh, identities, namespace,
    with,
};

/// A definition with a schema that takes the server a while to read.
fn large_definition(group: &str, more: &Value) -> Value {
    let field = |number: usize| {
        let text =
            json!({"type": "string", "description": "A field that makes the schema large. ".repeat(5)});
        let inner: Map<String, Value> = (0..10)
            .map(|inner| (format!("inner{inner}"), text.clone()))
            .collect();
        (
            format!("field{number}"),
            json!({"type": "object", "properties": inner}),
        )
    };
    let mut definition = definition(group, "Namespaced");
    let spec = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let properties = spec["properties"].as_object_mut().expect("properties");
    properties.extend((0..150).map(field));
    properties.extend(more.as_object().expect("properties").clone());
    definition
}

fn former(group: &str) -> Value {
    large_definition(
        group,
        &json!({
            "names": {"type": "array", "items": {"type": "string"}},
            "ports": {"type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer"}}}},
        }),
    )
}

fn new(group: &str) -> Value {
    large_definition(
        group,
        &json!({
            "extra": {"type": "object", "properties": {"name": {"type": "string"}}},
            "names": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "ports": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port"],
                "items": {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}}},
            },
        }),
    )
}

fn objects(group: &str, home: &str, spec: &Value) -> Vec<Value> {
    let object = |number: usize| custom_resource(group, Some(home), &format!("one-{number}"));
    (0..3)
        .map(|number| with(object(number), &json!({"spec": spec})))
        .collect()
}

fn all(definition: Value, objects: &[Value]) -> Vec<Value> {
    [&[definition], objects].concat()
}

#[test]
fn one_run_is_enough_for_a_new_field() {
    for round in 0..2 {
        let home = namespace("home");
        let group = format!("{}.example.com", fresh("g"));
        let set = Set::secret(&home, "web");
        let before = objects(&group, &home, &json!({"size": 1}));
        set.apply(&all(former(&group), &before));
        let after = objects(&group, &home, &json!({"extra": {"name": "a"}}));
        let next = all(new(&group), &after);

        let run = set.apply(&next);

        assert_eq!(run.results("failed"), Vec::<String>::new(), "round {round}");
        let settled = cluster().state(&[&home]);
        let run = set.apply(&next);
        assert_eq!(
            run.results("unchanged"),
            identities(&next),
            "round {round}: {}",
            run.stdout
        );
        assert_eq!(cluster().state(&[&home]), settled, "round {round}");
    }
}

/// Answers as a server does that has not heard of the new schema: refuses so many applies of objects of the kind.
struct Deaf(AtomicUsize);

impl Deaf {
    fn refuses(&self, sent: &Sent) -> bool {
        if sent.method != Method::PATCH || !sent.path.contains("/widgets/") {
            return false;
        }
        let count = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        count.is_ok()
    }
}

impl Watch for Deaf {
    fn before(&self, _: &Sent, _: usize) -> Verdict {
        Verdict::Forward
    }

    fn after(&self, sent: &Sent, answer: Response<Bytes>) -> Response<Bytes> {
        if !self.refuses(sent) {
            return answer;
        }
        let message = "failed to create typed patch object (home/one; g/v1, Kind=Widget): \
                       .spec.extra: field not declared in schema";
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "code": 500,
        });
        let mut refusal = Response::new(Bytes::from(status.to_string()));
        *refusal.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        refusal
    }
}

#[test]
fn objects_are_applied_again_until_the_server_has_heard_of_the_new_schema() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    set.apply(&all(former(&group), &objects(&group, &home, &json!({"size": 1}))));
    let deaf = Arc::new(Deaf(AtomicUsize::new(12)));
    let proxy = Proxy::watched(Arc::clone(&deaf) as Arc<dyn Watch>);
    let next = all(
        new(&group),
        &objects(&group, &home, &json!({"extra": {"name": "a"}})),
    );

    set.apply_through(&proxy, &next, &[]).expect(0);

    assert_eq!(deaf.0.load(Ordering::SeqCst), 0);
    assert_eq!(set.apply(&next).results("unchanged"), identities(&next));
}

#[test]
fn a_field_that_the_new_schema_lacks_too_fails() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    set.apply(&all(former(&group), &objects(&group, &home, &json!({"size": 1}))));
    let wrong = objects(&group, &home, &json!({"extra": {"nane": "a"}}));
    let run = set.apply_with(&all(new(&group), &wrong), &[]).expect(1);
    assert_eq!(run.results("failed"), identities(&wrong));
}

#[test]
fn dry_runs_and_diff_predict_what_only_the_new_schema_takes() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    set.apply(&all(former(&group), &objects(&group, &home, &json!({"size": 1}))));
    let changed = objects(&group, &home, &json!({"size": 1, "extra": {"name": "x"}}));
    let all = all(new(&group), &changed);
    let before = cluster().state(&[&home]);
    let run = set.apply_with(&all, &["--dry-run=server"]).expect(0);
    assert_eq!(run.results("configured"), identities(&all), "{}", run.stdout);
    let files = crate::support::Files::new().with("objects.yaml", &crate::support::objects_file(&all));
    let run = set
        .invocation(crate::support::Program::new(), "diff", &["-o", "json", "-f"])
        .args([files.directory()])
        .run()
        .expect(1);
    assert_eq!(run.document()["summary"]["failed"], 0, "{}", run.stdout);
    assert_eq!(cluster().state(&[&home]), before);
    let run = set.apply(&all);
    assert_eq!(run.results("configured"), identities(&all));
}

#[test]
fn a_dry_run_reads_a_definition_that_grows_once_for_all_its_objects() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::secret(&home, "web");
    let objects = |spec: Value| {
        let object = |number: usize| custom_resource(&group, Some(&home), &format!("one-{number}"));
        (0..40)
            .map(|number| with(object(number), &json!({"spec": spec})))
            .collect::<Vec<_>>()
    };
    set.apply(&all(former(&group), &objects(json!({"size": 1}))));
    let changed = all(new(&group), &objects(json!({"size": 1, "extra": {"name": "x"}})));

    let proxy = Proxy::transparent();
    let run = set
        .apply_through(&proxy, &changed, &["--dry-run=server"])
        .expect(0);

    assert_eq!(run.results("configured"), identities(&changed), "{}", run.stdout);
    let sent = proxy.sent();
    let count = |method: Method, path: &str| {
        let is_it = |sent: &&Sent| sent.method == method && sent.path.contains(path);
        sent.iter().filter(is_it).count()
    };
    assert_eq!(count(Method::PATCH, "/customresourcedefinitions/"), 1);
    // For the comparison, for its own prediction, and once for the predictions of all objects.
    assert_eq!(count(Method::GET, "/customresourcedefinitions/"), 3);
    assert_eq!(count(Method::GET, "/widgets/one-"), 40);
}
