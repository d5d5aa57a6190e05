//! The kinds whose CRDs change in the same run: the server still types their objects by the former schema.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;
use tokio::sync::OnceCell;

use super::answer::content;
use crate::execute::Execution;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::GroupKind;
use crate::plan::defined_kind;

/// The kinds for which a dry run has determined whether the run changes their CRDs.
#[derive(Debug, Default)]
pub struct RedefinedKinds(RefCell<BTreeMap<GroupKind, Rc<OnceCell<bool>>>>);

impl RedefinedKinds {
    fn of(&self, kind: &GroupKind) -> Rc<OnceCell<bool>> {
        Rc::clone(self.0.borrow_mut().entry(kind.clone()).or_default())
    }
}

impl Execution<'_> {
    /// Returns whether this run changes the spec of the CRD of the object's kind. The CRD is sent once for all objects
    /// of the kind.
    pub(super) async fn is_redefined(&self, object: &DesiredObject) -> bool {
        let kind = &object.key.group_kind;
        let known = self.redefined_kinds.of(kind);
        *known.get_or_init(|| self.has_changed_definition(kind)).await
    }

    async fn has_changed_definition(&self, kind: &GroupKind) -> bool {
        let mut applies = self.plan.all_applies();
        let definition =
            applies.find(|apply| defined_kind(&self.desired.members[apply.index]).as_ref() == Some(kind));
        let Some(apply) = definition else {
            return false;
        };
        let definition = &self.desired.members[apply.index];
        let mut live = None;
        let dry_run = async || self.send_dry_run(definition, &apply.live_membership).await;
        let reply = self.dry_run_on(&mut live, definition, dry_run).await.ok();
        let predicted = reply.as_ref().and_then(content);
        let spec = |definition: Option<Value>| Some(definition?.get("spec")?.clone());
        spec(live) != spec(predicted)
    }
}
