//! Fields that a set leaves to others: rules in the format of Flux's `spec.ignore` and of Argo CD's
//! `ignoreDifferences`, and the body of an object in which these fields are as they are live.
//!
//! Pure. [`IgnoreRules::mark`] notes the fields at the objects of the manifests once; change detection,
//! dry runs and writes then ask [`body`] for what is compared or sent.

mod body_with_live_values;
mod file;
mod labels;
mod managed_fields_entries;
mod target;

#[cfg(test)]
mod tests;

pub use body_with_live_values::{Purpose, body};
pub use file::{IgnoreFileError, may_be_ignored};

use serde_json::Value;

use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::object::Object;
use crate::model::pointer::Pointer;
use target::RuleTarget;

/// Returns the body of an object of the manifests over this live object; without ignored fields, it is
/// the manifest.
pub fn body_of(object: &DesiredObject, live: &Value, manager: &str, purpose: Purpose) -> Object {
    if object.ignored.is_empty() {
        return object.object.clone();
    }
    body(&object.object, &object.ignored, live, manager, purpose)
}

/// Returns the ignored fields of an object whose live values would be lost if it was deleted, and created
/// from its manifest. What the manifest lacks, and no manager owns, is a default.
pub fn reset_by_creation(object: &DesiredObject, live: &Value, manager: &str) -> Vec<Pointer> {
    if object.ignored.is_empty() {
        return Vec::new();
    }
    let manifest = object.object.value();
    let mut reset = object.ignored.clone();
    reset.retain(|pointer| {
        let ignored = std::slice::from_ref(pointer);
        let kept = body(&object.object, ignored, live, manager, Purpose::Send);
        kept.value() != manifest || body_with_live_values::has_more_than(live, &manifest, pointer.segments())
    });
    reset
}

/// Returns an object without these fields.
pub fn without(object: &Value, ignored: &[Pointer]) -> Value {
    let mut left = object.clone();
    for pointer in ignored {
        body_with_live_values::remove(&mut left, pointer.segments());
    }
    left
}

/// The rules of a file.
#[derive(Debug, Clone, Default)]
pub struct IgnoreRules {
    rules: Vec<IgnoreRule>,
}

/// Some fields of some objects.
#[derive(Debug, Clone)]
struct IgnoreRule {
    /// The line on which it begins.
    line: usize,
    target: RuleTarget,
    paths: Vec<IgnoredField>,
}

/// A field of a rule.
#[derive(Debug, Clone)]
struct IgnoredField {
    pointer: Pointer,
    line: usize,
}

impl IgnoreRules {
    /// Reads the rules of a file.
    pub fn read(text: &str) -> Result<Self, IgnoreFileError> {
        file::read(text)
    }

    /// Notes at each object of the manifests which of its fields are ignored. Returns warnings for rules
    /// that match no object, and for fields that no matching manifest has. `file` is the name for them.
    pub fn mark(&self, desired: &mut Desired, file: &str) -> Vec<String> {
        let mut used: Vec<Used> = self.rules.iter().map(Used::new).collect();
        for object in desired.members.iter_mut().chain(&mut desired.parent) {
            object.ignored = self.fields_of(object, &mut used);
        }
        self.rules
            .iter()
            .zip(&used)
            .flat_map(|(rule, used)| rule.warnings(used, file))
            .collect()
    }

    fn fields_of(&self, object: &DesiredObject, used: &mut [Used]) -> Vec<Pointer> {
        let mut value = None;
        let mut ignored = Vec::new();
        for (rule, used) in self.rules.iter().zip(used) {
            if !rule.target.matches(object) {
                continue;
            }
            used.matches = true;
            let value = value.get_or_insert_with(|| object.object.value());
            for (path, is_hit) in rule.paths.iter().zip(&mut used.hits) {
                let pointer = pointer_as_sent(&path.pointer, object);
                *is_hit |= pointer.is_in(value);
                if !ignored.contains(&pointer) {
                    ignored.push(pointer);
                }
            }
        }
        ignored
    }
}

/// Returns the pointer for an object as it is sent: the `stringData` of a Secret is sent as `data`.
fn pointer_as_sent(pointer: &Pointer, object: &DesiredObject) -> Pointer {
    match pointer.segments() {
        [first, rest @ ..] if first == "stringData" && object.is_secret() => {
            Pointer::from_segments(std::iter::once("data".to_owned()).chain(rest.iter().cloned()))
        }
        _ => pointer.clone(),
    }
}

/// What a rule had an effect on.
struct Used {
    matches: bool,
    hits: Vec<bool>,
}

impl Used {
    fn new(rule: &IgnoreRule) -> Self {
        Self {
            matches: false,
            hits: vec![false; rule.paths.len()],
        }
    }
}

impl IgnoreRule {
    fn warnings(&self, used: &Used, file: &str) -> Vec<String> {
        if !used.matches {
            return vec![format!(
                "{file}:{}: this rule matches no object of the manifests",
                self.line
            )];
        }
        self.paths
            .iter()
            .zip(&used.hits)
            .filter(|(_, is_hit)| !**is_hit)
            .map(|(path, _)| format!("{file}:{}: no matching manifest has {}", path.line, path.pointer))
            .collect()
    }
}
