//! The schemas in docs/reference describe what the program prints: real documents are valid, and
//! hold no field that their schema does not name.
//!
//! The schemas use few keywords of JSON Schema; any other one is an error here.

use std::fs;

use serde_json::{Map, Value};

use super::shell::Shell;
use super::{checkout, control_plane, read};

/// Prepares objects, and then prints one document each.
const DOCUMENTS: [(&str, &str); 18] = [
    ("report", "apply web -n documents -f one.yaml"),
    ("report", "diff web -n documents -f two.yaml"),
    ("report", "diff web -n documents -f one.yaml --base two.yaml"),
    ("report", "apply web -n documents -f two.yaml --dry-run=server"),
    ("report", "apply web -n documents -f two.yaml --wait=1s"),
    ("report", "apply web -n documents -f wrong.yaml"),
    ("report", "apply web -n documents -f empty.yaml"),
    ("report", "apply other -n documents -f two.yaml"),
    ("list", "list -n documents"),
    ("view", "view web -n documents"),
    ("view", "view web -n documents --wait=1s"),
    ("view", "view web -n documents --as jane"),
    ("history", "history web -n documents"),
    ("verify", "verify web -n documents"),
    ("report", "move web shop -n documents"),
    ("report", "adopt taken -n documents -f taken.yaml"),
    ("report", "disband taken -n documents --yes"),
    ("report", "delete shop -n documents --yes"),
];

const FILES: [(&str, &str); 5] = [
    (
        "one.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n---\n\
         {apiVersion: v1, kind: ConfigMap, metadata: {name: two}, data: {a: b}}\n",
    ),
    (
        "two.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: two}, data: {a: c}}\n---\n\
         {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, \
         spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}\n",
    ),
    (
        "wrong.yaml",
        "{apiVersion: v1, kind: Service, metadata: {name: wrong}, spec: {ports: [{port: 0}]}}\n",
    ),
    ("empty.yaml", "# empty\n"),
    (
        "taken.yaml",
        // kubectl before 1.32 takes a file that begins with a brace for JSON.
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: taken}\n",
    ),
];

#[test]
fn documents_are_as_their_schemas_say() {
    let mut shell = Shell::start(control_plane(), None);
    for (name, text) in FILES {
        shell.write_file(name, text);
    }
    shell.run("kubectl create namespace documents && kubectl create -n documents -f taken.yaml");
    for (schema, command) in DOCUMENTS {
        let printed = shell.run(&format!("kubectl applyset {command} -o json 2>errors"));
        let document: Value = serde_json::from_str(&printed).unwrap_or_else(|error| {
            let errors = shell.run("cat errors");
            panic!("{command}: {error}\n{printed}{errors}")
        });
        let schema = schema_of(schema);
        let faults = faults(&schema, &schema, &document, "");
        assert!(faults.is_empty(), "{command}: {faults:#?}\n{printed}");
    }
    shell.run("kubectl delete namespace documents --wait=false");
}

/// Otherwise nothing compares it.
#[test]
fn every_schema_has_a_document() {
    let files = fs::read_dir(checkout("docs/reference")).expect("a directory");
    for file in files {
        let name = file.expect("a file").file_name();
        if let Some(schema) = name.to_string_lossy().strip_suffix(".schema.json") {
            assert!(DOCUMENTS.iter().any(|(known, _)| *known == schema), "{schema}");
        }
    }
}

fn schema_of(name: &str) -> Value {
    let file = format!("docs/reference/{name}.schema.json");
    serde_json::from_str(&read(&file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Every place at which a document differs from its schema.
fn faults(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let Some(keywords) = schema.as_object() else {
        return vec![format!("{at}: {schema} is not a schema")];
    };
    let mut faults = Vec::new();
    for (keyword, constraint) in keywords {
        match keyword.as_str() {
            // Without `properties`, `additionalProperties` stands for all fields.
            "additionalProperties" if !keywords.contains_key("properties") => {
                let fields = value.as_object().into_iter().flat_map(Map::iter);
                for (name, field) in fields {
                    faults.extend(self::faults(root, constraint, field, &format!("{at}/{name}")));
                }
            }
            "$schema" | "$id" | "$defs" | "title" | "description" | "additionalProperties" => {}
            "$ref" => {
                let pointer = constraint.as_str().and_then(|text| text.strip_prefix('#'));
                let target = pointer.and_then(|pointer| root.pointer(pointer));
                let target = target.unwrap_or_else(|| panic!("{constraint} leads nowhere"));
                faults.extend(self::faults(root, target, value, at));
            }
            "const" if constraint == value => {}
            "enum" if one_or_more(constraint).contains(&value) => {}
            "type" if one_or_more(constraint).iter().any(|name| is_of(name, value)) => {}
            "const" | "enum" | "type" => faults.push(format!("{at}: {value} is not {constraint}")),
            "required" => {
                let names = one_or_more(constraint).into_iter().filter_map(Value::as_str);
                let missing = names.filter(|name| value.is_object() && value.get(name).is_none());
                faults.extend(missing.map(|name| format!("{at}: {name} is missing")));
            }
            "properties" => {
                let fields = value.as_object().into_iter().flat_map(Map::iter);
                for (name, field) in fields {
                    let at = format!("{at}/{name}");
                    let known = constraint.get(name).or(keywords.get("additionalProperties"));
                    match known {
                        Some(schema) => faults.extend(self::faults(root, schema, field, &at)),
                        None => faults.push(format!("{at} is not in the schema")),
                    }
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    faults.extend(self::faults(root, constraint, item, &format!("{at}/{index}")));
                }
            }
            _ => panic!("{at}: this test does not know the keyword {keyword}"),
        }
    }
    faults
}

fn one_or_more(value: &Value) -> Vec<&Value> {
    value
        .as_array()
        .map_or_else(|| vec![value], |items| items.iter().collect())
}

fn is_of(name: &Value, value: &Value) -> bool {
    match name.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => false,
    }
}

#[test]
fn a_schema_finds_faults() {
    use serde_json::json;
    let schema = json!({
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": ["integer", "null"]}, "b": {"$ref": "#/$defs/b"}},
        "$defs": {"b": {"type": "array", "items": {"enum": ["x", "y"]}}}
    });
    let count = |value: Value| faults(&schema, &schema, &value, "").len();
    assert_eq!(count(json!({"a": 1, "b": ["x", "y"]})), 0);
    assert_eq!(count(json!({"a": null})), 0);
    assert_eq!(count(json!({"a": "1"})), 1);
    assert_eq!(count(json!({"b": ["z"]})), 2);
    assert_eq!(count(json!({"a": 1, "c": 1})), 1);
    assert_eq!(count(json!([])), 1);
}
