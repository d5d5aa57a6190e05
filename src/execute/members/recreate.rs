//! Recreates members that the server refuses to update: deletes them, waits until they are gone, and applies them
//! again.
//!
//! An object is deleted only if a dry run of its creation, with the same body, is answered with `AlreadyExists`: then
//! the body is valid, and only the live object prevents the update. `plan` decides which objects may be recreated, and
//! what prevents their deletion.
//!
//! After the delete, the run still creates the object if the user presses Ctrl-C once; a second Ctrl-C ends the run. If
//! a recreation is interrupted, the record covers the object, and the next run creates it. If the old object is still
//! being deleted then, the next run waits for that only if the user still chooses to recreate the object.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::apiserver::{ApiError, ApiRequest};
use crate::compare::ignore;
use crate::compare::ownership::CLIENT_SIDE_APPLY;
use crate::event::{Action, Claims, Subject};
use crate::execute::Execution;
use crate::execute::deletion::delete::{DeleteAttempt, DeleteContext, DeletePurpose, MAX_JUDGEMENTS};
use crate::execute::freshness::JUDGED_FOR;
use crate::execute::members::apply::{CHANGED_SINCE_PLAN, MemberReply, TERMINATING};
use crate::execute::members::apply_as_read::Expected;
use crate::execute::members::message_of_conflict::failed_apply_message;
use crate::execute::members::message_of_invalid_object::kind_for_recreation_hint;
use crate::execute::members::not_recreated::NotRecreated;
use crate::manifest::desired::DesiredObject;
use crate::model::identity::ObjectKey;
use crate::model::live::{Live, Presence};
use crate::model::message::{Message, recreate_flag};
use crate::model::resource::Resource;
use crate::model::text::first_names_and_more;
use crate::model::write_settings::{DryRun, WriteSettings};
use crate::plan::{
    Judge, LiveMembership, Plan, RecreationObstacle, claims_after_recreation, is_not_yet_served,
};
use crate::read::{self, WHOLE_OBJECTS};

/// The words of a client dry run about an object that a run recreates if the server refuses the update.
pub const RECREATED_IF: &str = "recreated if the server refuses the update";

/// An object that may be deleted to be created again, and what the judgement of its deletion needs.
pub struct ObjectToRecreate {
    pub live: Live,
    /// The fate of the `PersistentVolumeClaims` of the object.
    claims: Claims,
    /// A plan that only deletes the object, with the objects that it owns.
    plan: Plan,
}

/// The state of an object after an attempt to delete it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeleteEnd {
    /// The object is deleted.
    Deleted,
    /// The object has changed since it was judged, or the judgement is outdated, and it was not deleted.
    Changed,
}

/// A recreation that has deleted the object.
#[derive(Debug, Clone)]
pub struct BegunRecreation {
    /// The UID of the deleted object.
    uid: String,
    /// The fate of the `PersistentVolumeClaims` of the deleted object.
    claims: Claims,
    /// The reason for which the server refused the update.
    reason: String,
}

impl ObjectToRecreate {
    fn deletion_judge<'r>(&self, run: &'r Execution<'_>) -> Judge<'r> {
        run.judge_of_deletes(&self.plan, HashSet::new())
    }
}

