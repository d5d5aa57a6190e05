//! The messages of refusals, and the phrases in them. Refusals that differ only in their object share one message, with
//! one hint below it.

use std::collections::BTreeMap;

use super::Refusal;
use crate::error::{Error, ErrorKind};
use crate::model::applyset::Tooling;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::text::{counted, first_lines_and_more, first_names_and_more, first_names_up_to};
use crate::plan::OtherParent;

/// The most members of a set that a message names.
const MOST_NAMED_MEMBERS: usize = 3;

impl Refusal {
    /// Returns the error of a run that is refused.
    pub fn error(refusals: &[Self]) -> Error {
        Error::from_messages(ErrorKind::Refused, Self::messages(refusals))
    }

    /// Returns the messages for these refusals, in the order in which the first of each group occurs.
    pub fn messages(refusals: &[Self]) -> Vec<Message> {
        let mut groups: Vec<(Option<String>, Vec<&Self>)> = Vec::new();
        for refusal in refusals {
            let predicate = refusal.shared_predicate();
            let group = groups.iter_mut().find(|(of_group, members)| {
                predicate.is_some() && *of_group == predicate && members[0].hint() == refusal.hint()
            });
            match group {
                Some((_, members)) => members.push(refusal),
                None => groups.push((predicate, vec![refusal])),
            }
        }
        groups
            .iter()
            .map(|(predicate, members)| match (predicate, &members[..]) {
                (Some(predicate), [first, _, ..]) => {
                    let objects = members.iter().filter_map(|refusal| refusal.describe_object());
                    Message::new(format!("{} objects {predicate}", members.len()))
                        .with_details(first_lines_and_more(objects))
                        .with_hint(first.hint())
                }
                (_, members) => Message::new(members[0].to_string()).with_hint(members[0].hint()),
            })
            .collect()
    }

    /// Returns the part of a message that follows `N objects`, for several objects that are refused for the same
    /// reason. `None` if each refusal of this kind has a message of its own.
    fn shared_predicate(&self) -> Option<String> {
        Some(match self {
            Self::Overlap { parent, id, .. } | Self::OfAnotherSet { parent, id, .. } => {
                format!("belong to {}", describe_other_set(parent, id))
            }
            Self::InNoSet { .. } => "exist and are not in a set".to_owned(),
            Self::PrunesStorage { .. } => "would be deleted with their data".to_owned(),
            Self::PrunesParent { .. } => {
                "would be deleted: they are parents of sets whose members would become orphans".to_owned()
            }
            _ => return None,
        })
    }

    /// Returns the refused object, after its position in the manifests if it has one.
    fn describe_object(&self) -> Option<String> {
        let object = self.object()?;
        Some(match self {
            Self::Overlap { position, .. } | Self::InNoSet { position, .. } => {
                format!("{position}: {object}")
            }
            _ => object.to_string(),
        })
    }
}

/// Returns the tooling of this run in words. If it is not this program, `--tooling` has named it.
pub(super) fn describe_tooling(tooling: &Tooling) -> String {
    if tooling.is_same_program(&Tooling::this_program()) {
        format!("{tooling}")
    } else {
        format!("{tooling} of --tooling")
    }
}

pub(in crate::plan) fn describe_other_set(parent: &OtherParent, id: &str) -> String {
    match parent {
        OtherParent::Found(parent) => format!("{parent}"),
        OtherParent::Gone => format!("a set without a parent ({id})"),
        OtherParent::GoneOrNotVisible => format!("a set whose parent is gone or not visible to you ({id})"),
    }
}

/// Counts objects outside of the namespace whose objects need no confirmation: `2 objects outside namespace shop`.
pub(super) fn describe_number_outside_namespace(
    trusted_namespace: Option<&str>,
    objects: &[ObjectKey],
) -> String {
    let count = counted(objects.len(), "object");
    match trusted_namespace {
        Some(namespace) => format!("{count} outside namespace {namespace}"),
        None => count,
    }
}

