//! The cost of an expression: limits on what it may cost when it is compiled, and on what it may cost for an object
//! before it is evaluated.

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};
use serde_json::Value;

use super::expression::ExpressionError;

/// How many macros may be inside one another.
pub(super) const MAX_NESTED_MACROS: u32 = 3;
/// How many brackets may be open at once. The parser calls itself for each.
pub(super) const MAX_BRACKETS: usize = 64;
/// How many operations may be inside one another.
pub(super) const MAX_LEVELS: usize = 32;
/// Functions whose result may be much longer than their arguments.
const GROWING: [&str; 3] = ["replace", "format", "join"];
/// How many calls of growing functions an expression may have.
pub(super) const MAX_GROWING_CALLS: usize = 2;
/// How many additions may be inside macros: each may double a list or a string.
pub(super) const MAX_ADDITIONS: usize = 8;
/// Functions and operators that go through a list, or compare two values to their ends.
const SEARCHING: [&str; 7] = [
    "@in",
    "_==_",
    "_!=_",
    "matches",
    "contains",
    "equivalent",
    "intersects",
];
/// How many bytes a pattern of `matches` may have. The compiled pattern takes many times as much memory.
pub(super) const LONGEST_PATTERN: usize = 1024;
/// How many bytes a string may grow to.
const MAX_BYTES: usize = 250_000_000;
/// How many steps an evaluation may take: nodes of the object to the power of the nesting.
const MAX_STEPS: usize = 50_000_000;

/// The properties of an expression that determine its cost for an object.
#[derive(Debug)]
pub(super) struct Cost {
    /// How many macros are inside one another.
    nesting: u32,
    /// How many items the lists and maps in the expression have.
    items: usize,
    /// How many calls of growing functions the expression has.
    growing_calls: usize,
    /// How many additions are inside macros.
    additions: usize,
    /// The expression splits strings into lists.
    has_split: bool,
    /// How many macros and searches through values are inside one another.
    searches: u32,
    /// The expression compiles regular expressions, which takes longer than their length shows.
    has_pattern: bool,
}

impl Cost {
    pub(super) fn new(expression: &IdedExpr) -> Result<Self, ExpressionError> {
        let cost = Self {
            nesting: deepest_nesting_of_macros(expression, &|_| 0),
            items: sum_over_expressions(expression, &|expression| match expression {
                Expr::List(_) | Expr::Map(_) => children(expression).len(),
                _ => 0,
            }),
            growing_calls: sum_over_expressions(expression, &|expression| {
                one_if_call_of(expression, &GROWING)
            }),
            additions: count_doublings_in_macros(expression),
            has_split: sum_over_expressions(expression, &|expression| one_if_call_of(expression, &["split"]))
                > 0,
            searches: deepest_nesting_of_macros(expression, &count_searches_of_one_expression),
            has_pattern: sum_over_expressions(expression, &|expression| {
                one_if_call_of(expression, &["matches"])
            }) > 0,
        };
        if cost.nesting > MAX_NESTED_MACROS {
            Err(ExpressionError::TooDeep(cost.nesting))
        } else if cost.growing_calls > MAX_GROWING_CALLS {
            Err(ExpressionError::TooManyCalls(cost.growing_calls))
        } else if cost.additions > MAX_ADDITIONS {
            Err(ExpressionError::TooManyAdditions(cost.additions))
        } else if sum_over_expressions(expression, &one_if_unbounded_pattern) > 0 {
            Err(ExpressionError::Pattern)
        } else {
            Ok(cost)
        }
    }

    /// Returns whether searches in these values, or patterns, may take long.
    pub(super) fn may_take_long<'v>(&self, values: impl Iterator<Item = &'v Value>) -> bool {
        // With one search the steps are the size of the values, which `check_values` has bounded.
        self.has_pattern
            || self.searches > 1 && {
                let size: usize = values.map(count_values).sum();
                size.checked_pow(self.searches)
                    .is_none_or(|steps| steps > MAX_STEPS)
            }
    }

    /// Returns an error if the evaluation on these values may take too many steps or bytes. `expression_length` is that
    /// of the expression in bytes.
    pub(super) fn check_values<'v>(
        &self,
        values: impl Iterator<Item = &'v Value>,
        expression_length: usize,
    ) -> Result<(), Excess> {
        let mut size = self.items;
        let mut longest = expression_length;
        for value in values {
            size += count_values(value);
            for_each_string_of_value(value, &mut |text| {
                longest = longest.max(text.len());
                size += if self.has_split { text.len() } else { 0 };
            });
        }
        size += if self.has_split { expression_length } else { 0 };
        let steps = size
            .saturating_pow(self.nesting.max(1))
            .saturating_mul(expression_length)
            .saturating_mul(1 << self.additions);
        let bytes = match u32::try_from(self.growing_calls).unwrap_or(u32::MAX) {
            0 => 0,
            growing => longest.saturating_pow(growing.saturating_add(1)),
        };
        if steps > MAX_STEPS {
            Err(Excess::Steps(steps))
        } else if bytes > MAX_BYTES {
            Err(Excess::Bytes(bytes))
        } else {
            Ok(())
        }
    }
}

