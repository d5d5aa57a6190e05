//! Judges a kind that discovery does not list: gone, kept in the record, or expected soon.
//!
//! Discovery omits what exists: the aggregated document lags seconds behind a new
//! `CustomResourceDefinition`, and a starting API server answers 200 without the groups of
//! custom resources. So a kind is gone only if discovery lacks it, no definition has it, and
//! no aggregated API could serve it. Pure; the evidence is read by `observe::unserved`.

use std::fmt;

use serde_json::Value;

use super::{Discovery, FailedVersion, argument};
use crate::model::identity::GroupKind;

/// What is known of a kind that discovery does not list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unserved {
    /// Nothing defines or serves it, so it has no objects.
    Gone,
    /// It may have objects that cannot be listed now: it stays in the record.
    Kept(Kept),
    /// The server is about to serve it, or should: nothing may be concluded before it does.
    Expected(Expected),
}

/// A kind that stays in the record although its objects cannot be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The kind; `None` where only the resource is recorded, and its definition cannot be read.
    pub kind: Option<GroupKind>,
    /// Why its objects cannot be listed.
    pub reason: KeptReason,
}

/// Why the objects of a kind cannot be listed although it may have some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptReason {
    /// Its `CustomResourceDefinition`, of this name, is being deleted.
    DefinitionTerminating(String),
    /// Its `CustomResourceDefinition`, of this name, serves no version.
    NoVersionServed(String),
    /// Its `CustomResourceDefinition`, of this name, is not established.
    NotEstablished(String),
    /// This permission is missing, without which it cannot be known whether the kind is gone.
    Forbidden(&'static str),
}

/// Why a kind that discovery does not list has to be waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Its `CustomResourceDefinition`, of this name, is established and serves it.
    Defined(String),
    /// An APIService of this name delegates its group to an API that does not answer.
    Delegated(String),
}

impl KeptReason {
    /// Whether objects may be stored that no list shows, and that stay if nobody deletes them.
    ///
    /// A definition that is not established has never been: the server does not take the
    /// condition back (apiextensions-apiserver, `naming_controller.go`), and lists no kind without
    /// it, so there are no objects. The objects of a definition that is being deleted are deleted
    /// by the server itself, served or not (`crd_finalizer.go`).
    pub fn hides_objects(&self) -> bool {
        match self {
            Self::NoVersionServed(_) | Self::Forbidden(_) => true,
            Self::NotEstablished(_) | Self::DefinitionTerminating(_) => false,
        }
    }
}

impl Unserved {
    /// Why objects of the kind may be stored that no list shows; `None` if there are none.
    pub fn hidden_reason(&self) -> Option<String> {
        match self {
            Self::Gone => None,
            Self::Kept(Kept { reason, .. }) => reason.hides_objects().then(|| reason.to_string()),
            Self::Expected(expected) => Some(expected.to_string()),
        }
    }
}

impl fmt::Display for KeptReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DefinitionTerminating(name) => {
                write!(f, "its CustomResourceDefinition {name} is being deleted")
            }
            Self::NoVersionServed(name) => {
                write!(f, "its CustomResourceDefinition {name} serves no version")
            }
            Self::NotEstablished(name) => {
                write!(f, "its CustomResourceDefinition {name} is not established")
            }
            Self::Forbidden(permission) => {
                write!(
                    f,
                    "cannot tell whether it is gone without permission to {permission}"
                )
            }
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Defined(name) => write!(
                f,
                "CustomResourceDefinition {name} exists, but the server does not serve it yet"
            ),
            Self::Delegated(name) => {
                write!(f, "the API behind APIService {name} does not answer")
            }
        }
    }
}

/// What a `CustomResourceDefinition` says of the kind that it defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// `metadata.name`, which is the plural with the group.
    pub name: String,
    /// The kind.
    pub kind: GroupKind,
    /// Plural and singular name, in lower case.
    names: Vec<String>,
    short_names: Vec<String>,
    /// Names of all versions, served or not.
    versions: Vec<String>,
    state: DefinitionState,
}

/// Whether a definition is one that the server serves; the later states prevail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DefinitionState {
    Served,
    NoVersionServed,
    NotEstablished,
    Terminating,
}

