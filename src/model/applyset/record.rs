//! The record of a parent: the kinds and namespaces of its members.
//!
//! A record is a hint where to search for members: the part-of label alone decides whether an object is a member. The
//! record may name kinds and namespaces without members, but must not lack any, since a run would not find, and not
//! prune, the members there. This module parses and formats single annotation values; `parent` reads all labels and
//! annotations of a parent.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::identity::{GroupKind, ObjectKey};

/// The kinds and namespaces in which a set may have members.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Kinds of members.
    pub group_kinds: BTreeSet<GroupKind>,
    /// Namespaces of members, except the parent's own.
    pub additional_namespaces: BTreeSet<String>,
}

/// An annotation value that cannot be parsed. No part of such a value is used: if an entry were ignored, a run would
/// not find the members of its kind or namespace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidValue {
    /// The value begins with the prefix of a later format, such as `v2:`.
    #[error("has a newer format ({0}) than this version supports")]
    LaterFormat(String),
    /// An entry of the list is not of the form `Kind.group`.
    #[error("has the entry {0:?}, which is not of the form Kind.group")]
    NotAGroupKind(String),
    /// An entry of the list is not a namespace.
    #[error("has the entry {0:?}, which is not a namespace name")]
    NotANamespace(String),
}

impl Record {
    /// Returns whether the record names neither a kind nor a namespace.
    pub fn is_empty(&self) -> bool {
        self.group_kinds.is_empty() && self.additional_namespaces.is_empty()
    }

    /// Creates the narrowest record for these members of the set of `parent`.
    pub fn from_members<'k>(members: impl Iterator<Item = &'k ObjectKey>, parent: &ObjectKey) -> Self {
        let mut record = Self::default();
        for key in members {
            record.add_kind_and_namespace(
                &key.group_kind,
                key.namespace.as_deref(),
                parent.namespace.as_deref(),
            );
        }
        record
    }

    /// Returns the record with the kinds and namespaces of both records.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self {
            group_kinds: self.group_kinds.union(&other.group_kinds).cloned().collect(),
            additional_namespaces: self
                .additional_namespaces
                .union(&other.additional_namespaces)
                .cloned()
                .collect(),
        }
    }

    /// Returns whether every kind and namespace of `other` is in this record.
    pub fn covers(&self, other: &Self) -> bool {
        self.group_kinds.is_superset(&other.group_kinds)
            && self
                .additional_namespaces
                .is_superset(&other.additional_namespaces)
    }

    /// Adds the kind and the namespace of one member. The namespace of the parent is never recorded (KEP-3659).
    pub fn add_kind_and_namespace(
        &mut self,
        group_kind: &GroupKind,
        namespace: Option<&str>,
        parent_namespace: Option<&str>,
    ) {
        if !self.group_kinds.contains(group_kind) {
            self.group_kinds.insert(group_kind.clone());
        }
        if let Some(namespace) = namespace
            && Some(namespace) != parent_namespace
            && !self.additional_namespaces.contains(namespace)
        {
            self.additional_namespaces.insert(namespace.to_owned());
        }
    }

    /// Returns the value of `contains-group-kinds`: sorted, without blanks.
    pub fn group_kinds_value(&self) -> String {
        join_entries(self.group_kinds.iter().map(ToString::to_string))
    }

    /// Returns the value of `additional-namespaces`: sorted, without blanks; empty if there are none.
    pub fn namespaces_value(&self) -> String {
        join_entries(self.additional_namespaces.iter().cloned())
    }
}

/// Parses `contains-group-kinds`. The empty string is an empty set of kinds.
///
/// Unsorted and repeated entries are accepted, since the next write of the parent sorts them. Blanks and empty entries
/// are refused: kubectl refuses such a parent, too, and a list that was edited badly may have lost entries.
pub fn parse_group_kinds(value: &str) -> Result<BTreeSet<GroupKind>, InvalidValue> {
    split_entries(value)?
        .map(|entry| parse_group_kind(entry).ok_or_else(|| InvalidValue::NotAGroupKind(entry.to_owned())))
        .collect()
}

/// Parses `additional-namespaces`. The empty string is an empty set of namespaces.
pub fn parse_namespaces(value: &str) -> Result<BTreeSet<String>, InvalidValue> {
    split_entries(value)?
        .map(|entry| {
            if is_dns_label(entry) {
                Ok(entry.to_owned())
            } else {
                Err(InvalidValue::NotANamespace(entry.to_owned()))
            }
        })
        .collect()
}

/// Parses the deprecated `contains-group-resources` into pairs of resource and group.
pub fn parse_group_resources(value: &str) -> Result<BTreeSet<(String, String)>, InvalidValue> {
    split_entries(value)?
        .map(|entry| {
            // Resources have the syntax of kinds: `deployments.apps`.
            parse_group_kind(entry)
                .map(|resource| (resource.kind, resource.group))
                .ok_or_else(|| InvalidValue::NotAGroupKind(entry.to_owned()))
        })
        .collect()
}

/// Splits a list at its commas. Fails only for a list of a later format; the caller checks the entries.
fn split_entries(value: &str) -> Result<impl Iterator<Item = &str>, InvalidValue> {
    if let Some(format) = later_format_prefix(value, ':') {
        return Err(InvalidValue::LaterFormat(format));
    }
    // `split` gives one empty entry for the empty string, which means no entries.
    Ok(value.split(',').filter(move |_| !value.is_empty()))
}

/// Returns the version prefix of a value of a later format: `v2` of `v2:…` in annotations, and of `v2.…` in labels,
/// which must not contain a colon. Values of the format of today have no such prefix.
pub(super) fn later_format_prefix(value: &str, separator: char) -> Option<String> {
    let (prefix, _) = value.split_once(separator)?;
    let number = prefix.strip_prefix('v')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| prefix.to_owned())
}

