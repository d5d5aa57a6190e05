//! `diff --dry-run=client` predicts from reads alone what the dry runs of the server show.

use controlplane::Grant;
use http::Method;
use serde_json::{Value, json};

use super::super::rights::{grant_what_is_printed_with, rule, user};
use super::{command, diff_by, files, outcome, result};
use crate::support::{
    Files, Program, Proxy, Run, Set, cluster, config_map, custom_resource, definition, deployment, fresh,
    identities, kubectl_apply, named, namespace, objects_file, secret, service, with,
};

const CLIENT: [&str; 3] = ["--dry-run=client", "-o", "json"];

fn with_containers(object: Value, containers: &Value) -> Value {
    let selector = json!({"app": "web"});
    with(
        object,
        &json!({"spec": {"selector": {"matchLabels": selector}, "template": {
            "metadata": {"labels": selector}, "spec": {"containers": containers},
        }}}),
    )
}

/// What the server predicts for these objects, and what the client predicts.
fn predictions(set: &Set, objects: &[Value]) -> [Run; 2] {
    let files = files(objects);
    [&["-o", "json"][..], &CLIENT]
        .map(|flags| command(Program::new(), set, &files).args(flags).run().expect(1))
}

/// The parts of a result that the client can know: the action, each changed field, and the fields in conflict.
fn known_parts(run: &Run, object: &Value) -> Value {
    let result = result(run, object["metadata"]["name"].as_str().expect("a name"));
    json!([
        result["action"],
        result["changes"],
        result["drift"],
        result["error"]
    ])
}

/// Where the objects of a test live.
struct Place {
    home: String,
    group: String,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            home: namespace("home"),
            group: format!("{}.example.com", fresh("g")),
        };
        let mut crd = definition(&place.group, "Namespaced");
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = json!({
            "size": {"type": "integer", "default": 7},
            "rules": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                "items": {"type": "object", "required": ["id"], "properties": {
                    "id": {"type": "string"}, "weight": {"type": "integer", "default": 1}}}},
        });
        cluster().define(&crd);
        place
    }

    fn object(&self, api_version: &str, kind: &str, name: &str, fields: &Value) -> Value {
        with(named(api_version, kind, Some(&self.home), name), fields)
    }

    fn data(&self, name: &str, data: &Value) -> Value {
        self.object("v1", "ConfigMap", name, &json!({"data": data}))
    }

    fn workload(&self, name: &str, containers: &Value) -> Value {
        with_containers(self.object("apps/v1", "Deployment", name, &json!({})), containers)
    }

    fn custom(&self, name: &str, spec: &Value) -> Value {
        self.object(
            &format!("{}/v1", self.group),
            "Widget",
            name,
            &json!({"spec": spec}),
        )
    }

    /// Changes of lists with keys.
    fn changed_lists(&self) -> Vec<Row> {
        let web = |image: &str| json!({"name": "web", "image": image, "env": [{"name": "A", "value": "1"}]});
        let log = || json!({"name": "log", "image": "log"});
        let port = |port: u32, target: u32| json!({"name": format!("p{port}"), "port": port, "protocol": "TCP", "targetPort": target});
        let service = |name: &str, ports: &Value| {
            let fields = json!({"spec": {"selector": {"app": "web"}, "ports": ports}});
            self.object("v1", "Service", name, &fields)
        };
        let workload = |name: &str, containers: &Value| self.workload(name, containers);
        let custom = |name: &str, rules: &Value| self.custom(name, &json!({"rules": rules}));
        let two = || json!([web("1"), log()]);
        vec![
            row("image", workload, [two(), json!([web("2"), log()])]),
            row("container-removed", workload, [two(), json!([web("1")])]),
            row(
                "containers-reordered",
                workload,
                [two(), json!([log(), web("1")])],
            ),
            row(
                "container-in-conflict",
                workload,
                [json!([web("1")]), json!([web("2")])],
            ),
            row(
                "port-changed",
                service,
                [json!([port(80, 80)]), json!([port(80, 81)])],
            ),
            row(
                "port-removed",
                service,
                [json!([port(80, 80), port(81, 81)]), json!([port(80, 80)])],
            ),
            row(
                "custom-items",
                custom,
                [
                    json!([{"id": "a"}, {"id": "b", "weight": 2}]),
                    json!([{"id": "c"}, {"id": "b", "weight": 3}]),
                ],
            ),
        ]
    }

    /// Changes of maps and single fields.
    fn changed_fields(&self) -> Vec<Row> {
        let data = |name: &str, data: &Value| self.data(name, data);
        let custom = |name: &str, spec: &Value| self.custom(name, spec);
        let secret =
            |name: &str, values: &Value| self.object("v1", "Secret", name, &json!({"stringData": values}));
        let rules = || json!([{"id": "a"}]);
        vec![
            row(
                "key-changed-and-added",
                data,
                [json!({"a": "1"}), json!({"a": "2", "b": "1"})],
            ),
            row(
                "key-removed",
                data,
                [json!({"a": "1", "b": "1"}), json!({"a": "1"})],
            ),
            row("all-keys-removed", data, [json!({"a": "1"}), json!({})]),
            row(
                "key-of-another-owner",
                data,
                [json!({"a": "1"}), json!({"a": "2"})],
            ),
            row(
                "shared-key-removed",
                data,
                [json!({"a": "1", "s": "1"}), json!({"a": "1"})],
            ),
            row("key-in-conflict", data, [json!({"a": "1"}), json!({"a": "2"})]),
            row("same", data, [json!({"a": "1"}), json!({"a": "1"})]),
            row("secret", secret, [json!({"a": "1", "b": "1"}), json!({"a": "2"})]),
            row("custom-field", custom, [json!({"size": 1}), json!({"size": 2})]),
            row(
                "custom-default",
                custom,
                [json!({"size": 1, "rules": rules()}), json!({"rules": rules()})],
            ),
        ]
    }
}

