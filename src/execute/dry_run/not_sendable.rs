//! Says which objects no dry run of the server can show yet, because the run first has to write what they need.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::from_live::PredictedDefinitions;
use crate::execute::Execution;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::resource::Resource;
use crate::plan::{is_not_yet_served, kind_defined_by_crd};
use crate::read;

impl Execution<'_> {
    /// Returns the reason why no dry run of this object can be sent: its kind, its version or its namespace does not
    /// exist until the run has written other members, or a value of the object is not known. `None` if one can be sent.
    pub(super) fn reason_not_to_send_yet(&self, object: &DesiredObject) -> Option<&'static str> {
        if self.has_unknown_value(object) {
            return Some("the plan does not hold its values");
        }
        match (is_not_yet_served(object), self.readable_through(object)) {
            (true, Some(_)) => Some("its version does not exist yet"),
            (true, None) => Some("its kind does not exist yet"),
            (false, None) => Some("its namespace does not exist yet"),
            (false, Some(_)) => None,
        }
    }

    /// Returns the resource through which the object can be read now; `None` if the object cannot exist yet.
    pub(super) fn readable_through<'o>(&'o self, object: &'o DesiredObject) -> Option<&'o Arc<Resource>> {
        if self.lacks_namespace_of(&object.key) {
            return None;
        }
        object.resource_to_read(&self.state.places.resources)
    }

    /// Returns whether a value of the object is not known (a saved plan does not hold it), so that it must not be sent.
    pub(super) fn has_unknown_value(&self, object: &DesiredObject) -> bool {
        self.desired.placeholder_secrets.contains(&object.key)
    }

    /// Returns whether the namespace of this object did not exist when the run was planned.
    pub fn lacks_namespace_of(&self, key: &ObjectKey) -> bool {
        let namespace = key.namespace.as_ref();
        namespace.is_some_and(|namespace| !self.state.namespaces.contains_key(namespace))
    }

    /// Returns whether this run changes the spec of the CRD of this kind. The CRDs are read once for all objects.
    pub(super) async fn is_redefined_by_run(
        &self,
        kind: &GroupKind,
        definitions: &PredictedDefinitions,
    ) -> bool {
        let redefined = definitions.redefined.get_or_init(|| self.find_redefined_kinds());
        redefined.await.contains(kind)
    }

    /// Returns the kinds whose CRDs get another spec from this run. A CRD that cannot be read counts as unchanged, and
    /// the errors of its objects are reported.
    async fn find_redefined_kinds(&self) -> BTreeSet<GroupKind> {
        let mut redefined = BTreeSet::new();
        for apply in self.plan.all_applies() {
            let crd = &self.desired.members[apply.index];
            if let Some(kind) = kind_defined_by_crd(crd)
                && let Ok(Some(live)) = read::read_object(self.server, &crd.resource, &crd.key).await
            {
                let predicted = self.predict_apply_over(&live, crd, &apply.live_membership, None);
                if predicted.object["spec"] != live["spec"] {
                    redefined.insert(kind);
                }
            }
        }
        redefined
    }
}
