//! Fields of objects as values of CEL, and the functions of sets, which the crate lacks.

use std::collections::HashMap;
use std::sync::Arc;

use cel::Context;
use cel::objects::{Key, Map};
use serde_json::Value;

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

/// Declares cel-go's extension `sets`.
pub(super) fn add_sets(context: &mut Context) -> Result<(), cel::DeclarationError> {
    type List = Arc<Vec<cel::Value>>;
    let holds = |list: &List, other: &List| other.iter().all(|item| list.contains(item));
    context.add_function("sets.contains", move |list: List, other: List| {
        holds(&list, &other)
    })?;
    context.add_function("sets.equivalent", move |list: List, other: List| {
        holds(&list, &other) && holds(&other, &list)
    })?;
    context.add_function("sets.intersects", |list: List, other: List| {
        other.iter().any(|item| list.contains(item))
    })
}