/// An object before and after a change.
type Row = [Value; 2];

/// The object of this name that `make` makes of each content. The name says what changes.
fn row(name: &str, make: impl Fn(&str, &Value) -> Value, contents: [Value; 2]) -> Row {
    contents.map(|content| make(name, &content))
}

#[test]
fn the_client_predicts_what_the_server_predicts() {
    let place = Place::new();
    let set = Set::secret(&place.home, "web");
    let rows = [place.changed_lists(), place.changed_fields()].concat();
    let [mut before, mut after] =
        [0, 1].map(|state| rows.iter().map(|row| row[state].clone()).collect::<Vec<_>>());
    let leaving = config_map(&place.home, "leaving", "1");
    before.push(leaving.clone());
    set.apply(&before);
    for (name, fields) in [
        ("key-of-another-owner", json!({"theirs": "1"})),
        ("shared-key-removed", json!({"s": "1"})),
        ("key-in-conflict", json!({"a": "3"})),
    ] {
        cluster().apply_as("other", &place.data(name, &fields));
    }
    cluster().apply_as(
        "other",
        &place.workload("container-in-conflict", &json!([{"name": "web", "image": "3"}])),
    );
    // Objects that join the set, one of them from client-side apply.
    kubectl_apply(&[place.data("by-client", &json!({"a": "1", "b": "1"}))], &[]);
    cluster().create(&place.data("made", &json!({"a": "1"})));
    after.extend([
        place.data("by-client", &json!({"a": "2"})),
        place.data("made", &json!({"a": "1"})),
        config_map(&place.home, "new", "1"),
    ]);

    let [server, client] = predictions(&set, &after);

    for object in after.iter().chain([&leaving]) {
        let [expected, found] = [&server, &client].map(|run| known_parts(run, object));
        assert_eq!(found, expected, "{object}");
    }
    assert_eq!(outcome(&client), outcome(&server));
    let [of_client, of_server] = [&client, &server].map(Run::document);
    for field in ["summary", "record", "refusals"] {
        assert_eq!(of_client[field], of_server[field], "{field}");
    }
    for (field, expected) in [
        ("validatedByServer", [json!(false), json!(true)]),
        ("dryRun", [json!("client"), json!("server")]),
    ] {
        assert_eq!(
            [&of_client[field], &of_server[field]],
            [&expected[0], &expected[1]]
        );
    }
    assert!(
        client.stderr.contains("note: not validated by the server"),
        "{}",
        client.stderr
    );
    assert!(
        !client.stdout.contains("MQ==") && !client.stdout.contains("Mg=="),
        "a value of a Secret"
    );
}

