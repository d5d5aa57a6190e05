//! Custom resources of a kind whose CRD this run has changed.
//!
//! The server serves custom resources by a copy of their CRD that it replaces when it hears of a change
//! (`apiextensions-apiserver`, `customresource_handler.go`): milliseconds later, or seconds if it is busy, and no
//! condition or version that can be read says when. Until then the former schema decides which fields there are and who
//! owns them. Only answers to applies are certain: a field set that only the former schema gives, or the refusal of a
//! field that the new one declares. So a dry run comes first, for one object of the kind that the two schemas type
//! differently; and every answer is looked at in the same way, since there may be more than one server behind an
//! address. If no object is typed differently, there is nothing to wait for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::cluster::apiserver::{ApiError, Reply};
use crate::compare::changes::{CrdVersion, SchemaFieldSet};
use crate::execute::Execution;
use crate::execute::kinds::Kinds;
use crate::execute::kinds::establish::{PATIENCE, pause};
use crate::execute::members::message_of_rejected_manifest::is_schema_violation;
use crate::manifest::desired::{DesiredObject, defined_kind};
use crate::model::identity::GroupKind;
use crate::plan::{Apply, is_not_yet_served};
use crate::read;

/// Time for which an answer that either schema could give is not trusted: an invalid value, or a conflict.
const DOUBT: Duration = Duration::from_secs(5);

/// A kind before and after this run has changed its CRD.
#[derive(Debug)]
pub struct Redefined {
    pub kind: GroupKind,
    former: Value,
    new: Value,
    since: Instant,
    /// `true` once an answer has shown that the new schema is served.
    is_seen: AtomicBool,
    /// `false` if the spec of the CRD is as before, such as with another label; read when it matters.
    has_other_spec: OnceCell<bool>,
}

/// The schema that the server used, as an answer to an apply shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    /// The former one.
    Former,
    /// Possibly the former one.
    Doubtful,
    /// The new one, or it makes no difference.
    New,
}

impl Redefined {
    /// A CRD as it is before this run applies it, and as it is to be.
    fn new(kind: GroupKind, former: Value, object: &DesiredObject) -> Self {
        Self {
            kind,
            former,
            new: object.object.value(),
            since: Instant::now(),
            is_seen: AtomicBool::new(false),
            has_other_spec: OnceCell::new(),
        }
    }

    /// Returns whether the answer comes from a server that does not use the new schema yet, so that the object has to
    /// be applied again.
    pub fn is_early(&self, object: &DesiredObject, answer: &Result<Reply, ApiError>, manager: &str) -> bool {
        let elapsed = self.since.elapsed();
        match self.served(object, answer, manager) {
            Served::Former => elapsed < PATIENCE,
            Served::Doubtful => elapsed < DOUBT && !self.is_seen.load(Ordering::Relaxed),
            Served::New => false,
        }
    }

    /// Returns whether the server used the former schema for an apply with this answer.
    pub fn was_served_by_former(&self, object: &DesiredObject, reply: &Reply, manager: &str) -> bool {
        self.served_by(object, reply, manager) == Served::Former
    }

    /// Returns how the former and the new schema type this object.
    fn typings(&self, object: &DesiredObject) -> (SchemaFieldSet, SchemaFieldSet) {
        let manifest = object.object.value();
        let version = &object.resource.version;
        let typing = |definition| {
            SchemaFieldSet::new(
                &manifest,
                CrdVersion::from_definition(definition, version).as_ref(),
            )
        };
        (typing(&self.former), typing(&self.new))
    }

    fn served(&self, object: &DesiredObject, answer: &Result<Reply, ApiError>, manager: &str) -> Served {
        match answer {
            Ok(reply) => self.served_by(object, reply, manager),
            Err(error) => match error.status() {
                Some(status) if is_schema_violation(&status.message) => match self.typings(object) {
                    (_, SchemaFieldSet::Undeclared) => Served::New,
                    (former, new) if former != new => Served::Former,
                    // The value of a field may violate both schemas.
                    _ => Served::Doubtful,
                },
                Some(status) if status.code == 422 || status.is_field_conflict() => Served::Doubtful,
                _ => Served::New,
            },
        }
    }

    fn served_by(&self, object: &DesiredObject, reply: &Reply, manager: &str) -> Served {
        let (former, new) = self.typings(object);
        let answer = reply.json_or_null();
        if former.is_of(&answer["metadata"], manager, &new) {
            return Served::Former;
        }
        if former != new {
            self.is_seen.store(true, Ordering::Relaxed);
        }
        Served::New
    }
}

impl Execution<'_> {
    /// Reads a CRD that has objects in this run, as it is before it is applied; `None` for all other objects. The run
    /// does not wait for unreadable CRDs.
    pub async fn former_definition(&self, object: &DesiredObject) -> Option<Redefined> {
        let kind = defined_kind(object)?;
        let mut members = self.desired.members.iter();
        let of_kind = members.find(|object| object.key.group_kind == kind && !is_not_yet_served(object))?;
        let former = read::definition(self.server, &of_kind.resource).await.ok()??;
        Some(Redefined::new(kind, former, object))
    }

    /// Returns whether this run has changed the spec of the object's CRD.
    pub async fn has_other_spec(&self, object: &DesiredObject, redefined: &Redefined) -> bool {
        let comparing = redefined.has_other_spec.get_or_init(|| async {
            let definition = read::definition(self.server, &object.resource).await;
            !matches!(definition, Ok(Some(now)) if now["spec"] == redefined.former["spec"])
        });
        *comparing.await
    }

    /// Waits until the server types these objects of one kind by its new schema, if the run has changed that.
    pub async fn await_schema_of_kind(&self, applies: &[&Apply], kinds: &Kinds) {
        for apply in applies {
            let object = &self.desired.members[apply.index];
            let Some(redefined) = kinds.redefined(&object.key.group_kind) else {
                return;
            };
            let (former, new) = redefined.typings(object);
            if former != new && new != SchemaFieldSet::Undeclared {
                return self.await_schema(apply, object, &redefined).await;
            }
        }
    }

    /// Sends dry runs of one object until the server types it by the new schema.
    async fn await_schema(&self, apply: &Apply, object: &DesiredObject, redefined: &Redefined) {
        while !self.interrupt.is_requested() && redefined.since.elapsed() < PATIENCE {
            let mut request = self.member_request(object, &apply.live_membership, None);
            // With force, since a conflict would hide how the object is typed.
            request.path.push_str("&dryRun=All&force=true");
            let answer = tokio::select! {
                () = self.interrupt.requested() => return,
                answer = self.server.send(request) => answer,
            };
            if redefined.served(object, &answer, &self.writing.field_manager) != Served::Former {
                return;
            }
            pause(self.interrupt).await;
        }
    }
}
