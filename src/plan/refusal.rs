//! Why a run is refused before its first write, and which flag would lift that.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;

use super::OtherParent;
use crate::event::Operation;
use crate::manifest::Position;
use crate::model::applyset::Tooling;
use crate::model::applyset::parent::ParentFault;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;
use crate::model::text::{counted, listed};

/// One reason why nothing may be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The parent's bookkeeping cannot be trusted.
    #[error("the set's parent {parent} cannot be trusted: {fault}")]
    FaultyParent {
        /// The parent.
        parent: ObjectKey,
        /// What is wrong with it.
        fault: ParentFault,
    },
    /// Another program manages the set.
    #[error("the set of {parent} is managed by {found}, and {}", this_is(.ours))]
    OtherTooling {
        /// The parent.
        parent: ObjectKey,
        /// The program that the parent names.
        found: Tooling,
        /// This program.
        ours: Tooling,
    },
    /// The object exists and is no parent.
    #[error("{parent} exists and is not the parent of a set")]
    NotAParent {
        /// The object.
        parent: ObjectKey,
    },
    /// Somebody is deleting the parent.
    #[error("the set's parent {parent} is being deleted")]
    ParentTerminating {
        /// The parent.
        parent: ObjectKey,
    },
    /// Somebody is deleting the parent's namespace.
    #[error("the namespace {namespace} of the set's parent is being deleted")]
    HomeTerminating {
        /// The namespace.
        namespace: String,
    },
    /// There is not a single manifest.
    #[error("the manifests hold no member, so everything in the set would be pruned")]
    EmptyManifests,
    /// An object of the manifests is a member of another set.
    #[error("{position}: {object} belongs to {}", other_set(.parent, .id))]
    Overlap {
        /// Where the object is written.
        position: Position,
        /// The object.
        object: ObjectKey,
        /// The id of the other set.
        id: String,
        /// The parent of the other set.
        parent: OtherParent,
    },
    /// An object of the manifests exists and is in no set.
    #[error("{position}: {object} exists and is in no set")]
    InNoSet {
        /// Where the object is written.
        position: Position,
        /// The object.
        object: ObjectKey,
    },
    /// A namespace or kind would be pruned that holds what is not pruned.
    #[error("deleting {container} would take along {}", losses(.lost, .unknown))]
    HoldsOthers {
        /// The namespace, or the definition of the kind.
        container: ObjectKey,
        /// Objects that would be lost.
        lost: Vec<ObjectKey>,
        /// Resources that could not be listed.
        unknown: Vec<String>,
    },
    /// A namespace or kind would be pruned that holds objects of the manifests.
    #[error("{container} left the manifests, and these objects of the manifests are in it: {}", listed(.wanted))]
    HoldsWanted {
        /// The namespace, or the definition of the kind.
        container: ObjectKey,
        /// Objects of the manifests.
        wanted: Vec<ObjectKey>,
    },
    /// A volume or a claim to one would be pruned.
    #[error("deleting {object} would lose its data")]
    PrunesStorage {
        /// The volume or claim.
        object: ObjectKey,
    },
    /// The parent of another set would be pruned.
    #[error(
        "deleting {object}, which is the parent of another set, would leave members that nobody finds any more"
    )]
    PrunesParent {
        /// The parent.
        object: ObjectKey,
    },
    /// Desired or kept objects have owner references to what would be pruned.
    #[error(
        "{object}: not deleted: the garbage collector would then delete {}",
        with_marks(.dependants, .marks)
    )]
    OwnsDependants {
        /// What would be deleted.
        object: ObjectKey,
        /// The objects that would be lost with it.
        dependants: Vec<ObjectKey>,
        /// The annotations or labels, as `key: value`, that keep some of them.
        marks: BTreeMap<ObjectKey, String>,
        /// Whether there are manifests to put it back into.
        operation: Operation,
    },
    /// What would be pruned owns, or may own, something that this run can do nothing to keep.
    #[error(
        "{object}: not pruned: it is, or may be, an owner of {}",
        listed(.dependants)
    )]
    OwnsBound {
        /// What would be pruned.
        object: ObjectKey,
        /// The objects that would be lost with it.
        dependants: Vec<ObjectKey>,
    },
    /// More would be pruned than the user allows.
    #[error("{} would be pruned, and --max-prune allows {limit}: {}", counted(.objects.len(), "object"), listed(.objects))]
    TooManyPrunes {
        /// What would be pruned.
        objects: Vec<ObjectKey>,
        /// The limit.
        limit: usize,
    },
    /// A whole set would be deleted, and nobody has said that this is meant.
    #[error("the set of {parent} would be deleted{}", with_objects(.objects))]
    DeletesSet {
        /// The parent.
        parent: ObjectKey,
        /// The members that would be deleted with it.
        objects: Vec<ObjectKey>,
    },
    /// The parent cannot carry the record.
    #[error("the annotations of {parent} would take {size} bytes, and an object may have {limit}")]
    AnnotationsTooLarge {
        /// The parent.
        parent: ObjectKey,
        /// Bytes of all keys and values.
        size: usize,
        /// What the API server allows.
        limit: usize,
    },
    /// The bookkeeping of a parent would be mended, and nobody has said that this is meant.
    #[error("{parent} would be mended: {}", .changes.join("; "))]
    MendsParent {
        /// The parent.
        parent: ObjectKey,
        /// What would change, in words.
        changes: Vec<String>,
    },
    /// An object that is to be adopted is a member of another set.
    #[error("{object} belongs to {}", other_set(.parent, .id))]
    OfAnotherSet {
        /// The object.
        object: ObjectKey,
        /// The id of the other set.
        id: String,
        /// The parent of the other set.
        parent: OtherParent,
    },
    /// Another program manages a set whose members are to change.
    #[error("the set of {parent} is managed by {found}, and {}", this_is(.ours))]
    ManagedElsewhere {
        /// The parent.
        parent: ObjectKey,
        /// The program that the parent names.
        found: Tooling,
        /// This program.
        ours: Tooling,
        /// The command that would change them.
        operation: Operation,
    },
    /// Nobody has confirmed that a set is to be forgotten.
    #[error("the set of {parent} would be forgotten, and {} in it kept as they are, in no set", counted(*.members, "object"))]
    ForgetsSet {
        /// The parent.
        parent: ObjectKey,
        /// How many objects would be released.
        members: usize,
    },
    /// An inventory holds objects outside of the namespace that it is believed for.
    #[error("inventory {inventory} names {}: {}", outside(.home.as_deref(), .objects), listed(.objects))]
    ReachesOutside {
        /// The inventory as the command line names it.
        inventory: String,
        /// The namespace; `None` if it is believed for none.
        home: Option<String>,
        /// The objects that would be adopted, those without a namespace first.
        objects: Vec<ObjectKey>,
    },
    /// An inventory holds objects, and all of them are skipped.
    #[error("inventory {inventory}: nothing to adopt: all of its objects are skipped")]
    NothingToAdopt {
        /// The inventory as the command line names it.
        inventory: String,
        /// Whether some of them have no mark of the tool.
        is_unmarked: bool,
    },
}

