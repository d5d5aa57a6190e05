//! Differences between live objects and their predictions, field by field and as text, without
//! fields that change by themselves and without the values of Secrets.
//!
//! Pure. `execute` predicts objects by a dry run; `report` prints the differences.

mod changed_fields;
mod fields_set_by_server;
mod hide_secret_values;
mod ownership_change;
mod parent;
mod unified;

use serde_json::Value;

pub use super::ownership::LAST_APPLIED;
pub use changed_fields::Change;
pub use hide_secret_values::{AFTER, BEFORE};
pub use hide_secret_values::{FIELDS as SECRET_FIELDS, copies};
pub use ownership_change::OwnershipChange;
pub use parent::parent;
pub use unified::lines;

use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::resource::Resource;
use crate::model::text::one_line;

/// One object before and after a run, as it may be shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Difference {
    /// The name that kubectl gives the file of this object, such as
    /// `apps.v1.Deployment.shop.web`.
    pub file: String,
    /// The live object; `None` if there is none.
    pub live: Option<Value>,
    /// The prediction; `None` if the object would be gone.
    pub predicted: Option<Value>,
}

impl Difference {
    /// Compares the two states of an object as the server sends them.
    ///
    /// `resource` is what both were read through.
    pub fn new(
        resource: &Resource,
        key: &ObjectKey,
        live: Option<&Value>,
        predicted: Option<&Value>,
    ) -> Self {
        let mut difference = Self {
            file: file(resource, key),
            live: live.cloned(),
            predicted: predicted.cloned(),
        };
        fields_set_by_server::leave_out(&mut difference.live, &mut difference.predicted);
        if key.group_kind == GroupKind::new("", "Secret") {
            hide_secret_values::hide(&mut difference.live, &mut difference.predicted);
        }
        difference
    }

    /// Returns whether the two states are equal.
    pub fn is_empty(&self) -> bool {
        self.live == self.predicted
    }

    /// Returns the fields that differ, in the order of their paths; none for an object that
    /// exists only before or only after.
    pub fn changes(&self) -> Vec<Change> {
        match (&self.live, &self.predicted) {
            (Some(live), Some(predicted)) => changed_fields::changes(live, predicted),
            _ => Vec::new(),
        }
    }

    /// Returns the difference between this object before, and the one that replaces it after.
    ///
    /// The values of Secrets are hidden already, so each may have changed, and is shown as changed.
    #[must_use]
    pub fn replaced_by(&self, new: &Self) -> Self {
        let (mut live, mut predicted) = (self.live.clone(), new.predicted.clone());
        fields_set_by_server::leave_out_made_up(&mut live);
        hide_secret_values::mark(&mut live, BEFORE);
        hide_secret_values::mark(&mut predicted, AFTER);
        Self {
            file: new.file.clone(),
            live,
            predicted,
        }
    }

    /// Returns the lines that differ, with some around them; empty if nothing differs.
    pub fn hunks(&self) -> String {
        unified::hunks(&text(self.live.as_ref()), &text(self.predicted.as_ref()))
    }

    /// Returns the text that `kubectl diff` prints; empty if nothing differs.
    pub fn unified(&self) -> String {
        unified::text(
            &self.file,
            &text(self.live.as_ref()),
            &text(self.predicted.as_ref()),
        )
    }
}

/// Writes an object as YAML; nothing for `None`.
///
/// Strings of several lines are blocks, so that their lines can be compared; no line of the
/// object is broken.
pub fn text(object: Option<&Value>) -> String {
    let options = serde_saphyr::ser_options! {
        folded_wrap_chars: usize::MAX,
    };
    object.map_or_else(String::new, |object| {
        serde_saphyr::to_string_with_options(object, options)
            .unwrap_or_else(|error| format!("error: {:?}\n", error.to_string()))
    })
}

/// Returns `[GROUP.]VERSION.KIND.NAMESPACE.NAME` (kubectl, `pkg/cmd/diff`, `InfoObject.Name`).
fn file(resource: &Resource, key: &ObjectKey) -> String {
    let Resource {
        group, version, kind, ..
    } = resource;
    let dot = if group.is_empty() { "" } else { "." };
    let namespace = key.namespace.as_deref().unwrap_or_default();
    one_line(&format!("{group}{dot}{version}.{kind}.{namespace}.{}", key.name))
}

#[cfg(test)]
mod tests;
