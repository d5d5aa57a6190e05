//! The tables of the built-in kinds are those of the Kubernetes that the tests run.
//!
//! They are made from the `OpenAPI` document of the API server, for the kinds that the
//! property test of change detection tries. `just kubernetes-tables` writes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use crate::support::cluster;

/// Set to `write`, it makes the file say what the server says.
const MODE: &str = "KUBERNETES_TABLES";
const FILE: &str = "src/model/built_in_kinds/kubernetes.txt";

/// The binaries of `KUBEBUILDER_ASSETS` may be of another patch release, so the first line does not
/// count here.
#[test]
fn tables_are_those_of_the_server() {
    let tables = tables();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var(MODE).is_ok_and(|mode| mode == "write") {
        fs::write(&file, &tables).expect("write the tables");
    }
    let checked_in = fs::read_to_string(&file).expect("read the tables");
    let rows = [&checked_in, &tables].map(|text| text.lines().collect::<Vec<_>>());
    let [known, found] = [&rows[0], &rows[1]].map(|rows| rows[1..].iter().collect::<BTreeSet<_>>());
    let differing: Vec<_> = known.symmetric_difference(&found).collect();
    assert!(
        rows[0][1..] == rows[1][1..],
        "{FILE} and the server differ; {} and {}: run `just kubernetes-tables`: {differing:#?}",
        rows[0][0],
        rows[1][0],
    );
}

#[test]
fn tables_are_made_from_the_kubernetes_that_is_built_for_the_tests() {
    let module = include_str!("../controlplane/go.mod");
    let required = module
        .lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "));
    let release = required.expect("a version").trim_end_matches(" // indirect");
    let tables = include_str!("../src/model/built_in_kinds/kubernetes.txt");
    let first = tables.lines().next().expect("a line");
    assert!(first.ends_with(&format!(" Kubernetes {release}.")), "{first}");
}

fn tables() -> String {
    let version = cluster().get("/version").expect("a version");
    let version = version["gitVersion"].as_str().expect("a version");
    let schemas = Schemas::read();
    let mut facts = Facts::default();
    let mut rows = vec![
        format!("# Made by `just kubernetes-tables` from the OpenAPI document of Kubernetes {version}."),
        "# kind API-VERSION KIND [status, if it is a subresource]".to_owned(),
        "# FACT FIELD VALUE [API-VERSION KIND, if it holds for this kind only]".to_owned(),
    ];
    for kind in kinds() {
        let (root, has_status) = schemas.root(&kind);
        rows.push(format!("kind {kind}{}", if has_status { " status" } else { "" }));
        let mut walk = Walk {
            schemas: &schemas,
            facts: &mut facts,
            kind: &kind,
        };
        let fields = root["properties"].as_object().expect("fields");
        // A manifest's status is ignored where it is a subresource, and no other kind has one.
        for (name, field) in fields.iter().filter(|(name, _)| *name != "status") {
            walk.field("", name, field, Owned::ByField);
        }
    }
    rows.extend(facts.rows());
    rows.join("\n") + "\n"
}

/// The built-in kinds that the property test tries, each as `API-VERSION KIND`.
fn kinds() -> BTreeSet<String> {
    let templates = include_str!("changes_property/templates.yaml");
    let templates: Value = serde_saphyr::from_str(templates).expect("templates");
    let kinds = templates["kinds"].as_array().expect("kinds").iter();
    kinds
        .map(|kind| {
            let text = |name: &str| kind[name].as_str().expect("a text");
            format!("{} {}", text("apiVersion"), text("kind"))
        })
        .filter(|kind| !kind.contains(".example.com/"))
        .collect()
}

/// The types of the API by name, and the paths that are served.
struct Schemas {
    types: Map<String, Value>,
    paths: Map<String, Value>,
}

impl Schemas {
    fn read() -> Self {
        let mut this = Self {
            types: Map::new(),
            paths: Map::new(),
        };
        let api_versions: BTreeSet<String> = kinds()
            .iter()
            .filter_map(|kind| kind.split(' ').next().map(str::to_owned))
            .collect();
        for api_version in api_versions {
            let root = if api_version.contains('/') { "apis" } else { "api" };
            let path = format!("/openapi/v3/{root}/{api_version}");
            let mut document = cluster().get(&path).expect("a document");
            let mut take = |pointer: &str| {
                let part = document.pointer_mut(pointer).and_then(Value::as_object_mut);
                std::mem::take(part.expect("a part of the document"))
            };
            this.types.extend(take("/components/schemas"));
            this.paths.extend(take("/paths"));
        }
        this
    }

    /// The type of a kind, and whether its status is a subresource.
    fn root(&self, kind: &str) -> (&Value, bool) {
        let (api_version, kind) = kind.split_once(' ').expect("a kind");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_it =
            |known: &Value| known["group"] == group && known["version"] == version && known["kind"] == kind;
        let key = "x-kubernetes-group-version-kind";
        let root = self.types.values().find(|schema| {
            let known = schema[key].as_array().map(Vec::as_slice);
            matches!(known, Some([known]) if is_it(known))
        });
        let has_status = self
            .paths
            .iter()
            .any(|(path, operations)| path.ends_with("/status") && is_it(&operations["get"][key]));
        (root.expect("a type"), has_status)
    }

