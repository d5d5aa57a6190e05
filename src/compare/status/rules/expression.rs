//! One CEL expression of a rule: compiled once, evaluated on objects, bounded in time.
//!
//! The variables are the fields at the top of an object, as in Flux, and `self`, the whole object. The
//! functions are those of the standard library without times, of the extensions `strings` and `encoders`, of optional
//! values, and of `sets`, which the crate `cel` lacks.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr};
use cel::{Context, Env, ExecutionError, Program};
use serde_json::Value;

use super::deadline::Slowness;
use super::inputs::{add_set_functions, to_cel, value_of_variable};

/// The limit of an expression in bytes.
const LONGEST: usize = 4096;
/// The time limit of an evaluation for one object.
const DEADLINE: Duration = Duration::from_secs(1);
/// The limit of operations inside one another, for example in a long chain: an evaluation calls itself for each.
const MAX_LEVELS: usize = 32;
/// The bytes of stack for the parser, which may take 20 KiB for an operation, and more for a bracket.
const PARSER_STACK: usize = 256 << 20;

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Expression {
    text: String,
    program: Arc<Program>,
    slowness: Slowness,
}

/// The result of an expression for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Evaluation {
    /// The expression is true.
    Yes,
    /// The expression is false.
    No,
    /// The expression cannot be evaluated, for this reason: most often, a field is missing.
    Unclear(String),
}

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut environment = Env::stdlib();
    // Adding fails only if two extensions declare the same variable, and these two do not.
    for extension in [cel::extensions::strings, cel::extensions::encoders] {
        let added = environment.add_extension(extension);
        debug_assert!(added.is_ok(), "{added:?}");
    }
    Arc::new(environment)
});

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be compiled.
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!(
                "the expression has {} bytes, more than {LONGEST}",
                text.len()
            ));
        }
        // The parser needs more stack than the thread of the caller may have.
        std::thread::scope(|scope| {
            std::thread::Builder::new()
                .stack_size(PARSER_STACK)
                .spawn_scoped(scope, || Self::parse_and_check_limits(text))
                .map_err(|error| error.to_string())?
                .join()
                .unwrap_or_else(|_| Err("malformed".to_owned()))
        })
    }

    /// Parses an expression, and checks the limits of its depth, and that all its functions exist. Needs a stack of
    /// [`PARSER_STACK`] bytes.
    fn parse_and_check_limits(text: &str) -> Result<Self, String> {
        let program = ENVIRONMENT.compile(text).map_err(|errors| {
            let first = errors.errors.into_iter().next();
            first.map_or_else(|| "malformed".to_owned(), |error| error.msg)
        })?;
        let levels = depth(program.expression());
        if levels > MAX_LEVELS {
            return Err(format!(
                "{levels} operations are inside one another, more than {MAX_LEVELS}"
            ));
        }
        if let Some(name) = find_unknown_function(program.expression()) {
            return Err(format!("no such function {name:?}"));
        }
        Ok(Self {
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            program: Arc::new(program),
            slowness: Slowness::default(),
        })
    }

    /// Returns the text of the expression on one line.
    pub(super) fn one_line_text(&self) -> &str {
        &self.text
    }

    pub(super) fn evaluate(&self, object: &Value) -> Evaluation {
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        for name in self.program.references().variables() {
            if let Some(value) = value_of_variable(object, name) {
                context.add_variable_from_value(name, to_cel(value));
            }
        }
        if add_set_functions(&mut context).is_err() {
            return Evaluation::Unclear("the functions of sets cannot be declared".to_owned());
        }
        let program = Arc::clone(&self.program);
        self.slowness
            .evaluate_within(DEADLINE, move || execute(&program, &context))
    }
}

fn execute(program: &Program, context: &Context<'_, '_>) -> Evaluation {
    match program.execute(context) {
        Ok(cel::Value::Bool(true)) => Evaluation::Yes,
        Ok(cel::Value::Bool(false)) => Evaluation::No,
        Ok(other) => Evaluation::Unclear(format!("it is of type {}, not bool", other.type_of())),
        Err(ExecutionError::NoSuchKey(name) | ExecutionError::UndeclaredReference(name)) => {
            Evaluation::Unclear(format!("{name} is missing"))
        }
        Err(error) => Evaluation::Unclear(error.to_string()),
    }
}

