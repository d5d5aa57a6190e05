//! The expressions of GitHub Actions, as far as the action and its workflow use them: values, `==`,
//! `!=`, `&&` and `||`, without parentheses, and
//! `always()`.

use serde_json::Value;

/// The only function: a condition with it also holds once a step has failed.
const ALWAYS: &str = "always()";

/// Returns whether a step with this `if` is considered once an earlier one has failed.
pub(super) fn ignores_failures(condition: Option<&str>) -> bool {
    condition.is_some_and(|condition| condition.contains(ALWAYS))
}

/// The text with the value of each `${{ … }}` in its place.
pub(super) fn expand(text: &str, context: &Value) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${{") {
        let (expression, after) = behind.split_once("}}").expect("the end of an expression");
        expanded.push_str(before);
        expanded.push_str(&as_text(&evaluate(expression, context)));
        rest = after;
    }
    expanded + rest
}

/// Returns whether a step or job with this `if` runs; `None` runs.
pub(super) fn holds(condition: Option<&str>, context: &Value) -> bool {
    condition.is_none_or(|condition| is_true(&evaluate(condition, context)))
}

fn evaluate(expression: &str, context: &Value) -> Value {
    if let Some((left, right)) = expression.split_once("||") {
        let left = evaluate(left, context);
        return if is_true(&left) {
            left
        } else {
            evaluate(right, context)
        };
    }
    if let Some((left, right)) = expression.split_once("&&") {
        let left = evaluate(left, context);
        return if is_true(&left) {
            evaluate(right, context)
        } else {
            left
        };
    }
    for (operator, wanted) in [("==", true), ("!=", false)] {
        if let Some((left, right)) = expression.split_once(operator) {
            let is_equal = as_text(&evaluate(left, context)) == as_text(&evaluate(right, context));
            return Value::Bool(is_equal == wanted);
        }
    }
    value(expression.trim(), context)
}

fn value(word: &str, context: &Value) -> Value {
    if let Some(literal) = word.strip_prefix('\'') {
        return Value::from(literal.strip_suffix('\'').expect("the end of a literal"));
    }
    if word == ALWAYS {
        return Value::Bool(true);
    }
    assert!(
        word.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)),
        "not understood: {word}"
    );
    let known = word.split('.').next().unwrap_or_default();
    assert!(context.get(known).is_some(), "there is no context {known}");
    let pointer = format!("/{}", word.replace('.', "/"));
    context.pointer(&pointer).cloned().unwrap_or(Value::Null)
}

fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn is_true(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && *value != ""
}

#[test]
fn expressions_are_evaluated() {
    let context = serde_json::json!({"inputs": {"a": "x", "b": ""}, "github": {"run_id": 7}});
    let cases = [
        ("${{ inputs.a }}-${{ github.run_id }}", "x-7"),
        ("${{ inputs.b || inputs.a }}", "x"),
        ("${{ inputs.missing }}", ""),
        ("${{ inputs.a == 'x' && inputs.b != 'y' }}", "true"),
        ("${{ inputs.a == 'y' || inputs.b == 'y' }}", "false"),
    ];
    for (text, expanded) in cases {
        assert_eq!(expand(text, &context), expanded, "{text}");
    }
    assert!(holds(None, &context) && !holds(Some("inputs.b"), &context));
}
