//! Prints all field conflicts of a run together, with the ways to resolve them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::event::ObjectOutcome;
use crate::model::identity::ObjectKey;
use crate::model::message::{FieldConflict, Message};
use crate::model::pointer::Pointer;
use crate::model::text::{counted, parse_boolean};
use crate::report::output::{print_message, yaml};
use crate::report::style::Colors;
use crate::report::text_lines::Label;

/// The most conflicts that are shown. Output documents have all of them.
const MAX_SHOWN: usize = 20;

/// The most objects for which a rule of `--ignore` is shown.
const MAX_RULES: usize = 5;

/// The field conflicts of a run.
#[derive(Debug, Default)]
pub(super) struct FieldConflicts(Vec<FieldConflict>);

impl FieldConflicts {
    /// Collects the conflicts of an outcome. Returns whether it has any; its error then need not be printed by itself.
    pub(super) fn add(&mut self, outcome: &ObjectOutcome) -> bool {
        let conflicts = outcome.error.iter().flat_map(|error| error.conflicts.iter());
        let before = self.0.len();
        self.0.extend(conflicts.cloned());
        self.0.len() > before
    }

    /// Prints the conflicts, if there are any.
    pub(super) fn print(&self, colors: Colors) {
        let Some(message) = self.message() else { return };
        print_message(Label::Error, &message, colors);
        // A user copies the rules, so they have no label.
        for line in self.ignore_rule_lines() {
            print_message(Label::Plain, &line.into(), colors);
        }
    }

    fn message(&self) -> Option<Message> {
        if self.0.is_empty() {
            return None;
        }
        let count = counted(self.0.len(), "conflict");
        let mut message = Message::new(format!(
            "Apply failed with {count}: other field managers own these fields"
        ))
        .with_details(self.0.iter().take(MAX_SHOWN).flat_map(conflict_lines));
        let more = self.0.len().saturating_sub(MAX_SHOWN);
        if more > 0 {
            let more = format!("and {}; -o json lists all", counted(more, "more conflict"));
            message = message.with_details([more]);
        }
        message = message
            .with_hint("remove the fields from the manifests")
            .with_hint(format!(
                "or take them from their owners: add --force-conflicts{}",
                self.force_conflicts_value()
            ));
        if self.0.iter().any(|conflict| conflict.pointer.is_some()) {
            message =
                message.with_hint("or leave them to their owners with --ignore FILE, where FILE contains:");
        }
        Some(message)
    }

    /// Returns `=MANAGER,...` with the managers that own the fields. Returns nothing if the shell or the flag would
    /// misread a name, such as one with a space or a comma.
    fn force_conflicts_value(&self) -> String {
        let owners = self.0.iter().map(|conflict| conflict.owner.as_str());
        // The server puts the name in quotes, sometimes with a subresource behind it.
        let names: BTreeSet<&str> = owners
            .map(|owner| owner.split('"').nth(1).unwrap_or(owner))
            .collect();
        if !names.iter().all(|name| is_read_as_name(name)) {
            return String::new();
        }
        format!("={}", names.into_iter().collect::<Vec<_>>().join(","))
    }

    /// Returns the lines of rules for a file of `--ignore`, sorted by object.
    fn ignore_rule_lines(&self) -> Vec<String> {
        let mut objects: BTreeMap<&ObjectKey, Vec<&Pointer>> = BTreeMap::new();
        for conflict in &self.0 {
            if let Some(pointer) = &conflict.pointer {
                objects.entry(&conflict.object).or_default().push(pointer);
            }
        }
        let more = objects.len().saturating_sub(MAX_RULES);
        let rules = objects.into_iter().take(MAX_RULES).map(|(key, pointers)| {
            let paths: Vec<String> = pointers.into_iter().map(ToString::to_string).collect();
            json!({"paths": paths, "target": rule_target(key)})
        });
        let text = yaml(&rules.collect::<Vec<_>>());
        let more = (more > 0).then(|| format!("# and the same for {}", counted(more, "more object")));
        text.lines().map(str::to_owned).chain(more).collect()
    }
}

/// Returns whether the shell and the flag `--force-conflicts` read the text as the name of a manager.
fn is_read_as_name(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._/-:".contains(&byte))
        && parse_boolean(text).is_err()
}

/// Returns the lines of one conflict.
fn conflict_lines(conflict: &FieldConflict) -> Vec<String> {
    let FieldConflict { field, owner, .. } = conflict;
    let mut lines = vec![format!("{}: {}: {field}", conflict.place, conflict.object)];
    let since = match &conflict.since {
        Some(time) => format!(", last write {time}"),
        None => String::new(),
    };
    lines.push(format!("  owner:    {owner}{since}"));
    if let Some([live, manifest]) = &conflict.values {
        lines.push(format!("  live:     {live}"));
        lines.push(format!("  manifest: {manifest}"));
    }
    lines
}