impl Refusal {
    /// What to do about an object that exists and is in no set.
    pub const UNOWNED_HINT: &str =
        "take it in with `kubectl applyset adopt SET -f …`, or leave out --only-new-or-owned";

    /// What a person is shown who is asked whether to go on: of many objects, how many of
    /// each kind there are in which namespace.
    pub fn question(&self) -> Message {
        if let Self::ReachesOutside {
            inventory,
            home,
            objects,
        } = self
        {
            return Message::new(format!(
                "inventory {inventory} names {}:",
                outside(home.as_deref(), objects)
            ))
            .with_details(objects.iter().map(ToString::to_string));
        }
        let Self::DeletesSet { parent, objects } = self else {
            return self.to_string().into();
        };
        let mut counts: BTreeMap<(Option<&String>, String), usize> = BTreeMap::new();
        for key in objects {
            *counts
                .entry((key.namespace.as_ref(), key.group_kind.to_string()))
                .or_default() += 1;
        }
        let lines = counts.into_iter().map(|((namespace, kind), count)| {
            let place = namespace.map_or_else(String::new, |name| format!(" in namespace {name}"));
            format!("{count} {kind}{place}")
        });
        Message::new(format!(
            "the set of {parent} would be deleted with {}{}",
            counted(objects.len(), "object"),
            if objects.is_empty() { "" } else { ":" }
        ))
        .with_details(lines)
    }