    /// A schema with what the type says that it refers to.
    fn resolve(&self, schema: &Value) -> Value {
        let reference = schema["$ref"].as_str().or(schema["allOf"][0]["$ref"].as_str());
        let Some(name) = reference.and_then(|reference| reference.rsplit('/').next()) else {
            return schema.clone();
        };
        let mut resolved = self.types[name].clone();
        let fields = resolved.as_object_mut().expect("a type");
        fields.extend(schema.as_object().expect("a schema").clone());
        fields.insert("of".to_owned(), Value::from(name));
        resolved
    }
}

/// How the value that a field is in is owned.
#[derive(Clone, Copy, PartialEq)]
enum Owned {
    ByField,
    Whole,
}

/// Takes down what the fields of one kind are.
struct Walk<'w> {
    schemas: &'w Schemas,
    facts: &'w mut Facts,
    kind: &'w str,
}

impl Walk<'_> {
    fn field(&mut self, container: &str, name: &str, schema: &Value, around: Owned) {
        // The schemas of custom resources contain themselves, and are data.
        if around == Owned::Whole && self.kind.ends_with(" CustomResourceDefinition") {
            return;
        }
        let schema = self.schemas.resolve(schema);
        let path = format!("{container}.{name}");
        let type_name = schema["of"].as_str().unwrap_or_default();
        self.fact("quantity", &path, yes(type_name.ends_with(".resource.Quantity")));
        self.fact("bytes", &path, yes(schema["format"] == "byte"));
        let relation = match schema["type"].as_str() {
            Some("object") if schema["x-kubernetes-map-type"] == "atomic" => Some(("map", Owned::Whole)),
            Some("object") => Some(("map", Owned::ByField)),
            Some("array") if matches!(schema["x-kubernetes-list-type"].as_str(), Some("set" | "map")) => {
                Some(("list", Owned::ByField))
            }
            Some("array") => Some(("list", Owned::Whole)),
            _ => None,
        };
        if around == Owned::ByField && name != "*" {
            for fact in ["map", "list"] {
                let value = match relation {
                    Some((of, Owned::Whole)) if of == fact => "atomic",
                    Some((of, Owned::ByField)) if of == fact => "granular",
                    _ => "no",
                };
                self.fact(fact, name, value);
            }
        }
        let Some((fact, owned)) = relation else { return };
        let items = self.schemas.resolve(&schema["items"]);
        if around == Owned::ByField && relation == Some(("list", Owned::ByField)) {
            self.fact("list-keys", name, &list_keys(&schema, &items));
            let is_atomic = items["x-kubernetes-map-type"] == "atomic";
            self.fact("atomic-items", name, yes(is_atomic));
        }
        let owned = if around == Owned::Whole { around } else { owned };
        self.fields(name, if fact == "list" { &items } else { &schema }, owned);
    }

    /// The fields of a map, or of each item of a list.
    fn fields(&mut self, name: &str, schema: &Value, owned: Owned) {
        if schema["type"] != "object" {
            return;
        }
        let values = &schema["additionalProperties"];
        self.fact("keys", name, yes(values.is_object()));
        for (below, field) in schema["properties"].as_object().into_iter().flatten() {
            self.field(name, below, field, owned);
        }
        if values.is_object() {
            self.field(name, "*", values, owned);
        }
    }

    fn fact(&mut self, fact: &'static str, field: &str, value: &str) {
        let known = self.facts.0.entry((fact, field.to_owned())).or_default();
        known
            .entry(self.kind.to_owned())
            .or_default()
            .insert(value.to_owned());
    }
}

/// The keys by which the items of a list are distinguished, each with its default unless that is empty:
/// `containerPort,protocol:"TCP"`. `no` for a set.
fn list_keys(list: &Value, items: &Value) -> String {
    let names = list["x-kubernetes-list-map-keys"]
        .as_array()
        .into_iter()
        .flatten();
    let keys: Vec<String> = names
        .map(|name| {
            let name = name.as_str().expect("a name");
            match &items["properties"][name]["default"] {
                Value::Null => name.to_owned(),
                default if *default == "" || *default == 0 => name.to_owned(),
                default => format!("{name}:{default}"),
            }
        })
        .collect();
    if keys.is_empty() {
        "no".to_owned()
    } else {
        keys.join(",")
    }
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

/// What was found for each fact and field: the values, by kind.
#[derive(Default)]
struct Facts(BTreeMap<(&'static str, String), BTreeMap<String, BTreeSet<String>>>);

impl Facts {
    /// A row for what holds for most kinds, and one for each kind that differs.
    fn rows(self) -> Vec<String> {
        let mut rows = Vec::new();
        for ((fact, field), kinds) in self.0 {
            let kinds: BTreeMap<&String, &str> = kinds
                .iter()
                .map(|(kind, values)| (kind, one_of(values)))
                .collect();
            let count = |value: &str| kinds.values().filter(|known| **known == value).count();
            let most = kinds
                .values()
                .copied()
                .find(|value| count(value) * 2 > kinds.len());
            let most = most.unwrap_or("no");
            if most != "no" {
                rows.push(format!("{fact} {field} {most}"));
            }
            let others = kinds.iter().filter(|(_, value)| **value != most);
            rows.extend(others.map(|(kind, value)| format!("{fact} {field} {value} {kind}")));
        }
        rows
    }
}

/// A name that is owned in different ways in one kind is neither atomic nor granular. It may have keys that people
/// choose, or be a map or list, even if it is something else elsewhere in the kind.
fn one_of(values: &BTreeSet<String>) -> &str {
    let meant: Vec<&str> = values
        .iter()
        .map(String::as_str)
        .filter(|value| *value != "no")
        .collect();
    match meant.as_slice() {
        [] => "no",
        [only] => only,
        _ => "both",
    }
}
