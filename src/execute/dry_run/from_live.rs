//! Predicts applies from the live objects alone: for users who may only read (`--dry-run=client`), and for what no dry
//! run of the server can show, because the run has to write something else first. Nothing but reads is sent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::OnceCell;

use super::answer::without_managed_field_times;
use super::{ParentPrediction, Prediction};
use crate::cluster::apiserver::{ApiError, Status, StatusCause};
use crate::compare::changes::CrdVersion;
use crate::compare::ownership;
use crate::compare::prediction::{Doubt, PredictedApply, PredictedConflict, predict_apply, predict_creation};
use crate::event::{Action, Event, Sink, Subject};
use crate::execute::Execution;
use crate::execute::members::apply_with_live_fields::ApplyWithLiveFields;
use crate::execute::members::message_of_conflict::conflict_message;
use crate::manifest::desired::DesiredObject;
use crate::model::built_in_kinds::is_built_in;
use crate::model::identity::GroupKind;
use crate::model::message::Message;
use crate::model::resource::{Origin, Resource};
use crate::model::write_settings::{Conflicts, DryRun};
use crate::plan::{LiveMembership, kind_defined_by_crd};
use crate::read::{self, Definitions};

/// The CRDs of custom resources as far as predictions need them.
#[derive(Debug)]
pub(super) struct PredictedDefinitions {
    by_kind: Definitions,
    /// The kinds whose CRDs the run changes; empty until they are needed.
    pub(super) redefined: OnceCell<BTreeSet<GroupKind>>,
}

