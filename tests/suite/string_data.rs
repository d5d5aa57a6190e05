//! Secrets that are typed as `stringData`: their keys are owned, conflict and leave as those
//! of `data` do, for every former applier.

use serde_json::{Value, json};

use crate::support::{
    Files, PART_OF, Program, Run, Set, cluster, config_map, kubectl_apply, named, namespace, objects_file,
    with,
};

fn typed(home: &str, name: &str, values: &Value) -> Value {
    with(
        named("v1", "Secret", Some(home), name),
        &json!({"stringData": values}),
    )
}

fn data(object: &Value) -> Value {
    cluster().live(object).expect("the Secret")["data"].clone()
}

fn diff(set: &Set, objects: &[Value]) -> Run {
    let files = Files::new().with("objects.yaml", &objects_file(objects));
    Program::new()
        .args(["diff", &set.reference, "-n", &set.namespace, "-f"])
        .args([files.directory()])
        .run()
}

#[test]
fn a_key_that_leaves_string_data_leaves_the_secret() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let before = typed(&home, "one", &json!({"new": "a", "leaked": "b"}));
    set.apply(std::slice::from_ref(&before));
    assert_eq!(data(&before), json!({"new": "YQ==", "leaked": "Yg=="}));
    let after = typed(&home, "one", &json!({"new": "a"}));
    let reported = diff(&set, std::slice::from_ref(&after)).expect(1);
    assert!(reported.stdout.contains("-  leaked:"), "{}", reported.stdout);

    let run = set.apply_with(std::slice::from_ref(&after), &[]).expect(0);

    assert_eq!(run.results("configured").len(), 1);
    assert_eq!(data(&after), json!({"new": "YQ=="}));
    diff(&set, std::slice::from_ref(&after)).expect(0);
    let run = set.apply_with(std::slice::from_ref(&after), &[]).expect(0);
    assert_eq!(run.results("unchanged").len(), 1);
    // How it is written makes no difference.
    let same = with(
        named("v1", "Secret", Some(&home), "one"),
        &json!({"data": {"new": "YQ=="}}),
    );
    let run = set.apply_with(&[same], &[]).expect(0);
    assert_eq!(run.results("unchanged").len(), 1);
}

#[test]
fn a_key_that_was_owned_as_string_data_leaves_the_secret_too() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let former = typed(&home, "one", &json!({"new": "a", "leaked": "b"}));
    set.apply(std::slice::from_ref(&former));
    let label = json!({"metadata": {"labels": {PART_OF: set.id}}});
    cluster().apply_as("applyset", &with(former, &label));
    let after = typed(&home, "one", &json!({"new": "a"}));
    assert_eq!(data(&after), json!({"new": "YQ==", "leaked": "Yg=="}));
    let reported = diff(&set, std::slice::from_ref(&after)).expect(1);
    assert!(reported.stdout.contains("-  leaked:"), "{}", reported.stdout);

    set.apply(std::slice::from_ref(&after));

    assert_eq!(data(&after), json!({"new": "YQ=="}));
    diff(&set, &[after]).expect(0);
}

#[test]
fn a_value_of_another_field_manager_conflicts_with_string_data() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let theirs = with(
        named("v1", "Secret", Some(&home), "own"),
        &json!({"data": {"x": "b3RoZXI="}}),
    );
    cluster().create(&theirs);
    let mine = typed(&home, "own", &json!({"x": "mine-by-right"}));

    let run = set.apply_with(std::slice::from_ref(&mine), &[]).expect(1);

    for text in [": .data.x\n", "owner:    \"tests\"", "  - /data/x\n"] {
        assert!(run.stderr.contains(text), "no {text:?} in\n{}", run.stderr);
    }
    assert!(!run.stderr.contains("mine-by-right"), "{}", run.stderr);
    assert_eq!(data(&theirs), json!({"x": "b3RoZXI="}));
    set.apply_with(&[mine], &["--force-conflicts"]).expect(0);
    assert_eq!(data(&theirs), json!({"x": "bWluZS1ieS1yaWdodA=="}));
}

#[test]
fn string_data_wins_over_data_as_on_the_server_and_empty_ones_are_nothing() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let fields = [
        json!({"stringData": {"a": "x", "none": null}, "data": {"a": "eQ==", "b": "eg=="}}),
        json!({"stringData": {}, "data": {"b": "eg=="}}),
        json!({"stringData": null}),
        json!({"stringData": {"a": "x"}, "data": null}),
    ];
    let secret = |name: String, fields: &Value| with(named("v1", "Secret", Some(&home), &name), fields);
    let of = |prefix: &str| -> Vec<Value> {
        let numbered = fields.iter().enumerate();
        numbered
            .map(|(n, fields)| secret(format!("{prefix}-{n}"), fields))
            .collect()
    };
    let objects = of("ours");
    set.apply(&objects);
    let mut plain = of("plain");
    // The server would make an empty text of it, and kubectl apply leaves it out.
    let texts = plain[0]["stringData"].as_object_mut();
    assert_eq!(texts.and_then(|texts| texts.remove("none")), Some(Value::Null));
    for object in &plain {
        cluster().create(object);
    }
    let data_of_all = |objects: &[Value]| objects.iter().map(data).collect::<Vec<_>>();
    assert_eq!(data_of_all(&objects), data_of_all(&plain));
    let run = set.apply_with(&objects, &[]).expect(0);
    assert_eq!(run.results("unchanged").len(), objects.len(), "{}", run.stdout);
}

#[test]
fn what_client_side_apply_typed_stays_until_it_leaves_the_manifest() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let login = typed(&home, "login", &json!({"user": "a", "password": "b"}));
    let objects = [login.clone(), config_map(&home, "one", "1")];
    kubectl_apply(&objects, &["-n", &home]).expect(0);
    let kept = json!({"user": "YQ==", "password": "Yg=="});
    for round in ["before adopt", "after adopt"] {
        let reported = diff(&set, &objects).expect(1);
        for gone in ["-  password", "-  user", "-data"] {
            assert!(!reported.stdout.contains(gone), "{round}: {}", reported.stdout);
        }
        if round == "before adopt" {
            let files = Files::new().with("objects.yaml", &objects_file(&objects));
            let directory = files.directory().to_string_lossy().into_owned();
            set.invoke("adopt", &["-f", &directory]).expect(0);
            assert_eq!(data(&login), kept);
        }
    }
    set.apply(&objects);
    assert_eq!(data(&login), kept);
    diff(&set, &objects).expect(0);
    let less = typed(&home, "login", &json!({"user": "a"}));
    set.apply(&[less.clone(), objects[1].clone()]);
    assert_eq!(data(&less), json!({"user": "YQ=="}));
}

#[test]
fn a_parent_that_is_typed_loses_keys_like_any_member() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let parent = |values: Value| typed(&home, "web", &values);
    let one = config_map(&home, "one", "1");
    set.apply(&[parent(json!({"new": "a", "leaked": "b"})), one.clone()]);
    assert_eq!(data(&set.parent), json!({"new": "YQ==", "leaked": "Yg=="}));
    set.apply(&[parent(json!({"new": "a"})), one]);
    assert_eq!(data(&set.parent), json!({"new": "YQ=="}));
}
