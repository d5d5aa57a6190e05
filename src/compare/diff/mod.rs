//! Live objects against what a run would make of them: what differs, field by field and
//! as text, without what changes by itself and without the values of Secrets.
//!
//! Pure. What a run would make of an object is found out in `execute::foresee`; how
//! differences are shown is the business of `report`.

mod changes;
mod mask;
mod noise;
mod record;
mod unified;

use serde_json::Value;

pub use changes::Change;
pub(crate) use mask::{FIELDS as SECRET_FIELDS, LAST_APPLIED};
pub use record::parent;

use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::resource::Resource;
use crate::model::text::one_line;

/// One object before and after a run, as it may be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The name that kubectl gives the file of this object, such as
    /// `apps.v1.Deployment.shop.web`.
    pub file: String,
    /// The live object; `None` where there is none.
    pub live: Option<Value>,
    /// What it would be; `None` where it would be gone.
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
        noise::leave_out(&mut difference.live, &mut difference.predicted);
        if key.group_kind == GroupKind::new("", "Secret") {
            mask::hide(&mut difference.live, &mut difference.predicted);
        }
        difference
    }

    /// Whether the two are alike.
    pub fn is_empty(&self) -> bool {
        self.live == self.predicted
    }

    /// The fields that differ, in the order of their paths; none for an object that is
    /// there only before or only after.
    pub fn changes(&self) -> Vec<Change> {
        match (&self.live, &self.predicted) {
            (Some(live), Some(predicted)) => changes::changes(live, predicted),
            _ => Vec::new(),
        }
    }

    /// The text that `kubectl diff` prints for it; empty where nothing differs.
    pub fn unified(&self) -> String {
        unified::text(
            &self.file,
            &text(self.live.as_ref()),
            &text(self.predicted.as_ref()),
        )
    }
}

/// An object as YAML; nothing for none.
///
/// Strings of several lines are blocks, so that their lines can be told apart; no line is
/// broken that is not in the object.
pub fn text(object: Option<&Value>) -> String {
    let options = serde_saphyr::ser_options! {
        folded_wrap_chars: usize::MAX,
    };
    object.map_or_else(String::new, |object| {
        serde_saphyr::to_string_with_options(object, options)
            .unwrap_or_else(|error| format!("error: {:?}\n", error.to_string()))
    })
}

/// `[GROUP.]VERSION.KIND.NAMESPACE.NAME` (kubectl, `pkg/cmd/diff`, `InfoObject.Name`).
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