    /// The one object of the manifests or of the set that may not be written; `None` where
    /// the refusal is about the run as a whole.
    pub fn object(&self) -> Option<&ObjectKey> {
        match self {
            Self::Overlap { object, .. }
            | Self::InNoSet { object, .. }
            | Self::OfAnotherSet { object, .. }
            | Self::PrunesStorage { object }
            | Self::OwnsDependants { object, .. }
            | Self::OwnsBound { object, .. }
            | Self::PrunesParent { object } => Some(object),
            Self::HoldsOthers { container, .. } | Self::HoldsWanted { container, .. } => Some(container),
            Self::FaultyParent { .. }
            | Self::OtherTooling { .. }
            | Self::NotAParent { .. }
            | Self::ParentTerminating { .. }
            | Self::HomeTerminating { .. }
            | Self::EmptyManifests
            | Self::TooManyPrunes { .. }
            | Self::DeletesSet { .. }
            | Self::MendsParent { .. }
            | Self::ForgetsSet { .. }
            | Self::ManagedElsewhere { .. }
            | Self::ReachesOutside { .. }
            | Self::NothingToAdopt { .. }
            | Self::AnnotationsTooLarge { .. } => None,
        }
    }

    /// Whether `--allow-data-loss` lifts it, or a person who has read what will be lost.
    pub fn is_data_loss(&self) -> bool {
        matches!(
            self,
            Self::HoldsOthers { .. }
                | Self::PrunesStorage { .. }
                | Self::PrunesParent { .. }
                | Self::OwnsDependants { .. }
        )
    }

    /// Whether whoever was shown `other` and allowed it has allowed this, too: it is the same,
    /// or less would be lost of the same.
    pub fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::HoldsOthers {
                    container,
                    lost,
                    unknown,
                },
                Self::HoldsOthers {
                    container: shown,
                    lost: shown_lost,
                    unknown: shown_unknown,
                },
            ) => container == shown && is_among(lost, shown_lost) && is_among(unknown, shown_unknown),
            (
                Self::OwnsDependants {
                    object, dependants, ..
                },
                Self::OwnsDependants {
                    object: shown,
                    dependants: shown_dependants,
                    ..
                },
            ) => object == shown && is_among(dependants, shown_dependants),
            _ => self == other,
        }
    }

    /// Whether `--take-over` lifts it, once a person has read whose set it is.
    pub fn is_take_over(&self) -> bool {
        matches!(
            self,
            Self::OtherTooling { .. }
                | Self::NotAParent { .. }
                | Self::ManagedElsewhere {
                    operation: Operation::Delete,
                    ..
                }
        )
    }
}

fn is_among<T: Eq + Hash>(some: &[T], all: &[T]) -> bool {
    let all: HashSet<&T> = all.iter().collect();
    some.iter().all(|one| all.contains(one))
}

fn this_is(tooling: &Tooling) -> String {
    if tooling.is_same_program(&Tooling::ours()) {
        format!("this is {tooling}")
    } else {
        format!("--tooling names {tooling}")
    }
}

fn other_set(parent: &OtherParent, id: &str) -> String {
    match parent {
        OtherParent::Found(parent) => format!("the set of {parent}"),
        OtherParent::Gone => format!("another set, {id}, whose parent is gone"),
        OtherParent::Unseen => format!("another set, {id}, whose parent is gone or not yours to see"),
    }
}

fn outside(home: Option<&str>, objects: &[ObjectKey]) -> String {
    let count = counted(objects.len(), "object");
    match home {
        Some(home) => format!("{count} outside of namespace {home}"),
        None => count,
    }
}

