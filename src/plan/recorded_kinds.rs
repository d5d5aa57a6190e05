//! The kinds that a parent records, compared with discovery.
//!
//! Pure. All other code reads recorded kinds through this module: `plan` derives the scope of a run from it, and
//! `found_set` and `verify` derive the findings about a set.

use std::collections::BTreeSet;

use crate::cluster::discovery::{
    Discovery, FailedVersion, KeptKind, KindLookup, MissingKind, ReasonToExpectKind,
};
use crate::model::applyset::parent::RecordedKinds;
use crate::model::identity::GroupKind;
use crate::model::resource::{Origin, Resource};

/// State of a recorded kind on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedKind<'d> {
    /// The server serves the kind.
    Served(&'d Resource),
    /// The server serves the kind under another spelling, such as `configmaps` for
    /// `ConfigMap`. If it counted as gone, its objects would leave the record and become orphans.
    Misspelled(&'d Resource),
    /// Nothing defines or serves the kind, so it has no objects.
    Gone,
    /// The kind may have objects, and they cannot be listed now: it stays in the record.
    Kept(&'d KeptKind),
    /// Discovery does not list the kind, although it should for the reason given; `None` if it was not determined why
    /// it is missing. The kind may have objects.
    UnexpectedlyMissing(Option<&'d ReasonToExpectKind>),
    /// Discovery of the kind's group failed.
    Unknowable(&'d FailedVersion),
}

/// Returns the recorded kinds that discovery does not list, under their names in the record.
///
/// To learn why a kind is missing, the caller has to use a discovery that is younger than the record: an older one may
/// lack a kind that has been defined since.
pub fn find_undiscovered(kinds: &RecordedKinds, discovery: &Discovery) -> BTreeSet<GroupKind> {
    let entries = classify_recorded_kinds(kinds, discovery).into_iter();
    let undiscovered = entries.filter(|(_, entry)| match entry {
        RecordedKind::Gone | RecordedKind::Kept(_) | RecordedKind::UnexpectedlyMissing(_) => true,
        RecordedKind::Served(_) | RecordedKind::Misspelled(_) | RecordedKind::Unknowable(_) => false,
    });
    undiscovered.map(|(kind, _)| kind).collect()
}

/// Returns each recorded kind with its state on the server. The kind is named as in the record: an entry of the
/// deprecated form has the plural of its resource instead of a kind.
pub fn classify_recorded_kinds<'d>(
    kinds: &RecordedKinds,
    discovery: &'d Discovery,
) -> Vec<(GroupKind, RecordedKind<'d>)> {
    match kinds {
        RecordedKinds::GroupKinds(kinds) => kinds
            .iter()
            .map(|kind| (kind.clone(), classify_kind(kind, discovery)))
            .collect(),
        RecordedKinds::GroupResources(resources) => resources
            .iter()
            .map(|(resource, group)| {
                let lookup = discovery.find_by_group_resource(resource, group);
                (
                    GroupKind::new(group, resource),
                    classify_lookup(lookup, &GroupKind::new(group, resource), discovery),
                )
            })
            .collect(),
    }
}

/// Returns the state of one entry of the form `Kind.group`.
pub fn classify_kind<'d>(kind: &GroupKind, discovery: &'d Discovery) -> RecordedKind<'d> {
    classify_lookup(discovery.find_preferred(kind), kind, discovery)
}

fn classify_lookup<'d>(
    lookup: KindLookup<'d>,
    kind: &GroupKind,
    discovery: &'d Discovery,
) -> RecordedKind<'d> {
    match lookup {
        KindLookup::Found(resource) if resource.origin == Origin::Served => RecordedKind::Served(resource),
        KindLookup::GroupFailed(failure) => RecordedKind::Unknowable(failure),
        // A kind that the manifests define may have a CRD and objects in the cluster already.
        KindLookup::Found(_) | KindLookup::Absent => {
            if let Some(resource) = find_differently_spelled_resource(kind, discovery) {
                return RecordedKind::Misspelled(resource);
            }
            match discovery.judgement_on_missing_kind(kind) {
                Some(MissingKind::Gone) => RecordedKind::Gone,
                Some(MissingKind::Kept(kept)) => RecordedKind::Kept(kept),
                Some(MissingKind::Expected(expected)) => RecordedKind::UnexpectedlyMissing(Some(expected)),
                None => RecordedKind::UnexpectedlyMissing(None),
            }
        }
    }
}

