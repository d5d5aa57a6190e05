//! The size of expressions and objects, on which the time and the stack of an evaluation depend.

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use serde_json::Value;

/// The limit of macros inside one another.
pub(super) const MAX_NESTED_MACROS: usize = 3;
/// The limit of brackets that are open at once. The parser calls itself for each.
pub(super) const MAX_BRACKETS: usize = 64;
/// The limit of operations inside one another.
pub(super) const MAX_LEVELS: usize = 32;
/// The limit of the size of an object that is evaluated without a deadline: even three macros inside one another take
/// almost no time for it.
const SIZE_OF_SMALL_OBJECT: usize = 200;
/// The bytes of a text that count as another value.
const BYTES_PER_VALUE: usize = 64;

/// Returns whether an expression may take long for this object. Its managed fields do not count.
pub(super) fn is_large(object: &Value) -> bool {
    let managed_fields = object.pointer("/metadata/managedFields");
    size_of(object) - managed_fields.map_or(0, size_of) > SIZE_OF_SMALL_OBJECT
}

/// Returns the number of values in a value, itself included. A long text counts as several values.
fn size_of(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(size_of).sum(),
        Value::Object(fields) => fields.values().map(size_of).sum(),
        Value::String(text) => text.len() / BYTES_PER_VALUE,
        _ => 0,
    }
}

/// Returns how many brackets outside of strings are open at once at most.
pub(super) fn most_open_brackets(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(_), '\\') => _ = letters.next(),
            (Some(end), _) if letter == end => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '(' | '[' | '{') => open += 1,
            (None, ')' | ']' | '}') => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// Returns how many operations are inside one another.
pub(super) fn depth(expression: &IdedExpr) -> usize {
    let inside = children(&expression.expr).into_iter().map(depth);
    1 + inside.max().unwrap_or_default()
}

/// Returns how many macros are inside one another. The list that a macro goes through is evaluated once, so it does not
/// count as inside the macro.
pub(super) fn nested_macros(expression: &IdedExpr) -> usize {
    let (range, inside) = match &expression.expr {
        Expr::Comprehension(of) => (
            nested_macros(&of.iter_range),
            vec![&of.loop_cond, &of.loop_step, &of.result],
        ),
        other => (0, children(other)),
    };
    let is_macro = usize::from(matches!(expression.expr, Expr::Comprehension(_)));
    let deepest = inside.into_iter().map(nested_macros).max().unwrap_or_default();
    range.max(deepest + is_macro)
}

/// Returns the expressions directly inside an expression.
pub(super) fn children(expression: &Expr) -> Vec<&IdedExpr> {
    match expression {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(of) => vec![
            &of.iter_range,
            &of.accu_init,
            &of.loop_cond,
            &of.loop_step,
            &of.result,
        ],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Map(map) => expressions_in_entries(&map.entries),
        Expr::Struct(fields) => expressions_in_entries(&fields.entries),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
    }
}

fn expressions_in_entries(entries: &[cel::common::ast::IdedEntryExpr]) -> Vec<&IdedExpr> {
    let parts = entries.iter().flat_map(|entry| match &entry.expr {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn brackets_in_strings_are_not_open() {
        for (text, expected) in [
            ("a.b(c[0], {'x': [1]})", 3),
            ("'((((' + \"[[[\" + '\\'((('", 0),
            ("(a) + (b) + (c)", 1),
            (")))(", 1),
            ("'((", 0),
        ] {
            assert_eq!(most_open_brackets(text), expected, "{text}");
        }
    }

    #[test]
    fn values_and_texts_make_an_object_large_but_managed_fields_do_not() {
        let many = json!(vec![1; SIZE_OF_SMALL_OBJECT]);
        let long = json!("a".repeat(SIZE_OF_SMALL_OBJECT * BYTES_PER_VALUE));
        for value in [many, long] {
            assert!(is_large(&json!({"status": value})));
            assert!(!is_large(&json!({"metadata": {"managedFields": value}})));
        }
    }
}
