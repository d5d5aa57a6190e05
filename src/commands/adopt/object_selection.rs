//! How the objects to be adopted are selected: by name, by labels, or by an inventory. An object that
//! changes before it is written must still be selected in the same way.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::compare::ownership::{self, Former, LastApplied};
use crate::import::{self, Tool, UnmarkedObjects};
use crate::model::identity::GroupKind;
use crate::model::live::Live;
use crate::plan::{Candidate, FieldOwnership, FoundBy};

/// How the objects to be adopted are selected.
#[derive(Default)]
pub(super) enum ObjectSelection {
    /// By their names in manifests.
    #[default]
    Named,
    /// By labels that match this selector, with the field managers of appliers.
    Selected(String, BTreeSet<String>),
    /// In the inventory of a tool, and by a selector if that is how the tool finds them.
    Tracked(Box<Tracked>),
}

/// The inventory of a tool, and how it is read.
pub(super) struct Tracked {
    pub(super) tool: Tool,
    pub(super) inventory: import::FoundInventory,
    pub(super) unmarked: UnmarkedObjects,
    pub(super) selector: Option<String>,
    /// The field manager that takes over the fields of the tool, and what becomes of its last-applied annotation; `None`
    /// if the tool keeps them.
    pub(super) new_owner: Option<(String, LastApplied)>,
}

impl ObjectSelection {
    /// Returns the object, of which `object` holds the metadata, as a candidate.
    pub(super) fn candidate(&self, object: &Value, live: Live) -> Candidate {
        let metadata = &object["metadata"];
        let found_by = match self {
            Self::Named => FoundBy::Named,
            Self::Selected(_, appliers) => FoundBy::Selected(ownership::creator(metadata, appliers)),
            Self::Tracked(tracked) => FoundBy::Tracked(tracked.tool.compare_mark(
                &tracked.inventory,
                &live.key,
                metadata,
                tracked.unmarked,
            )),
        };
        let fields = match self {
            Self::Tracked(tracked) => tracked.fields(metadata, &live),
            Self::Named | Self::Selected(..) => FieldOwnership::Kept,
        };
        Candidate {
            live,
            found_by,
            fields,
        }
    }

    pub(super) fn selector(&self) -> Option<&str> {
        match self {
            Self::Named => None,
            Self::Selected(selector, _) => Some(selector),
            Self::Tracked(tracked) => tracked.selector.as_deref(),
        }
    }
}

impl Tracked {
    fn fields(&self, metadata: &Value, live: &Live) -> FieldOwnership {
        let Some((manager, last_applied)) = &self.new_owner else {
            return FieldOwnership::Kept;
        };
        let former = Former {
            manager,
            tool: None,
            writers: self.tool.field_managers(&self.inventory),
            last_applied: *last_applied,
        };
        let moved = if live.key.group_kind == GroupKind::new("", "Secret") {
            ownership::migrate_secret_managed_fields(metadata, &former)
        } else {
            ownership::migrate_managed_fields(metadata, &former)
        };
        moved.map_or(FieldOwnership::Kept, FieldOwnership::Moved)
    }
}