/// Names objects, each with the annotation or label that keeps it.
pub fn with_marks(objects: &[ObjectKey], marks: &BTreeMap<ObjectKey, String>) -> String {
    listed(objects.iter().map(|key| match marks.get(key) {
        Some(mark) => format!("{key} (kept by its mark {mark})"),
        None => key.to_string(),
    }))
}

fn with_objects(objects: &[ObjectKey]) -> String {
    if objects.is_empty() {
        return String::new();
    }
    let count = counted(objects.len(), "object");
    format!(", and with it {count}: {}", listed(objects))
}

/// What would be lost with a namespace or the definition of a kind, in words.
pub(super) fn losses(lost: &[ObjectKey], unknown: &[String]) -> String {
    let mut losses = Vec::new();
    if !lost.is_empty() {
        let objects = counted(lost.len(), "object");
        losses.push(format!(
            "{objects} that this run does not prune: {}",
            listed(lost)
        ));
    }
    if !unknown.is_empty() {
        losses.push(format!(
            "whatever there is of these, which could not be listed: {}",
            listed(unknown)
        ));
    }
    losses.join(", and ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::identity::GroupKind;

    #[test]
    fn a_refusal_can_be_read_however_many_objects_it_is_about() {
        let objects: Vec<ObjectKey> = (0..1000)
            .map(|number| ObjectKey {
                group_kind: GroupKind::new("", "ConfigMap"),
                namespace: None,
                name: number.to_string(),
            })
            .collect();
        let refusals = [
            Refusal::TooManyPrunes {
                objects: objects.clone(),
                limit: 10,
            },
            Refusal::DeletesSet {
                parent: objects[0].clone(),
                objects: objects.clone(),
            },
            Refusal::ReachesOutside {
                inventory: "helm/web".to_owned(),
                home: Some("shop".to_owned()),
                objects: objects.clone(),
            },
            Refusal::HoldsOthers {
                container: objects[0].clone(),
                lost: objects,
                unknown: Vec::new(),
            },
        ];
        for refusal in refusals {
            let told = refusal.to_string();
            assert!(told.contains("configmap/9 and 990 more"), "{told}");
            assert!(told.contains("1000 objects") && told.len() < 400, "{told}");
        }
    }

    #[test]
    fn a_question_about_an_inventory_shows_every_object() {
        let objects = (0..12).map(|number| ObjectKey {
            group_kind: GroupKind::new("", "ConfigMap"),
            namespace: Some("away".to_owned()),
            name: number.to_string(),
        });
        let refusal = Refusal::ReachesOutside {
            inventory: "helm/web".to_owned(),
            home: Some("shop".to_owned()),
            objects: objects.collect(),
        };
        let question = refusal.question();
        assert_eq!(
            question.text,
            "inventory helm/web names 12 objects outside of namespace shop:"
        );
        assert_eq!(question.details.len(), 12);
        assert_eq!(question.details[11], "configmap/11 in namespace away");
    }

    #[test]
    fn a_yes_covers_what_was_shown_and_nothing_more() {
        let key = |kind: &str, name: &str| ObjectKey {
            group_kind: GroupKind::new("", kind),
            namespace: None,
            name: name.to_owned(),
        };
        let holds = |container: &str, lost: &[&str], unknown: &[&str]| Refusal::HoldsOthers {
            container: key("Namespace", container),
            lost: lost.iter().map(|name| key("ConfigMap", name)).collect(),
            unknown: unknown.iter().map(|&name| name.to_owned()).collect(),
        };
        let storage = |name: &str| Refusal::PrunesStorage {
            object: key("PersistentVolume", name),
        };
        let shown = holds("b", &["x", "y"], &["pods"]);
        for (refusal, is_within) in [
            (holds("b", &["x", "y"], &["pods"]), true),
            (holds("b", &["y"], &[]), true),
            (holds("b", &["x", "z"], &[]), false),
            (holds("b", &["x"], &["jobs"]), false),
            (holds("c", &["x"], &[]), false),
            (storage("x"), false),
        ] {
            assert_eq!(refusal.is_within(&shown), is_within, "{refusal}");
        }
        assert!(storage("x").is_within(&storage("x")));
        assert!(!storage("x").is_within(&storage("y")));
    }
}
