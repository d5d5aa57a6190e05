//! Finds the kinds whose CRDs the same run changes: the server validates dry runs of their objects by the former
//! schema.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;
use tokio::sync::OnceCell;

use super::answer::parse_object;
use crate::execute::Execution;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::GroupKind;
use crate::plan::kind_defined_by_crd;

/// The kinds of which dry runs have shown whether the run changes their CRDs. Each CRD is sent once.
#[derive(Debug, Default)]
pub struct RedefinedKinds(RefCell<BTreeMap<GroupKind, Rc<OnceCell<bool>>>>);

impl RedefinedKinds {
    fn cell_of(&self, kind: &GroupKind) -> Rc<OnceCell<bool>> {
        Rc::clone(self.0.borrow_mut().entry(kind.clone()).or_default())
    }
}

impl Execution<'_> {
    /// Returns whether this run changes the spec of the CRD of the object's kind. One dry run of the CRD serves all
    /// objects of the kind.
    pub(super) async fn is_kind_redefined_by_run(&self, object: &DesiredObject) -> bool {
        let kind = &object.key.group_kind;
        let cell = self.redefined_kinds.cell_of(kind);
        *cell.get_or_init(|| self.changes_spec_of_crd(kind)).await
    }

    /// Returns whether a dry run of the kind's CRD shows another spec than the live CRD. If that dry run fails, the
    /// kind counts as unchanged, and the errors of its objects are reported.
    async fn changes_spec_of_crd(&self, kind: &GroupKind) -> bool {
        let mut applies = self.plan.all_applies();
        let apply_of_crd = applies
            .find(|apply| kind_defined_by_crd(&self.desired.members[apply.index]).as_ref() == Some(kind));
        let Some(apply) = apply_of_crd else {
            return false;
        };
        let crd = &self.desired.members[apply.index];
        let mut live = None;
        let dry_run = async || self.send_apply_dry_run(crd, &apply.live_membership).await;
        let Ok(reply) = self.dry_run_until_live_matches(&mut live, crd, dry_run).await else {
            return false;
        };
        let predicted = parse_object(&reply);
        let spec_of = |crd: Option<Value>| Some(crd?.get("spec")?.clone());
        spec_of(live) != spec_of(predicted)
    }
}
