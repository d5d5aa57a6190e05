//! Access to the fields and conditions of an object, for the rules of its status.

use serde_json::Value;

use super::Readiness;

/// An object whose fields are read by JSON pointer.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectView<'a>(pub(super) &'a Value);

impl<'a> ObjectView<'a> {
    /// Returns a text; `None` if the field is missing, empty or not a text.
    pub(super) fn text(self, pointer: &str) -> Option<&'a str> {
        self.0
            .pointer(pointer)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }

    pub(super) fn number(self, pointer: &str) -> Option<i64> {
        let number = self.0.pointer(pointer)?;
        // Some controllers write generations as strings.
        number.as_i64().or_else(|| number.as_str()?.parse().ok())
    }

    /// Returns a number, or zero if the field is missing: controllers leave out numbers of a status that are zero.
    pub(super) fn number_or_zero(self, pointer: &str) -> i64 {
        self.number(pointer).unwrap_or_default()
    }

    /// Returns whether the field is `true`.
    pub(super) fn is_true(self, pointer: &str) -> bool {
        self.0.pointer(pointer) == Some(&Value::Bool(true))
    }

    pub(super) fn array(self, pointer: &str) -> &'a [Value] {
        let array = self.0.pointer(pointer).and_then(Value::as_array);
        array.map_or(&[], Vec::as_slice)
    }

    pub(super) fn conditions(self) -> impl Iterator<Item = Condition<'a>> {
        self.array("/status/conditions").iter().map(Condition::new)
    }

    pub(super) fn condition(self, condition_type: &str) -> Option<Condition<'a>> {
        self.conditions()
            .find(|condition| condition.kind == condition_type)
    }

    pub(super) fn true_condition(self, condition_type: &str) -> Option<Condition<'a>> {
        self.condition(condition_type)
            .filter(|condition| condition.status == "True")
    }

    /// Returns whether the object has a condition of this type that is True.
    pub(super) fn has_true_condition(self, condition_type: &str) -> bool {
        self.true_condition(condition_type).is_some()
    }
}

/// One condition of a status.
#[derive(Debug, Clone, Copy)]
pub(super) struct Condition<'a> {
    pub(super) kind: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

impl<'a> Condition<'a> {
    pub(super) fn new(condition: &'a Value) -> Self {
        let text = |field: &str| match &condition[field] {
            Value::String(text) => text.as_str(),
            // Some controllers write a boolean.
            Value::Bool(true) => "True",
            Value::Bool(false) => "False",
            _ => "",
        };
        Self {
            kind: text("type"),
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
        }
    }
}

impl std::fmt::Display for Condition<'_> {
    /// Writes the reason and the message, if they exist.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.message, self.reason) {
            ("", "") => write!(f, "its condition {} is {}", self.kind, self.status),
            ("", reason) => f.write_str(reason),
            (message, "") => f.write_str(message),
            (message, reason) => write!(f, "{reason}: {message}"),
        }
    }
}

/// Returns the state of an object with fewer parts than wanted (`2 of 3 replicas are ready`); `None` if it has enough.
pub(super) fn in_progress_if_too_few(have: i64, wanted: i64, what: &str) -> Option<Readiness> {
    (have < wanted).then(|| Readiness::in_progress(format!("{have} of {wanted} {what}")))
}