/// The functions that an expression may call. Operators, whose names do not begin with a letter, are always allowed.
/// Functions whose result may be much longer than their arguments (`replace`, `format`, `join`, `quote`, `split`) are
/// not offered: an object could make them take all memory, and a status can be compared without them.
const FUNCTIONS: &str = "size contains startsWith endsWith matches string int uint double bool bytes type dyn \
    charAt indexOf lastIndexOf lowerAscii reverse substring trim upperAscii \
    base64.encode base64.decode sets.contains sets.equivalent sets.intersects \
    optional.of optional.none optional.ofNonZeroValue hasValue value or orValue";

/// Returns the first function that an expression calls and that is not in [`FUNCTIONS`].
fn find_unknown_function(expression: &IdedExpr) -> Option<String> {
    if let Expr::Call(call) = &expression.expr {
        let name = call.func_name.as_str();
        let is_operator = !name.starts_with(|first: char| first.is_ascii_alphabetic());
        let qualified = match call.target.as_ref().map(|target| &target.expr) {
            Some(Expr::Ident(namespace)) => format!("{namespace}.{name}"),
            _ => name.to_owned(),
        };
        let mut functions = FUNCTIONS.split_whitespace();
        if !is_operator && !functions.any(|known| known == name || known == qualified) {
            return Some(qualified);
        }
    }
    children(&expression.expr)
        .into_iter()
        .find_map(find_unknown_function)
}

/// Returns how many operations are inside one another.
fn depth(expression: &IdedExpr) -> usize {
    let inside = children(&expression.expr).into_iter().map(depth);
    1 + inside.max().unwrap_or_default()
}