/// Finds a served kind that the entry spells differently: as a resource (`configmaps`), in other case, or with a
/// version between kind and group (`Deployment.v1.apps`).
fn find_differently_spelled_resource<'d>(
    entry: &GroupKind,
    discovery: &'d Discovery,
) -> Option<&'d Resource> {
    if let Some(resource) = find_served_by_argument(discovery, &entry.to_string()) {
        let with_version = format!("{}.{}", resource.version, resource.group);
        if resource.group == entry.group || with_version == entry.group {
            return Some(resource);
        }
    }
    // In the core group, such as `ConfigMap.v1`, the version stands where another entry has its group.
    let bare = find_served_by_argument(discovery, &entry.kind)?;
    (bare.group.is_empty() && bare.version == entry.group).then_some(bare)
}

fn find_served_by_argument<'d>(discovery: &'d Discovery, text: &str) -> Option<&'d Resource> {
    match discovery.find_by_argument(text) {
        KindLookup::Found(resource) if resource.origin == Origin::Served => Some(resource),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::resource::Scope;

    fn resource(group: &str, kind: &str) -> Resource {
        Resource {
            verbs: vec!["list".to_owned()],
            ..Resource::with_regular_names(group, "v1", kind, Scope::Namespaced)
        }
    }

    #[test]
    fn an_entry_is_served_misspelled_or_absent() {
        let discovery = Discovery::from_resources(vec![
            resource("", "ConfigMap"),
            resource("apps", "Deployment"),
            resource("other.example.com", "Widget"),
        ]);
        let table = [
            ("ConfigMap", "served ConfigMap"),
            ("Deployment.apps", "served Deployment.apps"),
            ("configmaps", "misspelled ConfigMap"),
            ("configMap", "misspelled ConfigMap"),
            ("deployments.apps", "misspelled Deployment.apps"),
            ("Deployment.v1.apps", "misspelled Deployment.apps"),
            ("ConfigMap.v1", "misspelled ConfigMap"),
            ("Deployment", "unlisted"),
            ("Deployment.v2.apps", "unlisted"),
            ("ConfigMap.apps", "unlisted"),
            ("Widget.example.com", "unlisted"),
            ("Gone.example.com", "unlisted"),
        ];
        for (text, expected) in table {
            let (kind, group) = text.split_once('.').unwrap_or((text, ""));
            let reported = match classify_kind(&GroupKind::new(group, kind), &discovery) {
                RecordedKind::Served(resource) => format!("served {}", resource.group_kind()),
                RecordedKind::Misspelled(resource) => format!("misspelled {}", resource.group_kind()),
                RecordedKind::UnexpectedlyMissing(None) => "unlisted".to_owned(),
                other => format!("{other:?}"),
            };
            assert_eq!(reported, expected, "{text}");
        }
    }

    #[test]
    fn entries_of_the_deprecated_form_are_resources() {
        let discovery = Discovery::from_resources(vec![resource("apps", "Deployment")]);
        let pair = |resource: &str| (resource.to_owned(), "apps".to_owned());
        let recorded = RecordedKinds::GroupResources([pair("deployments"), pair("gones")].into());
        let entries = classify_recorded_kinds(&recorded, &discovery);
        assert!(matches!(entries[0], (_, RecordedKind::Served(_))));
        let gone = GroupKind::new("apps", "gones");
        assert_eq!(
            entries[1],
            (gone.clone(), RecordedKind::UnexpectedlyMissing(None))
        );
        assert_eq!(find_undiscovered(&recorded, &discovery), BTreeSet::from([gone]));
    }
}
