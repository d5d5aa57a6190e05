//! Predicts objects that no dry run of the server can show yet, because the run first has to write what they need; says
//! which objects these are.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::OnceCell;

use super::Prediction;
use super::answer::parse_object;
use crate::event::{Action, Subject};
use crate::execute::Execution;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::resource::Resource;
use crate::plan::{LiveMembership, is_not_yet_served, kind_defined_by_crd};
use crate::read;

/// The kinds of which dry runs have shown whether the run changes their CRDs. Each CRD is sent once.
#[derive(Debug, Default)]
pub struct RedefinedKinds(RefCell<BTreeMap<GroupKind, Rc<OnceCell<bool>>>>);

impl RedefinedKinds {
    fn cell_of(&self, kind: &GroupKind) -> Rc<OnceCell<bool>> {
        Rc::clone(self.0.borrow_mut().entry(kind.clone()).or_default())
    }
}

impl Execution<'_> {
    /// Returns whether no dry run of this object can be sent: its kind, its version or its namespace does not exist
    /// until the run has written other members, or a value of the object is not known.
    pub fn must_not_be_sent_yet(&self, object: &DesiredObject) -> bool {
        is_not_yet_served(object) || self.lacks_namespace_of(&object.key) || self.has_unknown_value(object)
    }

    /// Returns the resource through which the object can be read now; `None` if the object cannot exist yet.
    pub fn readable_through<'o>(&'o self, object: &'o DesiredObject) -> Option<&'o Arc<Resource>> {
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
        live.as_ref().and_then(|crd| crd.get("spec")) != predicted.as_ref().and_then(|crd| crd.get("spec"))
    }

    /// Predicts an object that no dry run of the server can show yet: merges the manifest into the live object, which
    /// may have another version than the manifest. `live` is the live object if the caller has read it; otherwise, it
    /// is read here if it can exist.
    pub(super) async fn predict_by_merge(
        &self,
        object: &DesiredObject,
        subject: Subject,
        live_membership: &LiveMembership,
        mut live: Option<Value>,
    ) -> Prediction {
        let readable = self.readable_through(object);
        if let Some(resource) = readable.filter(|_| live.is_none()) {
            live = match read::read_object(self.server, resource, &object.key).await {
                Ok(live) => live,
                Err(error) => return self.unread_prediction(subject, &error),
            };
        }
        let reason = match (is_not_yet_served(object), readable) {
            _ if self.has_unknown_value(object) => "the plan does not hold its values",
            (true, Some(_)) => "its version does not exist yet",
            (true, None) => "its kind does not exist yet",
            (false, Some(_)) => "its CustomResourceDefinition changes in the same run",
            (false, None) => "its namespace does not exist yet",
        };
        let manifest = object.object.value();
        let (action, predicted) = match &live {
            None => (Action::Created, manifest),
            Some(live) => (Action::Configured, merged_with_manifest(live, &manifest)),
        };
        let states = (live, Some(predicted));
        Prediction {
            warnings: vec![format!("not validated by the server: {reason}")],
            ..self.conclude(object, subject, live_membership, action, states)
        }
    }
}

/// Returns the live object with the fields of the manifest merged in. Lists are those of the manifest.
pub(super) fn merged_with_manifest(live: &Value, manifest: &Value) -> Value {
    let (Value::Object(live_fields), Value::Object(manifest_fields)) = (live, manifest) else {
        return manifest.clone();
    };
    let mut fields = live_fields.clone();
    for (name, value) in manifest_fields {
        let merged = live_fields
            .get(name)
            .map(|live| merged_with_manifest(live, value));
        fields.insert(name.clone(), merged.unwrap_or_else(|| value.clone()));
    }
    Value::Object(fields)
}