/// Lists objects, each with the annotation or label that keeps it.
pub fn list_with_keep_annotations(
    objects: &[ObjectKey],
    keep_annotations: &BTreeMap<ObjectKey, String>,
) -> String {
    first_names_and_more(objects.iter().map(|key| match keep_annotations.get(key) {
        Some(keep_annotation) => format!("{key} (kept by {keep_annotation})"),
        None => key.to_string(),
    }))
}

/// Returns the clause which says that these objects, all members of the set, would be pruned; empty if there are none.
pub(super) fn describe_prune_of_all(objects: &[ObjectKey]) -> String {
    if objects.is_empty() {
        return String::new();
    }
    format!(
        "; all members would be pruned: {}",
        first_names_up_to(MOST_NAMED_MEMBERS, objects)
    )
}

/// Describes what becomes of the members of a disbanded set, and of objects with a copy of its label (`copies`).
pub(super) fn describe_disband(members: usize, copies: &[ObjectKey]) -> String {
    let mut parts = Vec::new();
    if members > 0 || copies.is_empty() {
        parts.push(counted(members, "object") + " would leave it, but stay in the cluster");
    }
    parts.extend(describe_released_copies(copies));
    parts.join("; ")
}

/// Describes objects with a copied label: `the label is also removed from 1 object that is not a member: configmap/a`.
/// `None` if there are none.
pub fn describe_released_copies(copies: &[ObjectKey]) -> Option<String> {
    let objects = match copies.len() {
        0 => return None,
        1 => "1 object that is not a member".to_owned(),
        count => format!("{count} objects that are not members"),
    };
    Some(format!(
        "the label is also removed from {objects}: {}",
        first_names_and_more(copies)
    ))
}

/// Returns the clause about members that are deleted with a set: ` with 2 objects: …`; empty if there are none.
pub(super) fn describe_deleted_members(objects: &[ObjectKey]) -> String {
    if objects.is_empty() {
        return String::new();
    }
    let count = counted(objects.len(), "object");
    format!(
        " with {count}: {}",
        first_names_up_to(MOST_NAMED_MEMBERS, objects)
    )
}

/// Describes the objects that would be lost with a container. `unknown` are the resources that cannot be listed.
pub(in super::super) fn describe_losses(lost: &[ObjectKey], unknown: &[String]) -> String {
    let mut losses = Vec::new();
    if !lost.is_empty() {
        let objects = counted(lost.len(), "object");
        losses.push(format!(
            "{objects} not in this plan: {}",
            first_names_and_more(lost)
        ));
    }
    if !unknown.is_empty() {
        losses.push(format!(
            "objects that cannot be listed: {}",
            first_names_and_more(unknown)
        ));
    }
    losses.join(", and ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::identity::{GroupKind, ObjectKey};
    use crate::plan::OtherParent;

    fn key(kind: &str, name: &str) -> ObjectKey {
        ObjectKey {
            group_kind: GroupKind::new("", kind),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
        }
    }

    #[test]
    fn objects_of_one_other_set_are_one_message_with_one_hint() {
        let other = |name: &str, id: &str| Refusal::OfAnotherSet {
            object: key("ConfigMap", name),
            id: id.to_owned(),
            parent: OtherParent::Found(key("Secret", id)),
        };
        let mut refusals: Vec<Refusal> = (0..32).map(|number| other(&number.to_string(), "web")).collect();
        refusals.insert(1, other("alone", "db"));
        let messages = Refusal::messages(&refusals);
        assert_eq!(messages.len(), 2);
        assert_eq!(
            messages[0].text,
            "32 objects belong to secret/web in namespace shop"
        );
        assert_eq!(messages[0].details.len(), 11);
        assert_eq!(messages[0].details[0], "configmap/0 in namespace shop");
        assert_eq!(messages[0].details[10], "and 22 more");
        assert_eq!(messages[0].hints.len(), 1);
        assert_eq!(
            messages[1].text,
            "configmap/alone in namespace shop belongs to secret/db in namespace shop"
        );
    }
}
