//! The fields of an object that an expression reads, as values of CEL, and the functions of sets, which the crate `cel`
//! lacks. The cost of an expression counts only these fields, and not the whole object.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use cel::Context;
use cel::common::ast::{Expr, IdedExpr};
use cel::objects::{Key, Map};
use serde_json::Value;

use super::cost::children;

/// The fields that an expression reads, as paths from the top of an object. Names that are not fields, such as the
/// variables of macros, are among them; an object usually has no field of that name.
#[derive(Debug)]
pub(super) struct Inputs(BTreeSet<Vec<String>>);

impl Inputs {
    /// Finds the fields that an expression reads.
    pub(super) fn new(expression: &IdedExpr) -> Self {
        let mut found = BTreeSet::new();
        collect_paths_of_fields(expression, &mut found);
        let all = found.clone();
        // A path below another one is not needed: its value is part of the other value.
        found.retain(|path| !(1..path.len()).any(|end| all.contains(&path[..end])));
        Self(found)
    }

    /// Returns the values of an object that an expression reads.
    pub(super) fn values<'o>(&'o self, object: &'o Value) -> impl Iterator<Item = &'o Value> {
        self.0.iter().filter_map(|path| value_at(object, path))
    }
}

fn collect_paths_of_fields(expression: &IdedExpr, found: &mut BTreeSet<Vec<String>>) {
    match path_of_field(expression) {
        Some(path) => _ = found.insert(path),
        None => children(&expression.expr)
            .into_iter()
            .for_each(|inner| collect_paths_of_fields(inner, found)),
    }
}

/// Returns the path of an expression that is a variable, or a field below one; `None` for other expressions.
fn path_of_field(expression: &IdedExpr) -> Option<Vec<String>> {
    match &expression.expr {
        Expr::Ident(name) => Some(vec![name.clone()]),
        Expr::Select(select) => {
            let mut path = path_of_field(&select.operand)?;
            path.push(select.field.clone());
            Some(path)
        }
        _ => None,
    }
}

fn value_at<'o>(object: &'o Value, path: &[String]) -> Option<&'o Value> {
    let (first, rest) = path.split_first()?;
    let mut fields = rest.iter();
    fields.try_fold(value_of_variable(object, first)?, |value, field| value.get(field))
}

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
