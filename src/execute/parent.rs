//! Writes the parent: its own manifest, and the record of the set before and after
//! the members are written.
//!
//! Every write of the record is bound to the resourceVersion that it was decided on,
//! so that two runs cannot erase each other's kinds. What is recorded was decided in
//! `plan`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::member::{APPLY_PATCH, METADATA, written};
use super::{Execution, Sink};
use crate::apiserver::{ApiError, Call, query};
use crate::applyset::parent::{Bookkeeping, Reading, RecordedKinds, annotations, labels};
use crate::applyset::{PART_OF_LABEL, Record, TOOLING_ANNOTATION};
use crate::discovery::{Resource, Scope};
use crate::event::Event;
use crate::observe::{self, ListError, Live, ParentObject, Places, Presence, Selector};
use crate::plan::{self, Refusal, Standing};

/// Field manager of the parent's bookkeeping. kubectl's is `kubectl-applyset`, which is
/// also the default manager of our members, so this one has a name of its own.
pub(super) const PARENT_FIELD_MANAGER: &str = "kubectl-applyset-parent";

/// How often a parent that others write at the same time is read and tried again.
const ATTEMPTS: usize = 20;

/// Told when another run works on the same set.
const OVERTAKEN: &str = "another run works on this set; its record stays wide until the next run";

/// The parent could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ParentWriteError {
    /// A request did not succeed.
    #[error("the set's parent could not be written: {0}")]
    Request(#[from] ApiError),
    /// Another run changed the parent in a way that stops this one.
    #[error("the set's parent was changed by somebody else while this run went on")]
    Refused(Vec<Refusal>),
    /// The answer to a write cannot be read.
    #[error("the answer to writing the set's parent cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Others kept changing it.
    #[error("the set's parent was changed by others {ATTEMPTS} times in a row")]
    Contended,
}

/// The parent as this run knows it to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    resource_version: String,
    annotations: Value,
    /// Whether another run has written the record since this one was planned: then it
    /// may hold places that the plan knows nothing of.
    overtaken: bool,
}

