//! How the objects to be adopted are selected: by name, by labels, or by an inventory. If an object is changed by
//! others before the run writes it, the same selection decides again whether the object is adopted.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::compare::ownership::{self, LastAppliedTreatment, OwnershipMigration};
use crate::import::{self, Tool};
use crate::model::live::Live;
use crate::plan::{Candidate, FieldOwnership, FoundBy};

/// How the objects to be adopted are selected.
#[derive(Default)]
pub(super) enum ObjectSelection {
    /// By their names in manifests.
    #[default]
    Named,
    /// By labels. The field managers are those of appliers, which show whether an object was applied or copied.
    Selected(BTreeSet<String>),
    /// By the inventory of a tool.
    Tracked(Box<InventorySelection>),
}

/// The inventory of a tool, and how its objects are adopted.
pub(super) struct InventorySelection {
    pub(super) tool: Tool,
    pub(super) inventory: import::FoundInventory,
    /// The field manager that gets the ownership of the tool's fields, and what becomes of the tool's last-applied
    /// annotation; `None` if the tool keeps both.
    pub(super) new_owner: Option<(String, LastAppliedTreatment)>,
}

impl ObjectSelection {
    /// Returns the live object as a candidate for the adoption. `object` has its whole metadata.
    pub(super) fn to_candidate(&self, object: &Value, live: Live) -> Candidate {
        let metadata = &object["metadata"];
        let found_by = match self {
            Self::Named => FoundBy::Named,
            Self::Selected(appliers) => FoundBy::Selected(ownership::creator(metadata, appliers)),
            Self::Tracked(tracked) => {
                FoundBy::Tracked(tracked.tool.compare_mark(&tracked.inventory, &live.key, metadata))
            }
        };
        let fields = match self {
            Self::Tracked(tracked) => tracked.field_ownership_after_adoption(metadata, &live),
            Self::Named | Self::Selected(_) => FieldOwnership::Kept,
        };
        Candidate {
            live,
            found_by,
            fields,
        }
    }
}

impl InventorySelection {
    /// Returns the ownership of the object's fields after the adoption.
    fn field_ownership_after_adoption(&self, metadata: &Value, live: &Live) -> FieldOwnership {
        let Some((manager, last_applied)) = &self.new_owner else {
            return FieldOwnership::Kept;
        };
        let former = OwnershipMigration {
            manager,
            tool: None,
            writers: self.tool.field_managers(&self.inventory),
            last_applied: *last_applied,
        };
        ownership::migrated_managed_fields_of_kind(&live.key.group_kind, metadata, &former)
            .map_or(FieldOwnership::Kept, FieldOwnership::Moved)
    }
}