impl Definition {
    /// Reads a `CustomResourceDefinition` as the server shows it; `None` for any other object.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let spec = &object["spec"];
        let versions = spec["versions"].as_array()?;
        let names = [&spec["names"]["plural"], &spec["names"]["singular"]];
        let short_names = spec["names"]["shortNames"].as_array();
        let is_established =
            |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        let state = if text("/metadata/deletionTimestamp").is_some() {
            DefinitionState::Terminating
        } else if !conditions.is_some_and(|conditions| conditions.iter().any(is_established)) {
            DefinitionState::NotEstablished
        } else if versions.iter().any(|version| version["served"] == true) {
            DefinitionState::Served
        } else {
            DefinitionState::NoVersionServed
        };
        Some(Self {
            name: text("/metadata/name")?.to_owned(),
            kind: GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?),
            names: names
                .into_iter()
                .filter_map(Value::as_str)
                .map(str::to_lowercase)
                .collect(),
            short_names: short_names
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_lowercase)
                .collect(),
            versions: versions
                .iter()
                .filter_map(|version| version["name"].as_str())
                .map(str::to_owned)
                .collect(),
            state,
        })
    }

    /// Whether a recorded entry means the kind that it defines: as the kind itself, by another
    /// of its names, or with a version between kind and group.
    fn is_meant_by(&self, entry: &GroupKind) -> bool {
        let is_group = entry.group == self.kind.group
            || self
                .versions
                .iter()
                .any(|version| entry.group == format!("{version}.{}", self.kind.group));
        let name = entry.kind.to_lowercase();
        is_group && (name == self.kind.kind.to_lowercase() || self.names.contains(&name))
    }

    /// Whether a person may mean its resource by this argument.
    pub fn is_named_by(&self, argument: &str) -> bool {
        argument::readings(argument).iter().any(|reading| {
            let name = reading.resource.to_lowercase();
            let names = self.names.iter().chain(&self.short_names);
            let has_version = || self.versions.iter().any(|version| reading.is_version(version));
            reading.begins_group(&self.kind.group)
                && has_version()
                && (name == self.kind.kind.to_lowercase() || names.into_iter().any(|known| *known == name))
        })
    }

    /// Says what it means for its kind that discovery does not list it.
    pub fn unserved(&self) -> Unserved {
        let kept = |reason: fn(String) -> KeptReason| {
            Unserved::Kept(Kept {
                kind: Some(self.kind.clone()),
                reason: reason(self.name.clone()),
            })
        };
        match self.state {
            DefinitionState::Served => Unserved::Expected(self.expected()),
            DefinitionState::NoVersionServed => kept(KeptReason::NoVersionServed),
            DefinitionState::NotEstablished => kept(KeptReason::NotEstablished),
            DefinitionState::Terminating => kept(KeptReason::DefinitionTerminating),
        }
    }

    /// Whether the server serves the kind, or is about to.
    pub fn is_served(&self) -> bool {
        self.state == DefinitionState::Served
    }

    /// Whether objects of its kind may be stored that no list shows.
    pub fn hides_objects(&self) -> bool {
        matches!(self.unserved(), Unserved::Kept(kept) if kept.reason.hides_objects())
    }

    /// Says that its kind is waited for.
    pub fn expected(&self) -> Expected {
        Expected::Defined(self.name.clone())
    }
}

/// An APIService that delegates a group-version to an API server of its own. Local ones prove
/// nothing: the group of a deleted definition may still have others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegatedApi {
    /// `metadata.name`.
    pub name: String,
    /// `spec.group`.
    pub group: String,
    /// `spec.version`.
    pub version: String,
}

impl DelegatedApi {
    /// Reads an APIService; `None` for a local one.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer)?.as_str().map(str::to_owned);
        object.pointer("/spec/service")?.as_object()?;
        Some(Self {
            name: text("/metadata/name")?,
            group: text("/spec/group")?,
            version: text("/spec/version")?,
        })
    }

    /// Whether a person may mean a resource of this API by this argument.
    pub fn may_serve(&self, argument: &str) -> bool {
        let readings = argument::readings(argument);
        let is_here = |reading: &argument::Reading| {
            reading.begins_group(&self.group) && reading.is_version(&self.version)
        };
        readings.iter().any(is_here)
    }

    /// Whether discovery shows what this API serves, or that it does not answer.
    pub fn is_discovered(&self, discovery: &Discovery) -> bool {
        let is_own = |failed: &FailedVersion| failed.group == self.group && failed.version == self.version;
        discovery.has_version(&self.group, &self.version) || discovery.failures().iter().any(is_own)
    }
}

