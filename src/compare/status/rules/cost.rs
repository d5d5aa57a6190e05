//! The cost of an expression: limits on what it may cost when it is compiled, and on what it may cost for an object
//! before it is evaluated.

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};
use serde_json::Value;

use super::expression::ExpressionError;

/// The limit of macros inside one another.
pub(super) const MAX_NESTED_MACROS: u32 = 3;
/// The limit of brackets that are open at once. The parser calls itself for each.
pub(super) const MAX_BRACKETS: usize = 64;
/// The limit of operations inside one another.
pub(super) const MAX_LEVELS: usize = 32;
/// The limit of additions inside macros: each may double a list or a string.
pub(super) const MAX_ADDITIONS: usize = 8;
/// The limit of a pattern of `matches` in bytes. The compiled pattern takes many times as much memory.
pub(super) const LONGEST_PATTERN: usize = 1024;
/// The limit of values that are searched without a deadline. A comparison of two of them takes almost no time.
const MAX_VALUES_OF_FAST_SEARCH: usize = 100;
/// The limit of steps of an evaluation: nodes of the object to the power of the nesting.
const MAX_STEPS: usize = 50_000_000;

/// The properties of an expression that determine its cost for an object.
#[derive(Debug)]
pub(super) struct Cost {
    /// The number of macros inside one another.
    nesting: u32,
    /// The number of items in the lists and maps of the expression.
    items: usize,
    /// The number of additions inside macros.
    additions: usize,
    /// The expression compiles regular expressions, which takes longer than their length shows.
    has_pattern: bool,
}

impl Cost {
    pub(super) fn new(expression: &IdedExpr) -> Result<Self, ExpressionError> {
        let cost = Self {
            nesting: deepest_nesting_of_macros(expression),
            items: sum_over_expressions(expression, &|expression| match expression {
                Expr::List(_) | Expr::Map(_) => children(expression).len(),
                _ => 0,
            }),
            additions: count_doublings_in_macros(expression),
            has_pattern: sum_over_expressions(expression, &one_if_pattern) > 0,
        };
        if cost.nesting > MAX_NESTED_MACROS {
            Err(ExpressionError::TooDeep(cost.nesting))
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
        self.has_pattern || values.map(count_values).sum::<usize>() > MAX_VALUES_OF_FAST_SEARCH
    }

    /// Returns an error if the evaluation on these values may take too many steps. `expression_length` is that of the
    /// expression in bytes.
    pub(super) fn check_values<'v>(
        &self,
        values: impl Iterator<Item = &'v Value>,
        expression_length: usize,
    ) -> Result<(), TooManySteps> {
        let size = self.items + values.map(count_values).sum::<usize>();
        let steps = size
            .saturating_pow(self.nesting.max(1))
            .saturating_mul(expression_length)
            .saturating_mul(1 << self.additions);
        if steps > MAX_STEPS {
            Err(TooManySteps(steps))
        } else {
            Ok(())
        }
    }
}

/// An object is too large for an expression, whose evaluation may take so many steps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this object may take {0} steps, more than {MAX_STEPS}; use fewer macros, or lists with fewer fields"
)]
pub(super) struct TooManySteps(usize);

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

/// Returns how many macros are inside one another at most. The list that a macro goes through is evaluated once, so it
/// does not count as inside the macro.
fn deepest_nesting_of_macros(expression: &IdedExpr) -> u32 {
    match &expression.expr {
        Expr::Comprehension(of) => {
            let inside = deepest_nesting_in_any(&[&of.loop_cond, &of.loop_step, &of.result]);
            let copies = u32::from(collects_values_of_other_variable(&of.loop_step, &of.iter_var));
            (inside + 1 + copies).max(deepest_nesting_of_macros(&of.iter_range))
        }
        other => deepest_nesting_in_any(&children(other)),
    }
}

fn deepest_nesting_in_any(expressions: &[&IdedExpr]) -> u32 {
    let depths = expressions.iter().map(|inner| deepest_nesting_of_macros(inner));
    depths.max().unwrap_or_default()
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

/// Returns 1 for a call of `matches`.
fn one_if_pattern(expression: &Expr) -> usize {
    usize::from(matches!(expression, Expr::Call(call) if call.func_name == "matches"))
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
