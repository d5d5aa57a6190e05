//! The rows about consequences of a plan: lost data, and all else that needs consent.

use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::text::{counted, first_lines_and_more};
use crate::plan::{Refusal, describe_released_copies};
use crate::report::layout::paint::Color;
use crate::report::layout::plan_rows::PlanRow;

/// The sign and color of a row about a consequence.
pub(in crate::report) const WARNED: (char, Color) = ('!', Color::Danger);
/// The loss of data by a prune.
const DATA_IS_LOST: &str = "DATA IS LOST";
/// The loss of data by a recreation.
pub(super) const ITS_DATA_IS_LOST: &str = "its data would be lost";

/// Describes what is deleted with a container; `None` for any other object.
pub(super) fn describe_container_contents(key: &ObjectKey) -> Option<&'static str> {
    match (key.group_kind.group.as_str(), key.group_kind.kind.as_str()) {
        ("", "Namespace") => Some("with everything in it"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some("with all objects of its kind"),
        _ => None,
    }
}

/// Returns the row about a pruned container; `None` for any other object.
pub(in crate::report) fn pruned_container_row(key: &ObjectKey) -> Option<PlanRow> {
    Some(PlanRow::new(WARNED, Some(key), describe_container_contents(key)?))
}

/// Returns the row about the consequence that a refusal warns of; `None` if the line of the plan shows it.
pub(in crate::report) fn consequence_row(refusal: &Refusal) -> Option<PlanRow> {
    let object = match refusal {
        Refusal::DeletesSet { .. } => return None,
        Refusal::RepairsParent { parent, .. } => Some(parent),
        _ => refusal.object(),
    };
    let details = match refusal {
        Refusal::HoldsOthers {
            container,
            lost,
            unknown,
            ..
        } => {
            let namespace = (container.group_kind == GroupKind::for_namespaces()).then_some(&container.name);
            let mut details = list_first_and_count_rest(lost, namespace);
            details.extend(unknown.iter().map(|what| format!("{what} (could not be listed)")));
            details
        }
        Refusal::OwnsDependents { dependents, .. } => list_first_and_count_rest(dependents, None),
        Refusal::DisbandsSet {
            members: 1.., copies, ..
        } => describe_released_copies(copies).into_iter().collect(),
        Refusal::RepairsParent { changes, .. } => changes.clone(),
        Refusal::ReachesOutside { objects, .. } => objects.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    let row = PlanRow::new(WARNED, object, consequence_text(refusal));
    Some(PlanRow { details, ..row })
}

/// Returns the text of [`consequence_row`]; it ends with a colon if details follow.
pub(super) fn consequence_text(refusal: &Refusal) -> String {
    match refusal {
        Refusal::PrunesStorage { .. } => DATA_IS_LOST.to_owned(),
        Refusal::HoldsOthers { lost, .. } if lost.is_empty() => {
            "also deletes what could not be listed:".to_owned()
        }
        Refusal::HoldsOthers { lost, .. } => format!("also deletes {} not in the set:", count_objects(lost)),
        Refusal::HoldsDesired { desired, .. } => format!("holds {} of the manifests", count_objects(desired)),
        Refusal::PrunesParent { .. } => "is the parent of a set whose members become orphans".to_owned(),
        Refusal::OwnsDependents { dependents, .. } => {
            format!(
                "owns {}, which stay without this owner:",
                count_objects(dependents)
            )
        }
        Refusal::OwnsUndetachable { dependents, .. } => {
            format!("owns {} that must stay", count_objects(dependents))
        }
        Refusal::EmptyManifests { objects } if objects.is_empty() => {
            "no objects in the manifests: check the paths given to -f".to_owned()
        }
        Refusal::EmptyManifests { .. } => {
            "no objects in the manifests: all members would be pruned".to_owned()
        }
        Refusal::PrunesAll { .. } => {
            "all members would be pruned: check the directory and the set".to_owned()
        }
        Refusal::DisbandsSet {
            members: 0, copies, ..
        } => describe_released_copies(copies).unwrap_or_default(),
        Refusal::DisbandsSet { members: 1, .. } => {
            "1 object leaves the set, but stays in the cluster".to_owned()
        }
        Refusal::DisbandsSet { members, .. } => {
            format!("{members} objects leave the set, but stay in the cluster")
        }
        Refusal::RepairsParent { .. } => "is changed:".to_owned(),
        Refusal::ReachesOutside {
            inventory,
            objects: outside,
            ..
        } => {
            format!(
                "inventory {inventory} lists {} elsewhere:",
                count_objects(outside)
            )
        }
        other => other.to_string(),
    }
}

fn count_objects(objects: &[ObjectKey]) -> String {
    counted(objects.len(), "object")
}

/// Formats the first of these objects, and the number of the others. Objects in `omitted_namespace` are named without
/// it.
fn list_first_and_count_rest(objects: &[ObjectKey], omitted_namespace: Option<&String>) -> Vec<String> {
    first_lines_and_more(objects.iter().map(|key| match &key.namespace {
        place if place.as_ref() == omitted_namespace => key.object_name(),
        _ => key.to_string(),
    }))
}
