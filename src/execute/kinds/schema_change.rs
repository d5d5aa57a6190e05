//! Custom resources of a kind whose CRD this run has changed.
//!
//! The server validates custom resources by a copy of their CRD. It replaces the copy milliseconds after the CRD has
//! changed, or seconds later if it is busy (`apiextensions-apiserver`, `customresource_handler.go`). Nothing that can
//! be read from the server shows when that happens. Until then, the former schema decides which fields an object has
//! and who owns them.
//!
//! Only the answer to an apply shows which schema the server used. The server used the former one if the object in the
//! answer has managed fields that only the former schema gives, or if the answer refuses a field that the new schema
//! declares. So before the run applies objects of the kind, it chooses one object that the two schemas type
//! differently, and sends dry runs of it until the server uses the new schema. There may be several servers behind an
//! address, so the run checks the answer to each apply, too. If the two schemas type all objects in the same way, the
//! run does not wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::cluster::apiserver::{ApiError, Reply};
use crate::compare::changes::{CrdVersion, SchemaFieldSet};
use crate::execute::Execution;
use crate::execute::kinds::ChangedKinds;
use crate::execute::kinds::await_served::PATIENCE;
use crate::execute::kinds::pause_until_stopped;
use crate::execute::members::message_of_rejected_manifest::is_schema_violation;
use crate::manifest::desired::{DesiredObject, kind_defined_by_crd};
use crate::model::identity::GroupKind;
use crate::plan::{Apply, is_not_yet_served};
use crate::read;

/// The time after the change of the CRD in which an apply is sent again if either schema may have given its answer: an
/// invalid value, or a conflict.
const PATIENCE_IF_UNCLEAR: Duration = Duration::from_secs(5);

/// A CRD that this run changes, and the kind that it defines.
#[derive(Debug)]
pub struct ChangedCrd {
    pub kind: GroupKind,
    /// The CRD before this run applies it.
    former: Value,
    /// The manifest of the CRD.
    new: Value,
    /// The time right before this run applies the CRD.
    since: Instant,
    /// `true` once an answer has shown that the server uses the new schema.
    is_new_schema_used: AtomicBool,
    /// `false` if the run has changed only other parts than the spec, such as a label. Read when it is needed first.
    has_changed_spec: OnceCell<bool>,
}

/// The schema that the server used for an apply, as the answer shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UsedSchema {
    Former,
    /// Either schema may have given this answer.
    Unclear,
    /// The server used the new schema, or the two type the object in the same way.
    New,
}

impl ChangedCrd {
    /// Creates the change of a CRD. `former` is the CRD before this run applies it, `crd_manifest` its manifest.
    fn new(kind: GroupKind, former: Value, crd_manifest: &DesiredObject) -> Self {
        Self {
            kind,
            former,
            new: crd_manifest.object.value(),
            since: Instant::now(),
            is_new_schema_used: AtomicBool::new(false),
            has_changed_spec: OnceCell::new(),
        }
    }

    /// Returns whether the object has to be applied again after this answer, because the server does not use the new
    /// schema yet, or may not.
    pub fn has_to_apply_again(
        &self,
        object: &DesiredObject,
        answer: &Result<Reply, ApiError>,
        manager: &str,
    ) -> bool {
        let elapsed = self.since.elapsed();
        match self.used_schema(object, answer, manager) {
            UsedSchema::Former => elapsed < PATIENCE,
            UsedSchema::Unclear => {
                elapsed < PATIENCE_IF_UNCLEAR && !self.is_new_schema_used.load(Ordering::Relaxed)
            }
            UsedSchema::New => false,
        }
    }

    /// Returns whether the server used the former schema for an apply with this answer.
    pub fn reply_shows_former_schema(&self, object: &DesiredObject, reply: &Reply, manager: &str) -> bool {
        self.note_schema_used_in_reply(object, reply, manager) == UsedSchema::Former
    }

    /// Returns the field sets that the former and the new schema give this object.
    fn field_sets(&self, object: &DesiredObject) -> (SchemaFieldSet, SchemaFieldSet) {
        let manifest = object.object.value();
        let version = &object.resource.version;
        let field_set =
            |crd| SchemaFieldSet::new(&manifest, CrdVersion::from_definition(crd, version).as_ref());
        (field_set(&self.former), field_set(&self.new))
    }