/// An object is too large for an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Excess {
    /// The evaluation may take so many steps.
    #[error(
        "this object may take {0} steps, more than {MAX_STEPS}; use fewer macros, or lists with fewer fields"
    )]
    Steps(usize),
    /// Strings of the object may grow to so many bytes.
    #[error(
        "strings of this object may grow to {0} bytes, more than {MAX_BYTES}; use replace, format or join once"
    )]
    Bytes(usize),
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

/// Counts the values in a value, itself included.
fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count_values).sum(),
        Value::Object(fields) => fields.values().map(count_values).sum(),
        _ => 0,
    }
}

/// Calls `visit_string` for each string in a value.
fn for_each_string_of_value(value: &Value, visit_string: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit_string(text),
        Value::Array(items) => items
            .iter()
            .for_each(|item| for_each_string_of_value(item, visit_string)),
        Value::Object(fields) => fields
            .values()
            .for_each(|field| for_each_string_of_value(field, visit_string)),
        _ => {}
    }
}

/// Returns how many macros are inside one another at most. Each expression on the way counts with its `weight`, too.
/// The list that a macro goes through is evaluated once, so it does not count as inside the macro.
fn deepest_nesting_of_macros(expression: &IdedExpr, weight: &impl Fn(&Expr) -> u32) -> u32 {
    let deepest = |expressions: &[&IdedExpr]| {
        let inside = expressions
            .iter()
            .map(|inner| deepest_nesting_of_macros(inner, weight));
        inside.max().unwrap_or_default()
    };
    match &expression.expr {
        Expr::Comprehension(of) => {
            let inside = deepest(&[&of.loop_cond, &of.loop_step, &of.result]);
            let copies = u32::from(collects_values_of_other_variable(&of.loop_step, &of.iter_var));
            (inside + 1 + copies).max(deepest_nesting_of_macros(&of.iter_range, weight))
        }
        other => weight(other) + deepest(&children(other)),
    }
}

/// Returns whether a macro such as `map` collects a value for each item that is not a part of the item, but of another
/// variable. It may be a large list, which is then copied for each item.
fn collects_values_of_other_variable(step: &IdedExpr, item: &str) -> bool {
    match &step.expr {
        Expr::Call(call) if call.func_name == "_+_" && call.args.iter().any(is_result_variable_of_macro) => {
            let collected = call
                .args
                .iter()
                .filter(|inner| !is_result_variable_of_macro(inner));
            let elements = collected.flat_map(|list| children(&list.expr));
            elements
                .into_iter()
                .any(|element| root_variable(element).is_some_and(|root| root != item))
        }
        // A filter before the value.
        other => children(other)
            .into_iter()
            .any(|inner| collects_values_of_other_variable(inner, item)),
    }
}

/// Returns whether an expression is the variable in which a macro collects its result.
fn is_result_variable_of_macro(expression: &IdedExpr) -> bool {
    matches!(&expression.expr, Expr::Ident(name) if name.starts_with('@'))
}

/// Returns the variable that an expression is, or is a part of; `None` for other expressions.
fn root_variable(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Ident(name) => Some(name),
        Expr::Select(select) => root_variable(&select.operand),
        Expr::Call(call) if call.func_name.starts_with("_[") => root_variable(call.args.first()?),
        _ => None,
    }
}

/// Returns how many searches through values of an object an expression is: 2 for a function of two lists, which
/// compares each item of one with each item of the other. A search with a literal counts 0, because a literal is short.
fn count_searches_of_one_expression(expression: &Expr) -> u32 {
    match expression {
        Expr::Call(call)
            if ["equivalent", "intersects"].contains(&call.func_name.as_str())
                || (call.func_name == "contains" && call.args.len() == 2) =>
        {
            2
        }
        Expr::Call(call) if SEARCHING.contains(&call.func_name.as_str()) => u32::from(
            !call
                .args
                .iter()
                .any(|inner| is_literal_or_list_of_literals(&inner.expr)),
        ),
        _ => 0,
    }
}