/// Returns the expressions directly inside an expression.
fn children(expression: &Expr) -> Vec<&IdedExpr> {
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

fn expressions_in_entries(entries: &[IdedEntryExpr]) -> Vec<&IdedExpr> {
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

    #[track_caller]
    fn evaluate(text: &str, object: &Value) -> Evaluation {
        let compiled = Expression::compile(text);
        compiled
            .unwrap_or_else(|error| panic!("{text}: {error}"))
            .evaluate(object)
    }

    #[test]
    fn expressions_hold_or_not() {
        let object = json!({
            "metadata": {"generation": 3, "labels": {"app": "web"}},
            "spec": {"replicas": 3, "share": 0.5},
            "status": {
                "observedGeneration": 3, "ready": 2, "message": "a,b",
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "Late", "status": "False"}],
            },
        });
        for (text, expected) in [
            ("true", true),
            ("status.ready < spec.replicas", true),
            ("status.ready + 1 == spec.replicas", true),
            ("status.ready >= 2.5", false),
            ("spec.share == 0.5 && spec.share < 1", true),
            (
                "status.conditions.filter(c, c.type == 'Ready').all(c, c.status == 'True')",
                true,
            ),
            (
                "status.conditions.exists(c, c.type == 'Late' && c.status == 'True')",
                false,
            ),
            ("status.conditions.exists_one(c, c.status == 'True')", true),
            ("status.conditions.map(c, c.type).size() == 2", true),
            ("has(status.gone) && status.gone", false),
            (
                "has(self.status) && !has(self.data) && self.status.ready == 2",
                true,
            ),
            ("'app' in metadata.labels && !('x' in metadata.labels)", true),
            // Optional values.
            ("status.?gone.orValue('x') == 'x'", true),
            ("status.?gone.hasValue() || status[?'ready'].hasValue()", true),
            ("optional.of(1).value() == 1 && !optional.none().hasValue()", true),
            // The extensions.
            (
                "status.message.indexOf(',') == 1 && status.message.upperAscii() == 'A,B'",
                true,
            ),
            ("' x '.trim() == 'x' && 'abc'.substring(1) == 'bc'", true),
            (
                "base64.encode(b'hello') == 'aGVsbG8=' && base64.decode('aGVsbG8=') == b'hello'",
                true,
            ),
            ("sets.contains([1, 2], [2]) && !sets.contains([1], [2])", true),
            (
                "sets.equivalent([1, 1], [1]) && sets.intersects([1, 2], [2, 3])",
                true,
            ),
            ("status.message.matches('^a.b$')", true),
            ("int('3') == spec.replicas && string(spec.replicas) == '3'", true),
            ("type(status.ready) == int", true),
        ] {
            let expected = if expected { Evaluation::Yes } else { Evaluation::No };
            assert_eq!(evaluate(text, &object), expected, "{text}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        for (text, object, expected) in [
            ("status.phase == 'x'", json!({}), "status is missing"),
            ("status.phase == 'x'", json!({"status": {}}), "phase is missing"),
            (
                "status.n > 'x'",
                json!({"status": {"n": 1}}),
                "no matching overload",
            ),
            ("status", json!({"status": 1}), "not bool"),
        ] {
            let answer = evaluate(text, &object);
            let Evaluation::Unclear(reason) = answer else {
                panic!("{text}: {answer:?}");
            };
            assert!(reason.contains(expected), "{text}: {reason}");
        }
    }

    fn brackets(open: char, close: char, count: usize) -> String {
        let repeated = |letter: char| letter.to_string().repeat(count);
        format!("{}1{} == 1", repeated(open), repeated(close))
    }

    #[test]
    fn no_expression_overflows_the_stack() {
        for (text, is_compiled) in [
            (brackets('(', ')', 64), true),
            (brackets('[', ']', 64), false),
            (brackets('(', ')', 2000), false),
            (brackets('[', ']', 2000), false),
            (brackets('{', '}', 2000), false),
            (format!("a{}", ".b".repeat(30)), true),
            (format!("a{}", " || a".repeat(800)), true),
            (format!("{}a", "!".repeat(4000)), true),
            (format!("a{}", ".b".repeat(2000)), false),
            (format!("a{}", "[0]".repeat(1300)), false),
            (format!("1{} == 1", "+1".repeat(2000)), false),
            (format!("1{}", "<1".repeat(2000)), false),
            (format!("a{}", ".size()".repeat(580)), false),
            (format!("a{}", ".map(b,b)".repeat(450)), false),
            (format!("{}1", "a?1:".repeat(1000)), false),
        ] {
            let compiled = Expression::compile(&text).map(|compiled| compiled.evaluate(&json!({"a": true})));
            assert_eq!(compiled.is_ok(), is_compiled, "{text}: {compiled:?}");
        }
    }

    #[test]
    fn invalid_expressions_are_refused() {
        let long = "true && ".repeat(600) + "true";
        for (text, expected) in [
            ("status.", "ntax"),
            ("", "ntax"),
            ("((", "ntax"),
            ("fine(status)", "no such function \"fine\""),
            ("status.conditions.any(c, c)", "no such function"),
            (
                "timestamp('2026-01-01T00:00:00Z') > status.at",
                "no such function \"timestamp\"",
            ),
            (long.as_str(), "bytes"),
            (
                "status.text.replace('a', 'aa') == ''",
                "no such function \"replace\"",
            ),
            ("status.text.split(',').size() == 1", "no such function \"split\""),
        ] {
            let error = Expression::compile(text).map(|_| ()).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        Expression::compile("a.filter(b, b.x).filter(b, b.y).map(b, b.z).all(b, b)")
            .expect("a chain is flat");
    }

    #[test]
    fn an_evaluation_that_takes_too_long_is_given_up() {
        let numbers: Vec<i32> = (0..30_000).collect();
        let object = json!({"spec": {"l": numbers}});
        for text in [
            "spec.l.all(x, x in spec.l)",
            "spec.l.all(x, spec.l.all(y, x != y || x == y))",
            // Each match compiles its pattern.
            r"spec.l.all(x, !string(x).matches('\\pL{200}'))",
        ] {
            let compiled = Expression::compile(text).expect(text);
            for _ in 0..2 {
                let found = compiled.evaluate(&object);
                assert!(
                    matches!(&found, Evaluation::Unclear(reason) if reason.contains("longer than 1s")),
                    "{text}: {found:?}"
                );
            }
        }
    }
}