/// What was read to tell whether kinds are gone, or the permission that reading it takes.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// The definitions that may define one of the kinds.
    pub definitions: Result<Vec<Definition>, Forbidden>,
    /// All APIs that are delegated.
    pub delegated: Result<Vec<DelegatedApi>, Forbidden>,
}

/// The permission that is missing to read something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forbidden(pub &'static str);

/// Judges a kind that `discovery` does not list. The evidence must be younger than it.
pub fn judge(entry: &GroupKind, evidence: &Evidence, discovery: &Discovery) -> Unserved {
    let hidden = |Forbidden(permission): &Forbidden, kind: Option<GroupKind>| {
        Unserved::Kept(Kept {
            kind,
            reason: KeptReason::Forbidden(permission),
        })
    };
    let is_camel_case = entry.kind.starts_with(|first: char| first.is_ascii_uppercase());
    let kind = is_camel_case.then(|| entry.clone());
    let definitions = match &evidence.definitions {
        Ok(definitions) => definitions,
        Err(forbidden) => return hidden(forbidden, kind),
    };
    if let Some(definition) = definitions
        .iter()
        .find(|definition| definition.is_meant_by(entry))
    {
        return definition.unserved();
    }
    let delegated = match &evidence.delegated {
        Ok(delegated) => delegated,
        Err(forbidden) => return hidden(forbidden, kind),
    };
    let is_silent = |api: &&DelegatedApi| api.group == entry.group && !api.is_discovered(discovery);
    match delegated.iter().find(is_silent) {
        Some(api) => Unserved::Expected(Expected::Delegated(api.name.clone())),
        None => Unserved::Gone,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::resource::{Resource, Scope};

    fn definition(change: impl FnOnce(&mut Value)) -> Definition {
        let mut object = json!({
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
                "versions": [{"name": "v1", "served": true}, {"name": "v1alpha1", "served": false}],
            },
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        });
        change(&mut object);
        Definition::of(&object).expect("a definition")
    }

    fn delegated(group: &str) -> DelegatedApi {
        DelegatedApi {
            name: format!("v1.{group}"),
            group: group.to_owned(),
            version: "v1".to_owned(),
        }
    }

    fn discovery() -> Discovery {
        let resource = |group| Resource::regular(group, "v1", "Gadget", Scope::Namespaced);
        Discovery::of(vec![resource("example.com"), resource("delegated.example.com")])
    }

    fn judged(entry: &str, evidence: &Evidence) -> Unserved {
        let (kind, group) = entry.split_once('.').unwrap_or((entry, ""));
        judge(&GroupKind::new(group, kind), evidence, &discovery())
    }

    fn evidence(definitions: Vec<Definition>, delegated: Vec<DelegatedApi>) -> Evidence {
        Evidence {
            definitions: Ok(definitions),
            delegated: Ok(delegated),
        }
    }

    #[test]
    fn a_kind_is_gone_only_if_nothing_defines_or_could_serve_it() {
        let nothing = evidence(vec![], vec![]);
        let defined = evidence(vec![definition(|_| {})], vec![]);
        let silent = evidence(
            vec![],
            vec![delegated("example.com"), delegated("down.example.com")],
        );
        let heard = evidence(vec![], vec![delegated("delegated.example.com")]);
        let name = "widgets.example.com".to_owned();
        let by_definition = Unserved::Expected(Expected::Defined(name));
        let by_api = Unserved::Expected(Expected::Delegated("v1.down.example.com".to_owned()));
        let table = [
            ("Widget.example.com", &nothing, Unserved::Gone),
            ("Widget.example.com", &defined, by_definition.clone()),
            ("widgets.example.com", &defined, by_definition.clone()),
            ("widget.example.com", &defined, by_definition.clone()),
            ("Widget.v1alpha1.example.com", &defined, by_definition),
            ("Widget.other.example.com", &defined, Unserved::Gone),
            ("Gizmo.example.com", &defined, Unserved::Gone),
            // The API of this version is heard, and serves no such kind.
            ("Widget.example.com", &silent, Unserved::Gone),
            ("Widget.down.example.com", &silent, by_api),
            ("Widget.delegated.example.com", &heard, Unserved::Gone),
        ];
        for (entry, evidence, expected) in table {
            assert_eq!(judged(entry, evidence), expected, "{entry} {evidence:?}");
        }
    }

    #[test]
    fn a_definition_that_serves_nothing_keeps_its_kind() {
        type Change = fn(&mut Value);
        let table: [(Change, KeptReason); 3] = [
            (
                |object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
                KeptReason::DefinitionTerminating("widgets.example.com".to_owned()),
            ),
            (
                |object| object["spec"]["versions"][0]["served"] = json!(false),
                KeptReason::NoVersionServed("widgets.example.com".to_owned()),
            ),
            (
                |object| object["status"]["conditions"][0]["status"] = json!("False"),
                KeptReason::NotEstablished("widgets.example.com".to_owned()),
            ),
        ];
        for (change, reason) in table {
            let kept = Unserved::Kept(Kept {
                kind: Some(GroupKind::new("example.com", "Widget")),
                reason,
            });
            let evidence = evidence(vec![definition(change)], vec![]);
            for entry in ["Widget.example.com", "widgets.example.com"] {
                assert_eq!(judged(entry, &evidence), kept);
            }
        }
    }

    #[test]
    fn only_a_definition_that_was_established_and_serves_no_version_hides_objects() {
        type Change = fn(&mut Value);
        let unserved: Change = |object| object["spec"]["versions"][0]["served"] = json!(false);
        let not_established: Change = |object| object["status"]["conditions"][0]["status"] = json!("False");
        let without_status: Change = |object| object["status"] = json!({});
        let terminating: Change =
            |object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let table: [(&[Change], bool); 6] = [
            (&[], false),
            (&[unserved], true),
            (&[not_established], false),
            (&[unserved, not_established], false),
            (&[unserved, without_status], false),
            (&[unserved, terminating], false),
        ];
        for (changes, expected) in table {
            let definition = definition(|object| changes.iter().for_each(|change| change(object)));
            assert_eq!(definition.hides_objects(), expected, "{definition:?}");
        }
    }

    #[test]
    fn a_person_may_mean_a_definition_by_all_its_names() {
        let definition = definition(|object| object["spec"]["names"]["shortNames"] = json!(["wd"]));
        for (argument, expected) in [
            ("widgets", true),
            ("widget", true),
            ("WD", true),
            ("Widget.example.com", true),
            ("widgets.exam", true),
            ("widgets.v1.example.com", true),
            ("widgets.v2.example.com", false),
            ("widgets.other.com", false),
            ("gadgets", false),
        ] {
            assert_eq!(definition.is_named_by(argument), expected, "{argument}");
        }
    }

    #[test]
    fn what_may_not_be_read_keeps_the_kind_and_names_the_permission() {
        let no_definitions = Evidence {
            definitions: Err(Forbidden("list definitions")),
            delegated: Ok(vec![]),
        };
        let no_services = Evidence {
            definitions: Ok(vec![definition(|_| {})]),
            delegated: Err(Forbidden("list services")),
        };
        let kept = |kind: Option<GroupKind>, permission| {
            Unserved::Kept(Kept {
                kind,
                reason: KeptReason::Forbidden(permission),
            })
        };
        let widget = GroupKind::new("example.com", "Widget");
        let gizmo = GroupKind::new("example.com", "Gizmo");
        let table = [
            (
                "Widget.example.com",
                &no_definitions,
                kept(Some(widget), "list definitions"),
            ),
            (
                "widgets.example.com",
                &no_definitions,
                kept(None, "list definitions"),
            ),
            (
                "Gizmo.example.com",
                &no_services,
                kept(Some(gizmo), "list services"),
            ),
        ];
        for (entry, evidence, expected) in table {
            assert_eq!(judged(entry, evidence), expected, "{entry}");
        }
        // What a definition says needs no other evidence.
        assert!(matches!(
            judged("Widget.example.com", &no_services),
            Unserved::Expected(Expected::Defined(_))
        ));
    }

    #[test]
    fn local_api_services_delegate_nothing() {
        let object = |service: Value| {
            json!({"metadata": {"name": "v1.example.com"},
                "spec": {"group": "example.com", "version": "v1", "service": service}})
        };
        assert_eq!(DelegatedApi::of(&object(Value::Null)), None);
        assert!(DelegatedApi::of(&object(json!({"name": "s", "namespace": "n"}))).is_some());
    }
}