impl Execution<'_> {
    /// Returns whether the run tries to recreate an object whose update failed with this error: the server found the
    /// new object invalid, and the user chose to recreate it. An object of another set is never deleted.
    pub fn should_recreate_after(
        &self,
        object: &DesiredObject,
        live_membership: &LiveMembership,
        error: &ApiError,
    ) -> bool {
        error.has_status_code(StatusCode::UNPROCESSABLE_ENTITY)
            && error.status().is_some_and(|status| status.reason == "Invalid")
            && !matches!(live_membership, LiveMembership::OfAnotherSet { .. })
            && self.is_chosen_to_recreate(object)
    }

    /// Returns whether the run waits until an object that is being deleted is gone, and then creates it. The run does
    /// not wait if the whole namespace is being deleted.
    pub fn waits_to_recreate_terminating(&self, object: &DesiredObject) -> bool {
        self.is_chosen_to_recreate(object) && !self.is_namespace_terminating(object)
    }

    /// Returns the error of an object that is being deleted and that the run does not wait for.
    pub fn terminating_error(&self, object: &DesiredObject) -> Message {
        let message = Message::new(TERMINATING);
        if self.is_namespace_terminating(object) || self.plan.preconditions.is_of_saved_plan() {
            return message;
        }
        match kind_for_recreation_hint(object) {
            Some(kind) => message.with_hint(format!(
                "wait for it and create it again with {}",
                recreate_flag([kind])
            )),
            None => message,
        }
    }

    fn is_namespace_terminating(&self, object: &DesiredObject) -> bool {
        let name = object.key.namespace.as_ref();
        let state = name.and_then(|name| self.state.namespaces.get(name));
        state.is_some_and(|state| state.presence == Presence::Terminating)
    }

    /// Returns whether the user chose to recreate the object: by the flag or an annotation, and if the run carries out
    /// a saved plan, also by that plan.
    pub fn is_chosen_to_recreate(&self, object: &DesiredObject) -> bool {
        self.policy.recreate.allows(object, &self.plan.preconditions)
    }

    /// Recreates an object whose update was refused with `update_error`.
    pub async fn recreate(
        &self,
        object: &DesiredObject,
        subject: Subject,
        update_error: &ApiError,
    ) -> MemberReply {
        let refused = failed_apply_message(self.server, object, update_error).await;
        let reason = refused.text.clone();
        let begun = match self
            .delete_to_recreate(object, subject.uid.as_deref(), update_error)
            .await
        {
            Ok(old) => BegunRecreation {
                uid: old.live.uid,
                claims: old.claims,
                reason,
            },
            Err(not_recreated) => {
                return MemberReply {
                    webhook: not_recreated.webhook.clone(),
                    ..MemberReply::failed(subject, not_recreated.into_refused_update_message(refused))
                };
            }
        };
        self.create_after_own_delete(object, subject, begun).await
    }

    /// Creates an object that this run has deleted. If its webhook cannot be called yet, the reply returns `begun`, so
    /// that a later attempt creates the object instead of updating it.
    pub(super) async fn create_after_own_delete(
        &self,
        object: &DesiredObject,
        subject: Subject,
        begun: BegunRecreation,
    ) -> MemberReply {
        let mut reply = self
            .wait_until_gone_and_create(object, subject, Some(&begun.uid))
            .await;
        if reply.outcome.action == Action::Recreated {
            reply.outcome.reason.clone_from(&begun.reason);
            reply.outcome.claims = begun.claims;
        }
        if matches!(reply.outcome.action, Action::Configured | Action::Unchanged) {
            let warning = "it was deleted to be recreated, and another client has created it first";
            reply.warnings.push(warning.to_owned());
        }
        reply.outcome.was_deleted = reply.outcome.action == Action::Failed;
        reply.begun_recreation = reply.webhook.is_some().then_some(begun);
        reply
    }

    /// Deletes an object whose update was refused with `update_error`, and returns it. `uid` is the UID of the object
    /// that was to be updated, if the plan knew one. If the object changes before its delete, it is judged again from
    /// the start: other clients may have written fields that the new object would lose.
    async fn delete_to_recreate(
        &self,
        object: &DesiredObject,
        uid: Option<&str>,
        update_error: &ApiError,
    ) -> Result<ObjectToRecreate, NotRecreated> {
        let mut uid = uid.map(str::to_owned);
        for _ in 0..MAX_JUDGEMENTS {
            let old = self
                .judge_recreation(object, uid.as_deref(), update_error)
                .await?;
            if self.delete_if_as_judged(&old).await? == DeleteEnd::Deleted {
                return Ok(old);
            }
            uid = Some(old.live.uid);
        }
        Err(NotRecreated::in_this_run("it keeps changing"))
    }

    /// Judges whether an object whose update was refused with `update_error` may be deleted to be created again. `uid`
    /// is the UID of the object that was to be updated, if the plan knew one. If another object has the name by now, it
    /// is not deleted: it may have been created from the same manifest.
    pub async fn judge_recreation(
        &self,
        object: &DesiredObject,
        uid: Option<&str>,
        update_error: &ApiError,
    ) -> Result<ObjectToRecreate, NotRecreated> {
        if let Some(cause) = self.interrupt.cause() {
            return Err(NotRecreated::in_this_run(cause.reason()));
        }
        match self.server.send(self.creation_dry_run_request(object)).await {
            Err(exists) if is_already_exists(&exists) => {}
            Err(invalid) => return Err(NotRecreated::from_creation_dry_run_error(&invalid)),
            Ok(_) => return Err(NotRecreated::in_this_run("it no longer exists")),
        }
        if let Some(obstacle) = RecreationObstacle::from_manifest(object) {
            return Err(NotRecreated::from_obstacle(&obstacle));
        }
        let found = read::read_object(self.server, &object.resource, &object.key)
            .await
            .map_err(|error| NotRecreated::from_failed_request(error.kind.to_string()))?;
        let gone = NotRecreated::in_this_run("it no longer exists");
        let Some(found) = found else { return Err(gone) };
        if !self.plan.preconditions.admits(&object.key, &found) {
            return Err(NotRecreated::in_this_run(CHANGED_SINCE_PLAN));
        }
        if let Some(obstacle) = self.obstacle_in_live_object(object, &found, update_error) {
            return Err(NotRecreated::from_obstacle(&obstacle));
        }
        let Some(live) = Live::from_object(&found, &object.resource) else {
            return Err(gone);
        };
        if uid.is_some_and(|uid| uid != live.uid) {
            return Err(NotRecreated::in_this_run("it was replaced during the run"));
        }
        let mut plan = self.plan.with_only_delete_of(&live);
        let deletion = Execution { plan: &plan, ..*self };
        plan.dependents = deletion
            .find_current_dependents(&self.list_desired_not_yet_members())
            .await
            .map_err(|unread| NotRecreated::in_this_run(unread.to_string()))?;
        let old = ObjectToRecreate {
            live,
            claims: claims_after_recreation(object, &found),
            plan,
        };
        match old.deletion_judge(self).obstacle_to_recreation(&old.live) {
            Some(obstacle) => Err(NotRecreated::from_obstacle(&obstacle)),
            None => Ok(old),
        }
    }

    /// Lists the desired objects that were not members when the plan was made, and are served. They may not have the
    /// label of the set yet.
    fn list_desired_not_yet_members(&self) -> Vec<(ObjectKey, Arc<Resource>)> {
        let newcomers = self.plan.all_applies().filter(|apply| {
            matches!(
                apply.live_membership,
                LiveMembership::NotAMember | LiveMembership::OfAnotherSet { .. }
            )
        });
        newcomers
            .map(|apply| &self.desired.members[apply.index])
            .filter(|object| !is_not_yet_served(object))
            .map(|object| (object.key.clone(), Arc::clone(&object.resource)))
            .collect()
    }

    /// Returns an obstacle if the new object would lose fields of the live one: fields of others that the server refused
    /// to change, or ignored fields.
    fn obstacle_in_live_object(
        &self,
        object: &DesiredObject,
        live: &Value,
        update_error: &ApiError,
    ) -> Option<RecreationObstacle> {
        self.obstacle_if_others_own_refused_fields(object, live, update_error)
            .or_else(|| {
                let reset =
                    ignore::ignored_fields_lost_by_recreation(object, live, &self.writing.field_manager);
                (!reset.is_empty()).then_some(RecreationObstacle::ResetsIgnored(reset))
            })
    }

    /// Returns an obstacle if other managers alone own every field because of which the server refused the update. The
    /// manifest may be valid then, and the new object would lose the values of these fields.
    fn obstacle_if_others_own_refused_fields(
        &self,
        object: &DesiredObject,
        live: &Value,
        error: &ApiError,
    ) -> Option<RecreationObstacle> {
        let WriteSettings {
            field_manager,
            former_manager,
            ..
        } = self.writing;
        let appliers = self.policy.appliers.iter();
        let managers = appliers.chain([field_manager]).chain(former_manager);
        let ours: BTreeSet<&str> = managers.map(String::as_str).chain([CLIENT_SIDE_APPLY]).collect();
        let fields = error
            .status()?
            .causes_with_field()
            .map(|cause| cause.field.as_str());
        RecreationObstacle::from_refused_fields_of_others(fields, &object.object.value(), live, &ours)
    }

    /// Deletes the object if it is as it was judged, and also what it owns, unless the new object adopts that. It holds
    /// no other objects: namespaces and CRDs are never recreated.
    async fn delete_if_as_judged(&self, old: &ObjectToRecreate) -> Result<DeleteEnd, NotRecreated> {
        if let Some(cause) = self.interrupt.cause() {
            return Err(NotRecreated::in_this_run(cause.reason()));
        }
        let judge = old.deletion_judge(self);
        let context = DeleteContext {
            purpose: match old.claims {
                Claims::Stay => DeletePurpose::RecreationAroundDependents,
                Claims::Lost | Claims::NotTouched => DeletePurpose::Recreation,
            },
            ..self.delete_context(Action::Recreated, &judge)
        };
        let not_after = Instant::now() + JUDGED_FOR;
        let attempt = context.delete_unless_changed(&old.live, &old.live, not_after);
        let reply = match attempt.await {
            DeleteAttempt::Ended(reply) => reply,
            DeleteAttempt::Changed(_) | DeleteAttempt::Outdated => return Ok(DeleteEnd::Changed),
        };
        match (reply.webhook, reply.outcome.error, reply.outcome.action) {
            (Some(webhook), Some(error), _) => Err(NotRecreated::until_webhook_answers(webhook, &error.text)),
            (_, _, Action::Recreated) => Ok(DeleteEnd::Deleted),
            (_, Some(error), _) => Err(NotRecreated::from_failed_request(error.text)),
            (_, None, _) => Err(NotRecreated::in_this_run(reply.outcome.reason)),
        }
    }

    /// Waits until the object with this UID is gone, and creates it again. Without a `deleted_uid`, waits for the
    /// object that is being deleted. If another client creates the object first, it is applied like any object that
    /// exists.
    pub async fn wait_until_gone_and_create(
        &self,
        object: &DesiredObject,
        subject: Subject,
        deleted_uid: Option<&str>,
    ) -> MemberReply {
        if let Err(message) = self.wait_until_gone_before_recreation(object, deleted_uid).await {
            return MemberReply::failed(subject, message);
        }
        let subject = Subject { uid: None, ..subject };
        let membership = LiveMembership::NotAMember;
        let applied = self.apply_as_read(object, &membership, Expected::Absent).await;
        match applied {
            Ok(applied) => {
                let mut reply = self.reply_to_apply(object, subject, &membership, &applied).await;
                if reply.outcome.action == Action::Created {
                    reply.outcome.action = Action::Recreated;
                }
                reply
            }
            Err(unapplied) => {
                let mut reply = self.reply_to_failed_apply(object, subject, unapplied).await;
                let error = reply.outcome.error.take();
                let deleted = "it was deleted to be recreated; the next run creates it".to_owned();
                reply.outcome.error = error.map(|error| error.without_group().with_details([deleted]).into());
                reply
            }
        }
    }

    /// Returns the dry run that creates the object.
    pub fn creation_dry_run_request(&self, object: &DesiredObject) -> ApiRequest {
        let WriteSettings {
            field_manager,
            validation,
            ..
        } = self.writing;
        let parameters = [
            ("fieldManager", field_manager.as_str()),
            ("fieldValidation", validation.parameter()),
            ("dryRun", "All"),
        ];
        let collection = object.resource.path(object.key.namespace.as_deref(), None);
        ApiRequest::post(&collection, &parameters, WHOLE_OBJECTS, object.object.body())
    }

    /// Returns the words with which a client dry run marks an object that may be recreated; `None` for all other
    /// objects. Also `None` in all other runs: there, the server's answer shows whether it refuses the update.
    pub fn client_dry_run_recreation_note(&self, object: &DesiredObject) -> Option<&'static str> {
        let is_predicted = self.writing.dry_run == DryRun::Client
            && self.policy.may_recreate(object, &self.plan.preconditions);
        is_predicted.then_some(RECREATED_IF)
    }

    /// Returns the note of a client dry run on the changed members that are possibly recreated; `None` if there are none.
    pub fn note_on_recreatable_objects(&self) -> Option<String> {
        let changed = self.plan.changed_members(self.desired);
        let recreatable = changed.filter(|object| self.client_dry_run_recreation_note(object).is_some());
        let keys: Vec<&ObjectKey> = recreatable.map(|object| &object.key).collect();
        (!keys.is_empty()).then(|| format!("{RECREATED_IF}: {}", first_names_and_more(keys)))
    }
}

fn is_already_exists(error: &ApiError) -> bool {
    let has_reason = error
        .status()
        .is_some_and(|status| status.reason == "AlreadyExists");
    error.has_status_code(StatusCode::CONFLICT) && has_reason
}