impl Execution<'_> {
    /// Makes the parent record at least every place that this run may write to.
    pub(super) async fn widen(&self, sink: &mut Sink<'_>) -> Result<Known, ParentWriteError> {
        let current = self.parent.cloned();
        self.cover(current, &self.plan.record_during, sink).await
    }

    /// Makes the parent record exactly what the plan says, unless somebody else has
    /// written it since; then it only sees to it that nothing of ours is missing.
    ///
    /// `settled` are the UIDs of the members that this run has applied or left as they are.
    pub(super) async fn narrow(
        &self,
        known: Known,
        settled: &BTreeSet<String>,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let target = annotations(&self.set.tooling, &self.plan.record_after);
        if known.annotations == target {
            return self.confirm(sink).await;
        }
        if known.overtaken || self.has_newcomers(settled).await? {
            sink(Event::Warning(OVERTAKEN.to_owned()));
            return self.confirm(sink).await;
        }
        match self.write_record(&known.resource_version, &target).await {
            Ok(_) => Ok(()),
            Err(ParentWriteError::Request(error)) if is_overtaken(&error) => {
                sink(Event::Warning(OVERTAKEN.to_owned()));
                self.confirm(sink).await
            }
            Err(error) => Err(error),
        }
    }

    /// Sees to it, when members were written, that no other run has narrowed the record
    /// below them meanwhile.
    async fn confirm(&self, sink: &mut Sink<'_>) -> Result<(), ParentWriteError> {
        if self.plan.applies() > 0 {
            let current = self.read_parent().await?;
            self.cover(current, &self.plan.record_after, sink).await?;
        }
        Ok(())
    }

    /// Whether another run has put members where this one is about to record none. What
    /// two groups serve is no newcomer under the name that the manifests do not use.
    async fn has_newcomers(&self, settled: &BTreeSet<String>) -> Result<bool, ApiError> {
        let after = &self.plan.record_after;
        let own = self.set.parent.namespace.as_ref();
        let is_dropped = |namespace: &&String| {
            !after.additional_namespaces.contains(*namespace) && Some(*namespace) != own
        };
        let is_recorded = |resource: &&Arc<Resource>| after.group_kinds.contains(&resource.group_kind());
        let (kept, dropped): (Vec<_>, Vec<_>) = self.places.resources.iter().partition(is_recorded);
        let namespaces = &self.places.namespaces;
        let looks = [
            Places {
                resources: dropped.into_iter().cloned().collect(),
                namespaces: namespaces.clone(),
            },
            Places {
                resources: kept
                    .into_iter()
                    .filter(|kept| kept.scope == Scope::Namespaced)
                    .cloned()
                    .collect(),
                namespaces: namespaces.iter().filter(is_dropped).cloned().collect(),
            },
        ];
        let selector = Selector {
            labels: format!("{PART_OF_LABEL}={}", self.set.id),
            accept: observe::METADATA_LIST,
        };
        for places in looks {
            let members = observe::members(
                self.server,
                &places,
                &selector,
                self.writing.concurrency,
                Live::of,
            )
            .await;
            let members = match members {
                Ok(members) => members,
                Err((_, ListError::Request(error))) => return Err(error),
                Err(_) => return Ok(true),
            };
            let is_new = |live: &Live| {
                live.presence == Presence::Present
                    && !settled.contains(&live.uid)
                    && live
                        .key
                        .namespace
                        .as_ref()
                        .is_none_or(|namespace| places.namespaces.contains(namespace))
            };
            if members.iter().any(is_new) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn cover(
        &self,
        mut current: Option<ParentObject>,
        needed: &Record,
        sink: &mut Sink<'_>,
    ) -> Result<Known, ParentWriteError> {
        let mut overtaken = false;
        for _ in 0..ATTEMPTS {
            let standing = plan::judge(self.set, current.as_ref(), self.parent_policy)
                .map_err(ParentWriteError::Refused)?;
            let target = annotations(&self.set.tooling, &recorded(&standing).union(needed));
            let attempt = match &current {
                Some(parent) if is_up_to_date(parent, &target) => Ok(Known {
                    resource_version: parent.resource_version.clone(),
                    annotations: target,
                    overtaken: false,
                }),
                Some(parent) => self.write_record(&parent.resource_version, &target).await,
                None => self.create(&target, sink).await,
            };
            match attempt {
                Err(ParentWriteError::Request(error)) if is_overtaken(&error) => {
                    overtaken = true;
                    current = self.read_parent().await?;
                }
                attempt => return attempt.map(|known| Known { overtaken, ..known }),
            }
        }
        Err(ParentWriteError::Contended)
    }

    /// Applies the parent's own manifest, where it is among the manifests: its data, and
    /// none of the bookkeeping, which another field manager owns.
    pub(super) async fn apply_parent_manifest(
        &self,
        known: &mut Known,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let Some(object) = &self.desired.parent else {
            return Ok(());
        };
        let reply = self
            .server
            .send(self.parent_call(&object.object, &self.member_parameters()))
            .await?;
        for warning in &reply.warnings {
            sink(Event::Warning(format!("{}: {warning}", object.key)));
        }
        // This write is not bound to a resourceVersion, so it may come after another run's.
        let live = written(&reply)?.metadata;
        known.overtaken |= known.annotations.as_object().is_some_and(|recorded| {
            recorded
                .iter()
                .any(|(key, value)| live.annotations.get(key).map(String::as_str) != value.as_str())
        });
        known.resource_version = live.resource_version;
        Ok(())
    }

    async fn read_parent(&self) -> Result<Option<ParentObject>, ApiError> {
        observe::parent(self.server, self.parent_resource, &self.set.parent).await
    }

    async fn write_record(&self, resource_version: &str, target: &Value) -> Result<Known, ParentWriteError> {
        let mut object = self.bare_parent();
        object["metadata"]["resourceVersion"] = json!(resource_version);
        object["metadata"]["labels"] = labels(&self.set.id);
        object["metadata"]["annotations"] = target.clone();
        let parameters = [("fieldManager", PARENT_FIELD_MANAGER), ("force", "true")];
        let reply = self.server.send(self.parent_call(&object, &parameters)).await?;
        Ok(Known {
            resource_version: written(&reply)?.metadata.resource_version,
            annotations: target.clone(),
            overtaken: false,
        })
    }

    /// Creates a parent that is not there.
    ///
    /// A bare one is created by POST, which fails where another run was faster; an apply
    /// would overwrite that run's record. One with a manifest is applied with the tooling
    /// annotation alone and recorded on in a second write: interrupted between the two,
    /// the annotation tells the next run that it may go on.
    async fn create(&self, target: &Value, sink: &mut Sink<'_>) -> Result<Known, ParentWriteError> {
        let Some(manifest) = &self.desired.parent else {
            let mut object = self.bare_parent();
            object["metadata"]["labels"] = labels(&self.set.id);
            object["metadata"]["annotations"] = target.clone();
            let call = Call {
                method: Method::POST,
                path: format!(
                    "{}?{}",
                    self.parent_resource
                        .path(self.set.parent.namespace.as_deref(), None),
                    query(&[("fieldManager", PARENT_FIELD_MANAGER)])
                ),
                accept: METADATA.to_owned(),
                content_type: Some("application/json"),
                body: Bytes::from(object.to_string()),
            };
            let reply = self.server.send(call).await?;
            return Ok(Known {
                resource_version: written(&reply)?.metadata.resource_version,
                annotations: target.clone(),
                overtaken: false,
            });
        };
        if let Err(reason) = self.await_kind(manifest).await {
            sink(Event::Warning(reason));
        }
        let mut object = manifest.object.clone();
        let metadata = &mut object["metadata"];
        if !metadata["annotations"].is_object() {
            metadata["annotations"] = json!({});
        }
        metadata["annotations"][TOOLING_ANNOTATION] = json!(self.set.tooling.to_string());
        let reply = self
            .server
            .send(self.parent_call(&object, &self.member_parameters()))
            .await?;
        self.write_record(&written(&reply)?.metadata.resource_version, target)
            .await
    }

    fn bare_parent(&self) -> Value {
        let mut metadata = json!({"name": self.set.parent.name});
        if let Some(namespace) = &self.set.parent.namespace {
            metadata["namespace"] = json!(namespace);
        }
        json!({
            "apiVersion": self.parent_resource.api_version(),
            "kind": self.parent_resource.kind,
            "metadata": metadata,
        })
    }

    fn member_parameters(&self) -> Vec<(&str, &str)> {
        let mut parameters = vec![("fieldManager", self.writing.field_manager.as_str())];
        if self.writing.conflicts == super::Conflicts::Forced {
            parameters.push(("force", "true"));
        }
        parameters
    }

    fn parent_call(&self, object: &Value, parameters: &[(&str, &str)]) -> Call {
        let parent = &self.set.parent;
        let path = self
            .parent_resource
            .path(parent.namespace.as_deref(), Some(&parent.name));
        Call {
            method: Method::PATCH,
            path: format!("{path}?{}", query(parameters)),
            accept: METADATA.to_owned(),
            content_type: Some(APPLY_PATCH),
            body: Bytes::from(object.to_string()),
        }
    }
}

/// What the parent records of a set that the plan was not made for: by another run.
fn recorded(standing: &Standing) -> Record {
    match standing {
        Standing::Recorded(Bookkeeping {
            kinds: RecordedKinds::GroupKinds(group_kinds),
            additional_namespaces,
            ..
        }) => Record {
            group_kinds: group_kinds.clone(),
            additional_namespaces: additional_namespaces.clone(),
        },
        // The deprecated list was translated when the plan was made, and nobody writes it today.
        Standing::Recorded(_) | Standing::New => Record::default(),
    }
}

/// Whether somebody else wrote the object first: changed, created or deleted it.
fn is_overtaken(error: &ApiError) -> bool {
    error.is(StatusCode::CONFLICT)
}

/// Whether the parent says already what is to be written on it.
fn is_up_to_date(parent: &ParentObject, target: &Value) -> bool {
    let Some(target) = target.as_object() else {
        return false;
    };
    matches!(parent.reading, Reading::Parent(_))
        && target
            .iter()
            .all(|(key, value)| parent.annotations.get(key).map(String::as_str) == value.as_str())
}
