//! A second apply changes nothing, whatever value that says nothing a manifest has, and at whatever place.
//!
//! Each such value is planted at each place that the server's schema has: null, and the empty value of the field's
//! type. What the server refuses does not count; what it takes has to stay as it is from then on, and an apply of its
//! export changes nothing either.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{
    Files, Program, Set, cluster, eventually, fresh, identities, named, namespace, objects_file, with,
};

const WORKLOADS: &str = include_str!("workloads.yaml");
const OTHER_KINDS: &str = include_str!("other_kinds.yaml");
const CUSTOM: &str = include_str!("custom.yaml");

/// The schemas of one version of the API, as the server publishes them.
struct Schemas(Value);

impl Schemas {
    fn read(api_version: &str) -> Self {
        let path = if api_version.contains('/') {
            format!("/openapi/v3/apis/{api_version}")
        } else {
            format!("/openapi/v3/api/{api_version}")
        };
        // Those of a new group are published a moment later.
        let document = eventually("the schemas", || cluster().get(&path));
        Self(document["components"]["schemas"].clone())
    }

    fn of_kind(&self, api_version: &str, kind: &str) -> &Value {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = json!({"group": group, "version": version, "kind": kind});
        let schemas = self.0.as_object().expect("schemas");
        let found = schemas.values().find(|schema| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array();
            kinds.is_some_and(|kinds| kinds.contains(&gvk))
        });
        found.unwrap_or_else(|| panic!("no schema of {api_version} {kind}"))
    }

    /// The schema that this one refers to.
    fn resolved<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let reference = schema["$ref"].as_str().or_else(|| {
            let all = schema["allOf"].as_array().filter(|all| all.len() == 1);
            all?[0]["$ref"].as_str()
        });
        match reference.and_then(|reference| reference.rsplit('/').next()) {
            Some(name) => self.resolved(&self.0[name]),
            None => schema,
        }
    }

    /// Adds the object with each value that says nothing at each place of `value`, which is at this pointer.
    fn plant(&self, object: &Value, pointer: &str, value: &Value, schema: &Value, planted: &mut Vec<Value>) {
        let schema = self.resolved(schema);
        match value {
            Value::Object(fields) => {
                let declared = schema["properties"].as_object();
                for (name, schema) in declared.into_iter().flatten() {
                    if !is_planted(pointer, name) {
                        continue;
                    }
                    for empty in [Some(Value::Null), empty_value(self.resolved(schema))]
                        .into_iter()
                        .flatten()
                    {
                        planted.push(with_value(object, pointer, name, empty));
                    }
                    if let Some(value) = fields.get(name) {
                        self.plant(object, &format!("{pointer}/{name}"), value, schema, planted);
                    }
                }
                if let Some(of_keys) = schema.get("additionalProperties") {
                    for (name, value) in fields {
                        self.plant(object, &format!("{pointer}/{name}"), value, of_keys, planted);
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.plant(
                        object,
                        &format!("{pointer}/{index}"),
                        item,
                        &schema["items"],
                        planted,
                    );
                }
            }
            _ => {}
        }
    }
}

fn is_planted(pointer: &str, name: &str) -> bool {
    match pointer {
        // The server drops a data source without these fields, and only a second write of a new claim stores that.
        "/spec/dataSource" => !["kind", "name"].contains(&name),
        "/spec" if name == "dataSource" => false,
        "" => !["apiVersion", "kind", "metadata", "status"].contains(&name),
        "/metadata" => !["name", "namespace"].contains(&name) && !name.ends_with("Timestamp"),
        _ => true,
    }
}

fn empty_value(schema: &Value) -> Option<Value> {
    Some(match schema["type"].as_str() {
        Some("string") => json!(""),
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some("boolean") => json!(false),
        Some("integer" | "number") => json!(0),
        _ => return None,
    })
}

fn with_value(object: &Value, pointer: &str, name: &str, value: Value) -> Value {
    let mut changed = object.clone();
    let place = changed.pointer_mut(pointer).and_then(Value::as_object_mut);
    place.expect("the place").insert(name.to_owned(), value);
    changed
}

/// The variants of an object, each with a name of its own.
fn variants(base: &Value, home: &str) -> Vec<Value> {
    let [api_version, kind] = ["apiVersion", "kind"].map(|field| base[field].as_str().expect("a text"));
    let mut base = base.clone();
    base["metadata"] = json!({"labels": {"l": "m"}, "annotations": {"n": "o"}});
    let schemas = Schemas::read(api_version);
    let schema = schemas.of_kind(api_version, kind);
    let mut planted = vec![base.clone()];
    schemas.plant(&base, "", &base, schema, &mut planted);
    schemas.plant(
        &base,
        "/metadata",
        &base["metadata"],
        &schema["properties"]["metadata"],
        &mut planted,
    );
    let prefix = fresh("empty");
    for (number, object) in planted.iter_mut().enumerate() {
        object["metadata"]["name"] = json!(format!("{prefix}-{number}"));
        if !is_cluster_scoped(kind) {
            object["metadata"]["namespace"] = json!(home);
        }
    }
    planted
}

