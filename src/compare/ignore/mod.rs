//! Fields that a set leaves to other managers: rules in the format of Flux's `spec.ignore`, and the body of an object in
//! which these fields have their live values.
//!
//! [`IgnoreRules::mark_ignored_fields`] stores the ignored fields in each object of the manifests once. Change
//! detection, dry runs and writes then call [`body_with_live_values`] for the object that they compare or send.

mod body_with_live_values;
mod managed_fields_entries;
mod rule_parser;
mod target;

#[cfg(test)]
mod tests;

pub use body_with_live_values::{BodyPurpose, body_with_live_values};
pub(in crate::compare) use managed_fields_entries::ManagedFieldsEntries;
pub use rule_parser::{HOW_TO_WRITE_RULES, may_be_ignored};

use serde_json::Value;

use super::rule_file::RuleFileError;
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::object::Object;
use crate::model::pointer::Pointer;
use target::RuleTarget;

/// Returns the body of an object of the manifests over this live object. Without ignored fields, the body is the
/// manifest.
pub fn desired_body_with_live_values(
    object: &DesiredObject,
    live: &Value,
    manager: &str,
    purpose: BodyPurpose,
) -> Object {
    if object.ignored.is_empty() {
        return object.object.clone();
    }
    body_with_live_values(&object.object, &object.ignored, live, manager, purpose)
}

/// Returns the ignored fields of an object whose live values would be lost if the object was deleted and created from
/// its manifest. A field that the manifest lacks and no manager owns is not among them: the server set it as a default,
/// and does so again.
pub fn ignored_fields_lost_by_recreation(
    object: &DesiredObject,
    live: &Value,
    manager: &str,
) -> Vec<Pointer> {
    if object.ignored.is_empty() {
        return Vec::new();
    }
    let manifest = object.object.value();
    let mut lost_fields = object.ignored.clone();
    lost_fields.retain(|pointer| {
        let ignored = std::slice::from_ref(pointer);
        let body = body_with_live_values(&object.object, ignored, live, manager, BodyPurpose::Send);
        body.value() != manifest
            || body_with_live_values::manifest_lacks_owned_field(live, &manifest, pointer.segments())
    });
    lost_fields
}

/// Returns an object without these fields.
pub fn remove_fields(object: &Value, fields: &[Pointer]) -> Value {
    let mut reduced = object.clone();
    for pointer in body_with_live_values::order_pointers(fields, object) {
        body_with_live_values::remove_field_and_empty_containers(&mut reduced, pointer.segments());
    }
    reduced
}

/// The rules of a file.
#[derive(Debug, Clone, Default)]
pub struct IgnoreRules {
    rules: Vec<IgnoreRule>,
}

/// Some fields of some objects.
#[derive(Debug, Clone)]
struct IgnoreRule {
    /// The line on which the rule begins.
    line: usize,
    target: RuleTarget,
    paths: Vec<Pointer>,
}

impl IgnoreRules {
    /// Reads the rules of a file.
    pub fn read(text: &str) -> Result<Self, RuleFileError> {
        rule_parser::read(text)
    }

    /// Stores in each object of the manifests which of its fields are ignored. Returns warnings for rules that match no
    /// object, and for fields that no matching manifest has. `file` is the name of the rule file for the warnings.
    pub fn mark_ignored_fields(&self, desired: &mut Desired, file: &str) -> Vec<String> {
        let mut usages: Vec<RuleUsage> = self.rules.iter().map(RuleUsage::new).collect();
        for object in desired.members.iter_mut().chain(&mut desired.parent) {
            object.ignored = self.find_ignored_fields(object, &mut usages);
        }
        self.rules
            .iter()
            .zip(&usages)
            .flat_map(|(rule, usage)| rule.unused_warnings(usage, file))
            .collect()
    }

    /// Returns the ignored fields of an object, and records in `usages` which rules and paths apply to it.
    fn find_ignored_fields(&self, object: &DesiredObject, usages: &mut [RuleUsage]) -> Vec<Pointer> {
        let mut value = None;
        let mut ignored = Vec::new();
        for (rule, usage) in self.rules.iter().zip(usages) {
            if !rule.target.matches(object) {
                continue;
            }
            usage.matches_object = true;
            let value = value.get_or_insert_with(|| object.object.value());
            for (path, is_found) in rule.paths.iter().zip(&mut usage.found_paths) {
                let pointer = to_sent_pointer(path, object);
                *is_found |= pointer.is_field_of(value);
                if !ignored.contains(&pointer) {
                    ignored.push(pointer);
                }
            }
        }
        ignored
    }
}

/// Returns the pointer for an object as it is sent: the `stringData` of a Secret is sent as `data`.
fn to_sent_pointer(pointer: &Pointer, object: &DesiredObject) -> Pointer {
    match pointer.segments() {
        [first, rest @ ..] if first == "stringData" && object.is_secret() => {
            Pointer::from_segments(std::iter::once("data".to_owned()).chain(rest.iter().cloned()))
        }
        _ => pointer.clone(),
    }
}

/// The objects and fields that a rule was found to apply to.
struct RuleUsage {
    /// The rule matches an object.
    matches_object: bool,
    /// For each path of the rule: a matching manifest has the field.
    found_paths: Vec<bool>,
}

impl RuleUsage {
    fn new(rule: &IgnoreRule) -> Self {
        Self {
            matches_object: false,
            found_paths: vec![false; rule.paths.len()],
        }
    }
}

impl IgnoreRule {
    fn unused_warnings(&self, usage: &RuleUsage, file: &str) -> Vec<String> {
        if !usage.matches_object {
            return vec![format!(
                "{file}:{}: this rule matches no object of the manifests",
                self.line
            )];
        }
        self.paths
            .iter()
            .zip(&usage.found_paths)
            .filter(|(_, is_found)| !**is_found)
            .map(|(path, _)| format!("{file}:{}: no matching manifest has {path}", self.line))
            .collect()
    }
}