/// Returns whether an expression is a literal, or a list of literals.
fn is_literal_or_list_of_literals(expression: &Expr) -> bool {
    match expression {
        Expr::Literal(_) => true,
        Expr::List(list) => list
            .elements
            .iter()
            .all(|item| is_literal_or_list_of_literals(&item.expr)),
        _ => false,
    }
}

/// Returns how many operations are inside one another.
pub(super) fn depth(expression: &IdedExpr) -> usize {
    let inside = children(&expression.expr).into_iter().map(depth);
    1 + inside.max().unwrap_or_default()
}

/// Returns the sum of `counted` for an expression and all expressions inside it.
fn sum_over_expressions(expression: &IdedExpr, counted: &impl Fn(&Expr) -> usize) -> usize {
    let inside = children(&expression.expr).into_iter();
    counted(&expression.expr)
        + inside
            .map(|inner| sum_over_expressions(inner, counted))
            .sum::<usize>()
}

/// Returns 1 for a call of one of the functions.
fn one_if_call_of(expression: &Expr, functions: &[&str]) -> usize {
    match expression {
        Expr::Call(call) => usize::from(functions.contains(&call.func_name.as_str())),
        _ => 0,
    }
}

/// Returns 1 for a call of `matches` whose pattern is not a literal, so that an object may make it long, or is long
/// itself.
fn one_if_unbounded_pattern(expression: &Expr) -> usize {
    match expression {
        Expr::Call(call) if call.func_name == "matches" => {
            let pattern = call.args.last().map(|pattern| &pattern.expr);
            let is_bounded = matches!(pattern, Some(Expr::Literal(LiteralValue::String(text))) if text.inner().len() <= LONGEST_PATTERN);
            usize::from(!is_bounded)
        }
        _ => 0,
    }
}

/// Counts the expressions inside macros that may double a value. These are additions (without those of which the macros
/// themselves are made), and lists and maps with at least two items that are not literals.
fn count_doublings_in_macros(expression: &IdedExpr) -> usize {
    match &expression.expr {
        Expr::Comprehension(of) => {
            sum_over_expressions(&of.loop_step, &one_if_may_double_value)
                + count_doublings_in_macros(&of.iter_range)
        }
        other => children(other).into_iter().map(count_doublings_in_macros).sum(),
    }
}

/// Returns 1 for an expression that may double a value.
fn one_if_may_double_value(expression: &Expr) -> usize {
    let mut parts = children(expression).into_iter();
    usize::from(match expression {
        Expr::Call(call) => call.func_name == "_+_" && !parts.any(is_result_variable_of_macro),
        Expr::List(_) | Expr::Map(_) => {
            parts
                .filter(|part| !matches!(part.expr, Expr::Literal(_)))
                .count()
                > 1
        }
        _ => false,
    })
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

    use super::super::expression::{Evaluation, Expression};
    use super::*;

    /// Each match compiles its pattern.
    #[test]
    fn patterns_that_are_compiled_too_often_are_given_up() {
        let object = json!({"spec": {"texts": vec!["a"; 2000]}});
        let text = r"spec.texts.all(text, !text.matches('\\pL{200}'))";
        let answer = Expression::compile(text).expect(text).evaluate(&object);
        assert!(
            matches!(&answer, Evaluation::Unclear(reason) if reason.contains("longer than 1s")),
            "{answer:?}"
        );
    }

    #[test]
    fn patterns_are_short_and_no_object_has_them() {
        let pattern = |length: usize| format!("a.b.all(c, !c.matches('{}'))", "x".repeat(length));
        for (text, expected) in [
            (pattern(LONGEST_PATTERN), true),
            (pattern(LONGEST_PATTERN + 1), false),
            ("matches(a, 'b')".to_owned(), true),
            ("matches('a', b)".to_owned(), false),
            ("a.matches(a.b)".to_owned(), false),
            ("a.matches('b' + a.b)".to_owned(), false),
            ("[a].exists(b, 'x'.matches(b))".to_owned(), false),
        ] {
            assert_eq!(Expression::compile(&text).is_ok(), expected, "{text}");
        }
    }

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
}