fn parse_group_kind(entry: &str) -> Option<GroupKind> {
    let (kind, group) = entry.split_once('.').unwrap_or((entry, ""));
    let kind_is_valid = kind.starts_with(|first: char| first.is_ascii_alphabetic())
        && kind
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let group_is_valid = !entry.ends_with('.') && (group.is_empty() || group.split('.').all(is_dns_label));
    (kind_is_valid && group_is_valid).then(|| GroupKind::new(group, kind))
}

/// Returns whether the text is a DNS label of RFC 1123, as the name of a namespace must be.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && has_dns_label_characters(text)
}

/// Returns whether the text is a DNS subdomain of RFC 1123, as the names of most objects must be.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(has_dns_label_characters)
}

fn has_dns_label_characters(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn join_entries(entries: impl Iterator<Item = String>) -> String {
    entries.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_kinds_are_read_and_written_in_canonical_form() {
        let table = [
            ("", ""),
            ("ConfigMap", "ConfigMap"),
            ("Deployment.apps,ConfigMap", "ConfigMap,Deployment.apps"),
            ("ConfigMap,ConfigMap", "ConfigMap"),
            ("Widget.a.example.com", "Widget.a.example.com"),
        ];
        for (value, canonical) in table {
            let record = Record {
                group_kinds: parse_group_kinds(value).expect("a valid value"),
                ..Record::default()
            };
            assert_eq!(record.group_kinds_value(), canonical);
        }
    }

    #[test]
    fn badly_written_group_kinds_are_refused() {
        for value in [
            "ConfigMap,",
            ",ConfigMap",
            "ConfigMap, Secret",
            "ConfigMap.",
            ".apps",
            "Config Map",
            "a/b",
            "Deployment.-x",
        ] {
            assert!(
                matches!(parse_group_kinds(value), Err(InvalidValue::NotAGroupKind(_))),
                "{value:?} must be refused"
            );
        }
    }

    #[test]
    fn later_formats_are_refused_and_not_guessed() {
        for value in ["v2:ConfigMap", "v2:", "v10:anything goes"] {
            assert!(matches!(
                parse_group_kinds(value),
                Err(InvalidValue::LaterFormat(_))
            ));
            assert!(matches!(
                parse_namespaces(value),
                Err(InvalidValue::LaterFormat(_))
            ));
        }
    }

    #[test]
    fn namespaces_are_read_and_written_in_canonical_form() {
        for (value, canonical) in [("", ""), ("b,a", "a,b"), ("a,a", "a")] {
            let record = Record {
                additional_namespaces: parse_namespaces(value).expect("a valid value"),
                ..Record::default()
            };
            assert_eq!(record.namespaces_value(), canonical);
        }
        for value in ["a,", "A", "a b", "a, b", "-a", &"x".repeat(64)] {
            assert!(
                matches!(parse_namespaces(value), Err(InvalidValue::NotANamespace(_))),
                "{value:?}"
            );
        }
    }

    #[test]
    fn the_parents_own_namespace_is_not_recorded() {
        let mut record = Record::default();
        record.add_kind_and_namespace(&GroupKind::new("", "ConfigMap"), Some("home"), Some("home"));
        record.add_kind_and_namespace(&GroupKind::new("", "ConfigMap"), Some("away"), Some("home"));
        record.add_kind_and_namespace(&GroupKind::new("", "Namespace"), None, Some("home"));
        assert_eq!(record.group_kinds_value(), "ConfigMap,Namespace");
        assert_eq!(record.namespaces_value(), "away");
    }

    fn record(kinds: &str, namespaces: &str) -> Record {
        Record {
            group_kinds: parse_group_kinds(kinds).expect("kinds"),
            additional_namespaces: parse_namespaces(namespaces).expect("namespaces"),
        }
    }

    #[test]
    fn a_record_covers_another_only_in_kinds_and_in_namespaces() {
        let wide = record("ConfigMap,Secret", "a,b");
        let table = [
            (record("", ""), true),
            (record("Secret", "a"), true),
            (wide.clone(), true),
            (record("Service", ""), false),
            (record("", "c"), false),
            (record("Service", "a"), false),
            (record("Secret", "c"), false),
            (record("ConfigMap,Secret,Service", "a,b"), false),
        ];
        for (other, expected) in table {
            assert_eq!(wide.covers(&other), expected, "{other:?}");
        }
    }

    #[test]
    fn a_union_is_the_narrowest_record_that_covers_both() {
        let union = record("ConfigMap,Secret", "a").union(&record("Secret,Service", "b"));
        assert_eq!(union, record("ConfigMap,Secret,Service", "a,b"));
    }

    #[test]
    fn a_record_is_empty_only_without_kinds_and_without_namespaces() {
        let table = [
            ("", "", true),
            ("Secret", "", false),
            ("", "a", false),
            ("Secret", "a", false),
        ];
        for (kinds, namespaces, expected) in table {
            assert_eq!(
                record(kinds, namespaces).is_empty(),
                expected,
                "{kinds:?} {namespaces:?}"
            );
        }
    }

    #[test]
    fn the_record_of_objects_has_their_kinds_and_foreign_namespaces() {
        let key = |kind: &str, namespace: Option<&str>| ObjectKey {
            group_kind: GroupKind::new("", kind),
            namespace: namespace.map(str::to_owned),
            name: "x".to_owned(),
        };
        let objects = [
            key("Secret", Some("home")),
            key("Service", Some("away")),
            key("Namespace", None),
        ];
        let members_record = Record::from_members(objects.iter(), &key("ConfigMap", Some("home")));
        assert_eq!(members_record, record("Namespace,Secret,Service", "away"));
    }
}