    /// Returns the schema that the server used for an apply with this answer. A failure that does not depend on the
    /// schema counts as an answer by the new one, because another attempt would not help.
    fn used_schema(
        &self,
        object: &DesiredObject,
        answer: &Result<Reply, ApiError>,
        manager: &str,
    ) -> UsedSchema {
        let error = match answer {
            Ok(reply) => return self.note_schema_used_in_reply(object, reply, manager),
            Err(error) => error,
        };
        match error.status() {
            Some(status) if is_schema_violation(&status.message) => match self.field_sets(object) {
                // The new schema refuses the object, too.
                (_, SchemaFieldSet::Undeclared) => UsedSchema::New,
                (former, new) if former != new => UsedSchema::Former,
                // The value of a field may violate both schemas.
                _ => UsedSchema::Unclear,
            },
            Some(status) if status.code == 422 || status.is_field_conflict() => UsedSchema::Unclear,
            _ => UsedSchema::New,
        }
    }

    fn note_schema_used_in_reply(&self, object: &DesiredObject, reply: &Reply, manager: &str) -> UsedSchema {
        let (former, new) = self.field_sets(object);
        let answer = reply.json_or_null();
        if former.was_used_in_answer(&answer["metadata"], manager, &new) {
            return UsedSchema::Former;
        }
        if former != new {
            self.is_new_schema_used.store(true, Ordering::Relaxed);
        }
        UsedSchema::New
    }
}

impl Execution<'_> {
    /// Reads a CRD right before this run applies it, if this run also applies objects of its kind; `None` for all other
    /// objects. Also `None` if the CRD cannot be read: the run then does not wait for its new schema.
    pub async fn read_live_crd_before_its_apply(&self, crd_manifest: &DesiredObject) -> Option<ChangedCrd> {
        let kind = kind_defined_by_crd(crd_manifest)?;
        let mut members = self.desired.members.iter();
        let of_kind = members.find(|member| member.key.group_kind == kind && !is_not_yet_served(member))?;
        let former = read::read_crd_if_allowed(self.server, &of_kind.resource)
            .await
            .ok()??;
        Some(ChangedCrd::new(kind, former, crd_manifest))
    }

    /// Returns whether this run has changed the spec of the object's CRD. If the CRD cannot be read, the run assumes
    /// so, and at worst applies the object again in vain.
    pub async fn has_changed_spec(&self, object: &DesiredObject, changed_crd: &ChangedCrd) -> bool {
        let comparing = changed_crd.has_changed_spec.get_or_init(|| async {
            let current = read::read_crd_if_allowed(self.server, &object.resource).await;
            !matches!(current, Ok(Some(crd)) if crd["spec"] == changed_crd.former["spec"])
        });
        *comparing.await
    }

    /// Waits until the server uses the new schema for these objects of one kind, if the run has changed the CRD.
    pub async fn await_new_schema_of_kind(&self, applies: &[&Apply], kinds: &ChangedKinds) {
        for apply in applies {
            let object = &self.desired.members[apply.index];
            let Some(changed_crd) = kinds.changed_crd(&object.key.group_kind) else {
                return;
            };
            let (former, new) = changed_crd.field_sets(object);
            if former != new && new != SchemaFieldSet::Undeclared {
                return self.await_new_schema(object, &changed_crd).await;
            }
        }
    }

    /// Sends dry runs of one object until the server uses the new schema for it.
    async fn await_new_schema(&self, object: &DesiredObject, changed_crd: &ChangedCrd) {
        while !self.interrupt.is_requested() && changed_crd.since.elapsed() < PATIENCE {
            // Forced, because a conflict would not show which schema the server used.
            let mut request = self.forced_apply_request(object, None);
            request.path.push_str("&dryRun=All");
            let answer = tokio::select! {
                () = self.interrupt.wait_until_requested() => return,
                answer = self.server.send(request) => answer,
            };
            if changed_crd.used_schema(object, &answer, &self.writing.field_manager) != UsedSchema::Former {
                return;
            }
            pause_until_stopped(self.interrupt).await;
        }
    }
}
