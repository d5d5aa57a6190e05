//! Short runs: the steps of `apply`, `delete` and `disband` that concern the record.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;

use super::super::narrow::{Narrowed, Wide};
use super::super::remove::{Removal, Removed};
use super::super::requests::{Known, ParentWriteError, ParentWriting};
use crate::cluster::apiserver::{ApiRequest, ApiServer, Patch};
use crate::event::Event;
use crate::execute::deletion::delete_wave::deletion;
use crate::execute::labeled_objects::list_labeled_objects;
use crate::execute::{Interrupt, Sink};
use crate::model::applyset::parent::{ApplySetRecord, Reading, RecordedKinds};
use crate::model::applyset::{PART_OF_LABEL, Record};
use crate::model::history_annotation::HISTORY_ANNOTATION;
use crate::model::identity::GroupKind;
use crate::model::live::Live;
use crate::model::parent_object::ParentObject;
use crate::model::resource::{Resource, Scope};
use crate::model::write_settings::{DryRun, WriteSettings};
use crate::plan::fixtures::{resource, set};
use crate::read::{ListTargets, METADATA, METADATA_LIST, whole_parent};

/// One run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Script {
    /// Applies one member of each of these kinds, and prunes the others.
    Apply(&'static [&'static str]),
    /// Deletes the members and the parent.
    Delete,
    /// Takes the label off the members and the record off the parent.
    Disband,
}

/// Carries out one run.
pub(super) async fn run(script: Script, server: &ApiServer) -> Result<(), ParentWriteError> {
    let (set, secrets) = (set(), resource("Secret", Scope::Namespaced));
    let writing = WriteSettings::without_manifests("applyset".to_owned(), DryRun::None, 1);
    let interrupt = Interrupt::default();
    let run = Run {
        parent: ParentWriting {
            server,
            set: &set,
            resource: &secrets,
            accepted: &[],
            manifest: None,
            writing: &writing,
            interrupt: &interrupt,
        },
    };
    match script {
        Script::Apply(kinds) => run.apply(kinds).await,
        Script::Delete => run.delete().await,
        Script::Disband => run.disband().await,
    }
}

struct Run<'a> {
    parent: ParentWriting<'a>,
}