#[test]
fn only_reads_are_sent_and_reading_is_enough() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("g"));
    let set = Set::config_map(&home, "web");
    let crd = definition(&group, "Namespaced");
    cluster().define(&crd);
    let parent = |value: &str| with(set.parent.clone(), &json!({"data": {"a": value}}));
    let before = [
        parent("1"),
        config_map(&home, "one", "1"),
        secret(&home, "two"),
        service(&home, "three", 80),
        custom_resource(&group, Some(&home), "four"),
    ];
    let mut after = before.clone();
    after[0] = parent("2");
    after[1] = config_map(&home, "one", "2");
    after[4]["spec"]["size"] = json!(2);
    set.apply(&before);
    // One of them is pruned.
    let after = [&after[..2], &after[3..]].concat();
    let reader = user(&[]);
    let compare = |program: Program, flags: &[&str]| diff_by(program, &set, &after, flags);
    let as_reader = || Program::with_kubeconfig(&reader.kubeconfig);
    compare(as_reader(), &CLIENT).expect(4);

    grant_what_is_printed_with(&["--read-only"], &reader, &set, &before);

    let by_server = compare(Program::new(), &[]).expect(1);
    let by_reader = compare(as_reader(), &["--dry-run=client"]).expect(1);
    assert_eq!(by_reader.stdout, by_server.stdout);
    let forbidden = compare(as_reader(), &[]).expect(4);
    assert!(
        forbidden.stderr.contains("--dry-run=client"),
        "{}",
        forbidden.stderr
    );
    let proxy = Proxy::transparent();
    let through_proxy = compare(
        Program::with_kubeconfig(&proxy.kubeconfig()),
        &["--dry-run=client"],
    )
    .expect(1);
    assert_eq!(through_proxy.stdout, by_server.stdout);
    let others: Vec<String> = proxy
        .sent()
        .iter()
        .filter(|sent| sent.method != Method::GET)
        .map(|sent| format!("{} {}", sent.method, sent.path))
        .collect();
    assert_eq!(others, [""; 0]);
    set.assert_holds(&before[1..]);
}

#[test]
fn a_missing_permission_to_read_an_object_is_no_difference() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    set.apply(&[config_map(&home, "one", "1")]);
    let rules = [
        rule("", "configmaps", &["list"]),
        rule("", "secrets", &["get"]),
        rule("", "namespaces", &["get"]),
    ];
    let reader = user(&[Grant::in_namespace(&home, rules)]);
    let changed = [config_map(&home, "one", "2")];
    let run = diff_by(
        Program::with_kubeconfig(&reader.kubeconfig),
        &set,
        &changed,
        &CLIENT,
    )
    .expect(4);
    let error = run.document()["error"].clone();
    let message = error["message"].as_str().expect("a message");
    assert!(
        message.starts_with("configmap/one in namespace ") && message.contains("cannot get resource"),
        "{message}"
    );
    assert!(
        error["hints"][0]
            .as_str()
            .is_some_and(|hint| hint.contains("--read-only")),
        "{error}"
    );
}

#[test]
fn what_does_not_exist_yet_or_is_refused_is_predicted_as_ever() {
    let home = namespace("home");
    let away = fresh("away");
    let other = Set::secret(&home, "other");
    let set = Set::secret(&home, "web");
    let taken = config_map(&home, "taken", "1");
    other.apply(std::slice::from_ref(&taken));
    let objects = [
        super::namespace_object(&away),
        config_map(&away, "one", "1"),
        config_map(&home, "two", "1"),
        taken,
    ];
    let files = files(&objects);
    let [server, client] = [&["-o", "json"][..], &CLIENT]
        .map(|flags| command(Program::new(), &set, &files).args(flags).run().expect(1));
    assert_eq!(outcome(&client), outcome(&server));
    assert_eq!(client.document()["refusals"], server.document()["refusals"]);
    assert_eq!(client.results("created"), identities(&objects[..3]));
}

#[test]
fn a_plan_that_the_server_has_not_validated_is_not_saved() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let files = Files::new().with("objects.yaml", &objects_file(&[config_map(&home, "one", "1")]));
    let plan = files.path("plan.json");
    let out = plan.to_str().expect("a path");
    let run = set
        .invocation(Program::new(), "diff", &["--dry-run=client", "--out", out, "-f"])
        .args([files.path("objects.yaml")])
        .run()
        .expect(2);
    assert!(run.stderr.contains("omit --dry-run=client"), "{}", run.stderr);
    assert!(!plan.exists());
}

#[test]
fn an_object_to_be_recreated_is_named() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let with_image = |image: &str| {
        with_containers(
            deployment(&home, "web", 1),
            &json!([{"name": "app", "image": image}]),
        )
    };
    set.apply(&[with_image("1")]);
    let flags = [&CLIENT[..], &["--recreate=Deployment"]].concat();
    let run = diff_by(Program::new(), &set, &[with_image("2")], &flags).expect(1);
    assert_eq!(run.results("configured").len(), 1);
    assert!(run.stderr.contains("deployment.apps/web"), "{}", run.stderr);
}