fn is_cluster_scoped(kind: &str) -> bool {
    const KINDS: &[&str] = &["PersistentVolume"];
    const SUFFIXES: &[&str] = &["Class", "Configuration", "Driver", "Policy", "PolicyBinding"];
    let is_policy_of_namespace = kind == "NetworkPolicy";
    let is_cluster_scoped = SUFFIXES.iter().any(|suffix| kind.ends_with(suffix));
    KINDS.contains(&kind) || kind.starts_with("Cluster") || is_cluster_scoped && !is_policy_of_namespace
}

/// Applies all variants twice, then their export, and asserts that this leaves each that the server took as it is.
fn assert_stays(base: &Value) {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects: BTreeMap<String, Value> = variants(base, &home)
        .into_iter()
        .map(|object| (identities([&object]).remove(0), object))
        .collect();
    let all: Vec<Value> = objects.values().cloned().collect();
    let run = set.apply_with(&all, &[]);
    let taken = run.results("created");
    assert!(taken.len() > 20, "{}: {}", base["kind"], run.stderr);
    let taken: Vec<Value> = taken.iter().map(|identity| objects[identity].clone()).collect();

    let before = cluster().versions(&set.id);
    let run = set.apply_with(&taken, &[]).expect(0);

    let after = cluster().versions(&set.id);
    let changed: Vec<&Value> = taken
        .iter()
        .filter(|object| {
            let identity = &identities([*object])[0];
            before[identity] != after[identity]
        })
        .collect();
    assert!(changed.is_empty(), "{:#?}", json!(changed));
    assert_eq!(run.results("unchanged").len(), taken.len(), "{}", run.stdout);
    let files = Files::new().with("objects.yaml", &objects_file(&taken));
    let directory = files.directory().to_string_lossy();
    set.invoke("diff", &["-f", &directory]).expect(0);
    let exported = Files::new().with("exported.yaml", &set.invoke("export", &[]).expect(0).stdout);
    let run = set.command(Program::new(), &exported).args(["-o", "json"]).run();
    let unchanged = run.results("unchanged");
    let other: Vec<&Value> = taken
        .iter()
        .filter(|object| is_restored(object, base) && !unchanged.contains(&identities([*object])[0]))
        .collect();
    assert!(other.is_empty(), "{:#?}: {}", json!(other), run.stderr);
    set.delete(&[]);
}

/// Whether an export has the value that was planted. It does not know the types of all texts, numbers and flags, what
/// defaults have filled of a kind without known fields, and an item without its key.
fn is_restored(object: &Value, base: &Value) -> bool {
    empty_scalars(object) == empty_scalars(base)
        && object["kind"] != "ResourceClaimTemplate"
        && object.pointer("/spec/imagePullSecrets/0/name") != Some(&Value::Null)
}

/// How many texts, numbers and flags of a value are zero.
fn empty_scalars(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.values().map(empty_scalars).sum(),
        Value::Array(items) => items.iter().map(empty_scalars).sum(),
        value => usize::from([json!(""), json!(0), json!(false)].contains(value)),
    }
}

fn objects(text: &str) -> Vec<Value> {
    serde_saphyr::from_str(text).expect("YAML")
}

#[test]
fn of_workloads() {
    for base in objects(WORKLOADS) {
        assert_stays(&base);
    }
}

#[test]
fn of_other_built_in_kinds() {
    for base in objects(OTHER_KINDS) {
        assert_stays(&base);
    }
}

#[test]
fn of_custom_resources() {
    let [definition, base] = &objects(CUSTOM)[..] else {
        panic!("a definition and an object");
    };
    cluster().define(definition);
    assert_stays(base);
}

#[test]
fn an_empty_list_clears_what_another_manager_wrote() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let policy = |ingress: Value| {
        with(
            named("networking.k8s.io/v1", "NetworkPolicy", Some(&home), "web"),
            &json!({"spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": ingress}}),
        )
    };
    let closed = [policy(json!([]))];
    set.apply(&closed);
    cluster().patch(&closed[0], &json!({"spec": {"ingress": [{}]}}));

    let run = set.apply_with(&closed, &[]).expect(1);
    assert_eq!(run.results("failed"), identities(&closed));
    let run = set.apply_with(&closed, &["--force-conflicts"]).expect(0);

    assert_eq!(run.results("configured"), identities(&closed));
    let live = cluster().live(&closed[0]).expect("the policy");
    assert_eq!(live["spec"].get("ingress"), None);
    let name = named("networking.k8s.io/v1", "NetworkPolicy", Some(&home), "web");
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    cluster().apply_as("labeler", &with(name, &labels));
    let run = set.apply(&closed);
    assert_eq!(run.results("unchanged"), identities(&closed));
}

#[test]
fn the_rules_of_an_aggregated_role_are_left_to_its_controller() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let selector = json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}});
    let role = with(
        named(
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            None,
            &fresh("role"),
        ),
        &selector,
    );
    let aggregated = [with(role.clone(), &json!({"rules": []}))];
    set.apply(&aggregated);
    let rules = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    let written = cluster().apply_as("clusterrole-aggregation-controller", &with(role, &rules));

    let run = set.apply(&aggregated);

    assert_eq!(run.results("unchanged"), identities(&aggregated));
    let live = cluster().live(&aggregated[0]).expect("the role");
    assert_eq!(live["rules"], written["rules"]);
    set.delete(&[]).expect(0);
}