impl Execution<'_> {
    /// Returns the CRDs that predictions need: those that the run changes, as in their manifests, and in a client dry run
    /// those of all other custom resources, which are read. One that cannot be read is missing, with a warning if it may
    /// be read.
    pub(super) async fn read_definitions_to_predict(&self, sink: &mut Sink<'_>) -> PredictedDefinitions {
        let applied = self
            .plan
            .all_applies()
            .map(|apply| &self.desired.members[apply.index]);
        let mut definitions = Definitions::default();
        if self.writing.dry_run == DryRun::Client {
            let resources: BTreeMap<GroupKind, &Arc<Resource>> = applied
                .clone()
                .map(|object| &object.resource)
                .filter(|resource| resource.origin == Origin::Served && is_custom(resource))
                .map(|resource| (resource.group_kind(), resource))
                .collect();
            let resources: Vec<_> = resources.into_values().collect();
            definitions = read::read_crds_by_kind(self.server, &resources, self.writing.concurrency)
                .await
                .unwrap_or_else(|error| {
                    sink(Event::Warning(error.to_string()));
                    Definitions::default()
                });
        }
        definitions.extend(applied.filter_map(|crd| Some((kind_defined_by_crd(crd)?, crd.object.value()))));
        PredictedDefinitions {
            by_kind: definitions,
            redefined: OnceCell::new(),
        }
    }

    /// Predicts an apply from the live object, which may have another version than the manifest. `unvalidated` is the
    /// reason why no dry run of the server could show the object yet, whether or not the user wants one; `None` if one
    /// could. `live` is read here, if the object can exist, unless the caller has read it.
    pub(super) async fn predict_from_live(
        &self,
        object: &DesiredObject,
        subject: Subject,
        live_membership: &LiveMembership,
        definitions: &PredictedDefinitions,
        unvalidated: Option<&str>,
        mut live: Option<Value>,
    ) -> Prediction {
        let definition = definitions
            .by_kind
            .get(&object.key.group_kind)
            .and_then(|definition| CrdVersion::from_definition(definition, &object.resource.version));
        if let Some(resource) = self.readable_through(object).filter(|_| live.is_none()) {
            live = match read::read_object(self.server, resource, &object.key).await {
                Ok(live) => live,
                Err(error) => return self.unread_prediction(subject, &error),
            };
        }
        let mut warnings: Vec<String> = unvalidated
            .map(|reason| format!("not validated by the server: {reason}"))
            .into_iter()
            .collect();
        let Some(live) = live else {
            let created = predict_creation(&object.object.value(), definition);
            let states = (None, Some(created));
            return Prediction {
                warnings,
                ..self.build_prediction(object, subject, live_membership, Action::Created, states)
            };
        };
        let predicted = self.predict_apply_over(&live, object, live_membership, definition);
        if let Some(error) = self
            .conflict_error(object, &predicted.conflicts)
            .filter(|error| !self.takes_all_fields_in_conflict(error, live_membership))
        {
            let error = self.leave_out_taken_fields_unless_alone(error, live_membership);
            let message = explain_conflict(&error, object, &live);
            return Prediction {
                warnings,
                ..Prediction::failed_unchanged(subject, message, Some(live))
            };
        }
        let is_unchanged = predicted.doubt.is_none()
            && without_managed_field_times(&live) == without_managed_field_times(&predicted.object);
        let action = if is_unchanged {
            Action::Unchanged
        } else {
            Action::Configured
        };
        if warnings.is_empty() {
            warnings.extend(
                predicted
                    .doubt
                    .map(|doubt| format!("the prediction may be wrong: {doubt}")),
            );
        }
        let states = (Some(live), Some(predicted.object));
        Prediction {
            warnings,
            ..self.build_prediction(object, subject, live_membership, action, states)
        }
    }

    /// Predicts the parent from its manifest and the live parent.
    pub(super) async fn predict_parent_from_live(
        &self,
        manifest: &DesiredObject,
        live: Option<Value>,
    ) -> ParentPrediction {
        let definition = self.read_definition_if_custom(&manifest.resource).await;
        let definition = definition
            .as_ref()
            .and_then(|definition| CrdVersion::from_definition(definition, &manifest.resource.version));
        let Some(live) = live else {
            return ParentPrediction {
                live: None,
                predicted: Some(predict_creation(&manifest.object.value(), definition)),
                error: None,
            };
        };
        let predicted = self.predict_apply_of_owned(&live, manifest, definition);
        let parent = self.parent_writing();
        let error = self
            .conflict_error(manifest, &predicted.conflicts)
            .filter(|error| !parent.takes_fields_in_conflict(error))
            .map(|error| explain_conflict(&parent.leave_out_taken_fields(error), manifest, &live));
        ParentPrediction {
            predicted: Some(if error.is_some() {
                live.clone()
            } else {
                predicted.object
            }),
            live: Some(live),
            error,
        }
    }

    /// Reads the CRD of a custom resource; `None` if it cannot be read, and for a built-in kind.
    pub(super) async fn read_definition_if_custom(&self, resource: &Resource) -> Option<Value> {
        if !is_custom(resource) {
            return None;
        }
        read::read_crd_if_allowed(self.server, resource).await.ok()?
    }

    /// Predicts what an apply makes of the live object. The run first takes the fields of former owners. `definition` is
    /// that of a custom resource.
    pub(super) fn predict_apply_over(
        &self,
        live: &Value,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        definition: Option<CrdVersion<'_>>,
    ) -> PredictedApply {
        let former = self.migration_from_former_owners(live_membership);
        let moved =
            ownership::migrated_managed_fields_of_kind(&object.key.group_kind, &live["metadata"], &former);
        let Some(moved) = moved else {
            return self.predict_apply_of_owned(live, object, definition);
        };
        let mut migrated = live.clone();
        migrated["metadata"]["managedFields"] = moved;
        let mut predicted = self.predict_apply_of_owned(&migrated, object, definition);
        predicted.doubt.get_or_insert(Doubt::DefaultsOfFormerOwner);
        predicted
    }

    /// Predicts what an apply makes of a live object without former owners.
    pub(super) fn predict_apply_of_owned(
        &self,
        live: &Value,
        object: &DesiredObject,
        definition: Option<CrdVersion<'_>>,
    ) -> PredictedApply {
        let manager = &self.writing.field_manager;
        let with_live = ApplyWithLiveFields::from_live_if_needed(live, object, manager);
        let body = with_live.as_ref().map_or(object, |with_live| &with_live.object);
        predict_apply(live, &body.object.value(), manager, definition)
    }

    /// Returns the error with which the server would refuse the apply because of these conflicts; `None` if there are
    /// none, or if the run takes the fields by force.
    fn conflict_error(&self, object: &DesiredObject, conflicts: &[PredictedConflict]) -> Option<ApiError> {
        if conflicts.is_empty() || self.writing.conflicts == Conflicts::Forced {
            return None;
        }
        let causes = conflicts.iter().map(|conflict| StatusCause {
            reason: StatusCause::FIELD_CONFLICT.to_owned(),
            message: conflict.message.clone(),
            field: conflict.field.clone(),
        });
        let mut status = Status::default();
        status.details.causes.extend(causes);
        Some(ApiError::predicted(object.resource.path_of(&object.key), status))
    }
}

fn is_custom(resource: &Resource) -> bool {
    !is_built_in(&resource.api_version(), &resource.kind)
}

fn explain_conflict(error: &ApiError, object: &DesiredObject, live: &Value) -> Message {
    let status = error.status().cloned().unwrap_or_default();
    conflict_message(&status, object, &object.object.value(), live)
}