/// Returns the target of a rule that applies to one object only: regular expressions that match its texts alone.
fn rule_target(key: &ObjectKey) -> BTreeMap<&'static str, String> {
    // An empty pattern would match every group.
    let group = Some(&key.group_kind.group).filter(|group| !group.is_empty());
    let texts = [
        ("group", group),
        ("kind", Some(&key.group_kind.kind)),
        ("name", Some(&key.name)),
        ("namespace", key.namespace.as_ref()),
    ];
    texts
        .into_iter()
        .filter_map(|(field, text)| Some((field, regex::escape(text?).replace("\\-", "-"))))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::{Action, Subject};
    use crate::model::identity::GroupKind;
    use crate::model::resource::{Resource, Scope};

    fn conflict(name: &str, field: &str, pointer: &str) -> FieldConflict {
        FieldConflict {
            object: ObjectKey {
                group_kind: GroupKind::new("", "ConfigMap"),
                namespace: Some("shop".to_owned()),
                name: name.to_owned(),
            },
            place: "web.yaml:6".to_owned(),
            field: field.to_owned(),
            owner: "\"helm\"".to_owned(),
            since: Some("2026-01-01T00:00:00Z".to_owned()),
            values: Some(["\"live\"".to_owned(), "\"mine\"".to_owned()]),
            pointer: Pointer::parse(pointer).ok(),
        }
    }

    fn noted(conflicts: Vec<FieldConflict>) -> FieldConflicts {
        let resource = Arc::new(Resource::with_regular_names(
            "",
            "v1",
            "ConfigMap",
            Scope::Namespaced,
        ));
        let subject = Subject::new(&conflicts[0].object, &resource, None);
        let mut outcome = ObjectOutcome::new(subject, Action::Failed);
        let mut all = FieldConflicts::default();
        assert!(!all.add(&outcome));
        outcome.error = Some(Message::new("conflicts").with_conflicts(conflicts).into());
        assert!(all.add(&outcome));
        all
    }

    #[test]
    fn the_hint_names_managers_only_if_the_flag_and_a_shell_read_them_as_they_are() {
        for (owners, value) in [
            (
                &["\"helm\"", "\"ci\" with subresource \"status\"", "\"helm\""][..],
                "=ci,helm",
            ),
            (&["\"helm\"", "\"Java Client\""], ""),
            (&["\"a,b\""], ""),
            (&["\"true\""], ""),
        ] {
            let conflicts = owners.iter().map(|owner| FieldConflict {
                owner: (*owner).to_owned(),
                ..conflict("web", ".data.key", "/data/key")
            });
            assert_eq!(
                noted(conflicts.collect()).force_conflicts_value(),
                value,
                "{owners:?}"
            );
        }
    }

    #[test]
    fn conflicts_are_shown_together_with_three_ways_out() {
        let mut secret = conflict("keys", ".data.a", "/data/a");
        (secret.values, secret.since) = (None, None);
        let all = noted(vec![conflict("web", ".data.key", "/data/key"), secret]);
        let message = all.message().expect("a message");
        assert_eq!(
            message.to_string(),
            "Apply failed with 2 conflicts: other field managers own these fields\n  \
             web.yaml:6: configmap/web in namespace shop: .data.key\n  \
             \u{20} owner:    \"helm\", last write 2026-01-01T00:00:00Z\n  \
             \u{20} live:     \"live\"\n  \
             \u{20} manifest: \"mine\"\n  \
             web.yaml:6: configmap/keys in namespace shop: .data.a\n  \
             \u{20} owner:    \"helm\"\n  \
             hint: remove the fields from the manifests\n  \
             hint: or take them from their owners: add --force-conflicts=helm\n  \
             hint: or leave them to their owners with --ignore FILE, where FILE contains:"
        );
        assert_eq!(
            all.ignore_rule_lines(),
            [
                "- paths:",
                "  - /data/a",
                "  target:",
                "    kind: ConfigMap",
                "    name: keys",
                "    namespace: shop",
                "- paths:",
                "  - /data/key",
                "  target:",
                "    kind: ConfigMap",
                "    name: web",
                "    namespace: shop",
            ]
        );
    }

    #[test]
    fn rules_can_be_read_again() {
        let all = noted(vec![
            conflict("a.b-c", ".data.x", "/data/a, b: [c]"),
            conflict("1", ".metadata.annotations.x/y", "/metadata/annotations/x~1y"),
            conflict("true", ".data.x", "/data/it's"),
        ]);
        let text = format!("{}\n", all.ignore_rule_lines().join("\n"));
        assert!(crate::compare::ignore::IgnoreRules::read(&text).is_ok(), "{text}");
        assert!(text.contains("name: a\\.b-c"), "{text}");
    }

    #[test]
    fn rules_name_the_group() {
        let mut replicas = conflict("web", ".spec.replicas", "/spec/replicas");
        replicas.object.group_kind = GroupKind::new("apps", "Deployment");
        let mut size = conflict("web", ".spec.size", "/spec/size");
        size.object.group_kind = GroupKind::new("example.com", "Widget");
        let text = noted(vec![replicas, size]).ignore_rule_lines().join("\n");
        for target in [
            "  target:\n    group: apps\n    kind: Deployment\n    name: web\n    namespace: shop",
            "  target:\n    group: example\\.com\n    kind: Widget\n    name: web\n    namespace: shop",
        ] {
            assert!(text.contains(target), "{text}");
        }
        assert!(crate::compare::ignore::IgnoreRules::read(&text).is_ok(), "{text}");
    }

    #[test]
    fn many_conflicts_are_counted() {
        let all = noted(
            (0..25)
                .map(|number| conflict(&format!("web-{number}"), ".data.x", "/data/x"))
                .collect(),
        );
        let message = all.message().expect("a message");
        assert_eq!(message.details.len(), 20 * 4 + 1);
        assert_eq!(message.details[80], "and 5 more conflicts; -o json lists all");
        assert_eq!(
            all.ignore_rule_lines().last().map(String::as_str),
            Some("# and the same for 20 more objects")
        );
    }
}