impl Run<'_> {
    async fn apply(&self, kinds: &[&str]) -> Result<(), ParentWriteError> {
        let desired = record(kinds);
        let current = self.parent.read().await?;
        let wide = current.as_ref().map(recorded).unwrap_or_default().union(&desired);
        let found = self.look(&wide).await?;
        let mut known = self.parent.widen(current, &wide, &mut ignore).await?;
        for kind in kinds {
            self.label(kind).await?;
        }
        for live in found
            .iter()
            .filter(|live| !desired.group_kinds.contains(&live.key.group_kind))
        {
            self.remove_member(live).await?;
        }
        if desired == wide {
            let (parent, sink): (_, &mut Sink<'_>) = (&self.parent, &mut ignore);
            let annotation = (HISTORY_ANNOTATION, "[]");
            let annotating = parent.annotate_and_ensure_covers(&mut known, annotation, &wide, sink);
            return annotating.await.map(drop);
        }
        let lost = Record {
            group_kinds: wide
                .group_kinds
                .difference(&desired.group_kinds)
                .cloned()
                .collect(),
            ..Record::default()
        };
        let look = async || Ok::<_, ParentWriteError>(places(&self.look(&lost).await?));
        if !known.overtaken && look().await?.is_empty() {
            let narrowed = self.narrow(&mut known, &desired, &wide, look).await?;
            if narrowed != Narrowed::Overtaken {
                return Ok(());
            }
        }
        self.parent.ensure_covers(&mut known, &wide, &mut ignore).await
    }

    async fn delete(&self) -> Result<(), ParentWriteError> {
        let Some(current) = self.parent.read().await? else {
            return Ok(());
        };
        let reading = current.reading.clone();
        let wide = recorded(&current);
        for live in self.look(&wide).await? {
            self.remove_member(&live).await?;
        }
        for _ in 0..20 {
            let whole = whole_parent(self.parent.server, self.parent.resource, &self.parent.set.parent);
            let Some(whole) = whole.await? else {
                let left = places(&self.look(&wide).await?);
                if !left.is_empty() {
                    self.parent.widen(None, &left, &mut ignore).await?;
                }
                return Ok(());
            };
            let wide = wide.union(&recorded(&whole.object));
            let left = places(&self.look(&wide).await?);
            if whole.object.reading != reading && !left.is_empty() {
                self.parent.widen(Some(whole.object), &left, &mut ignore).await?;
                return Ok(());
            }
            let look = async || Ok::<_, ParentWriteError>(places(&self.look(&wide).await?));
            if !left.is_empty() {
                let mut known = Known::of(&whole.object);
                let narrowed = self.narrow(&mut known, &left, &wide, look).await?;
                if narrowed == Narrowed::Overtaken {
                    let current = self.parent.read().await?;
                    self.parent.widen(current, &wide, &mut ignore).await?;
                }
                return Ok(());
            }
            let again = async |_: &mut Sink<'_>| {
                let found = look().await?;
                Ok::<_, ParentWriteError>((!found.is_empty()).then_some(found))
            };
            let removal = Removal::Delete(&whole.live);
            if self.parent.remove(removal, |_, _| {}, again, &mut ignore).await? != Removed::Overtaken {
                return Ok(());
            }
        }
        Err(ParentWriteError::Contended)
    }

    /// Narrows the record. The server of these runs removes no label.
    async fn narrow(
        &self,
        known: &mut Known,
        target: &Record,
        wide: &Record,
        second_look: impl AsyncFnOnce() -> Result<Record, ParentWriteError>,
    ) -> Result<Narrowed, ParentWriteError> {
        let wide = Wide {
            record: wide,
            places: &ListTargets::default(),
        };
        self.parent
            .narrow(known, target, wide, second_look, &mut ignore)
            .await
    }

    async fn disband(&self) -> Result<(), ParentWriteError> {
        let Some(before) = self.parent.read().await? else {
            return Ok(());
        };
        let wide = recorded(&before);
        self.release(&wide).await?;
        for _ in 0..20 {
            let Some(current) = self.parent.read().await? else {
                return self.release(&wide).await;
            };
            if current.reading != before.reading || !self.look(&wide).await?.is_empty() {
                break;
            }
            let again = async |_: &mut Sink<'_>| {
                self.release(&wide).await?;
                Ok::<_, ParentWriteError>(None)
            };
            let removal = Removal::TakeOff(&current);
            if self.parent.remove(removal, |_, _| {}, again, &mut ignore).await? != Removed::Overtaken {
                return Ok(());
            }
        }
        Err(ParentWriteError::Contended)
    }

    /// Looks for members of the kinds of this record.
    async fn look(&self, record: &Record) -> Result<Vec<Live>, ParentWriteError> {
        let places = ListTargets {
            resources: record
                .group_kinds
                .iter()
                .map(|kind| resource_of(&kind.kind))
                .collect(),
            namespaces: BTreeSet::from(["shop".to_owned()]),
        };
        let found =
            list_labeled_objects(self.parent.server, self.parent.set, &places, 1, METADATA_LIST).await;
        found.map_err(|(_, error)| ParentWriteError::Unwatched(error))
    }

    async fn label(&self, kind: &str) -> Result<(), ParentWriteError> {
        let id = self.parent.set.id.as_str();
        self.patch(kind, &json!({"metadata": {"labels": {PART_OF_LABEL: id}}}))
            .await
    }

    async fn release(&self, record: &Record) -> Result<(), ParentWriteError> {
        for live in self.look(record).await? {
            let body = json!({"metadata": {
                "resourceVersion": live.resource_version, "labels": {PART_OF_LABEL: null},
            }});
            self.patch(&live.key.group_kind.kind, &body).await?;
        }
        Ok(())
    }

    async fn patch(&self, kind: &str, body: &serde_json::Value) -> Result<(), ParentWriteError> {
        let path = resource_of(kind).path(Some("shop"), Some("any"));
        let request = ApiRequest::patch(
            &path,
            &[("fieldManager", "applyset")],
            METADATA,
            Patch::Merge,
            Bytes::from(body.to_string()),
        );
        self.unless_changed(request).await
    }

    async fn remove_member(&self, live: &Live) -> Result<(), ParentWriteError> {
        self.unless_changed(deletion(live, DryRun::None)).await
    }

    /// An object that has changed is left as it is.
    async fn unless_changed(&self, request: ApiRequest) -> Result<(), ParentWriteError> {
        match self.parent.server.send(request).await {
            Err(error) if error.is(StatusCode::CONFLICT) || error.is(StatusCode::NOT_FOUND) => Ok(()),
            answer => Ok(answer.map(drop)?),
        }
    }
}

fn ignore(_: Event) {}

fn record(kinds: &[&str]) -> Record {
    Record {
        group_kinds: kinds.iter().map(|kind| GroupKind::new("", *kind)).collect(),
        ..Record::default()
    }
}

fn recorded(parent: &ParentObject) -> Record {
    match &parent.reading {
        Reading::Parent(ApplySetRecord {
            kinds: RecordedKinds::GroupKinds(group_kinds),
            ..
        }) => Record {
            group_kinds: group_kinds.clone(),
            ..Record::default()
        },
        _ => Record::default(),
    }
}

fn places(found: &[Live]) -> Record {
    Record::of(found.iter().map(|live| &live.key), &set().parent)
}

fn resource_of(kind: &str) -> Arc<Resource> {
    resource(kind, Scope::Namespaced)
}
