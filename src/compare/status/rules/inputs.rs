//! The fields of an object as values of CEL, and the functions of sets, which the crate `cel` lacks.

use std::collections::HashMap;
use std::sync::Arc;

use cel::Context;
use cel::objects::{Key, Map};
use serde_json::Value;

/// Returns the value of a variable: a field at the top of the object, or `self`, the whole object, so that an
/// expression can check whether it has a status.
pub(super) fn value_of_variable<'o>(object: &'o Value, name: &str) -> Option<&'o Value> {
    object.get(name).or((name == "self").then_some(object))
}

/// Converts a field of an object. Numbers without a fraction are `int`, as in Go.
pub(super) fn to_cel(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Number(number) => number.as_i64().map_or_else(
            || cel::Value::Float(number.as_f64().unwrap_or_default()),
            cel::Value::Int,
        ),
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(fields) => {
            let map: HashMap<Key, cel::Value> = fields
                .iter()
                .map(|(name, value)| (Key::from(name.clone()), to_cel(value)))
                .collect();
            cel::Value::Map(Map { map: Arc::new(map) })
        }
    }
}

/// Adds the functions of cel-go's extension `sets`.
pub(super) fn add_set_functions(context: &mut Context) -> Result<(), cel::DeclarationError> {
    type List = Arc<Vec<cel::Value>>;
    let contains_all = |list: &List, other: &List| other.iter().all(|item| list.contains(item));
    context.add_function("sets.contains", move |list: List, other: List| {
        contains_all(&list, &other)
    })?;
    context.add_function("sets.equivalent", move |list: List, other: List| {
        contains_all(&list, &other) && contains_all(&other, &list)
    })?;
    context.add_function("sets.intersects", |list: List, other: List| {
        other.iter().any(|item| list.contains(item))
    })
}
