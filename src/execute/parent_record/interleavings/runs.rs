//! Short runs: the steps of `apply`, `delete`, `disband`, `adopt` and `verify --fix` that concern the record.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;

use super::super::begin::KnownParent;
use super::super::requests::{ParentWriteError, ParentWriting};
use crate::cluster::apiserver::{ApiRequest, ApiServer, Patch};
use crate::event::{Event, Interrupt};
use crate::execute::deletion::delete::delete_request;
use crate::model::applyset::parent::{ParentAnnotations, Reading, RecordedKinds};
use crate::model::applyset::{PART_OF_LABEL, Record};
use crate::model::history_annotation::{Counts, Run as HistoryRun, RunOperation, RunResult};
use crate::model::identity::GroupKind;
use crate::model::live::Live;
use crate::model::resource::{Resource, Scope};
use crate::model::set::ParentObject;
use crate::model::write_settings::{DryRun, WriteSettings};
use crate::plan::fixtures::{resource, set};
use crate::read::{ListTargets, METADATA, METADATA_LIST, list_labeled_objects, read_live_parent};

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    /// Applies one member of each of these kinds, and prunes the others.
    Apply(&'static [&'static str]),
    /// Deletes the members and the parent.
    Delete,
    /// Removes the label from the members and the record from the parent.
    Disband,
    /// Adds one member of each of these kinds to the set.
    Adopt(&'static [&'static str]),
    /// Records exactly the members that the cluster has, as `verify --fix` does.
    Fix,
}

/// Carries out the run with this number.
pub(super) async fn play_run(
    number: usize,
    script: Script,
    server: &ApiServer,
) -> Result<(), ParentWriteError> {
    let (set, secrets) = (set(), resource("Secret", Scope::Namespaced));
    let writing = WriteSettings::for_commands_without_manifests("applyset".to_owned(), DryRun::None, 1);
    let interrupt = Interrupt::default();
    let run = Run {
        number,
        parent: ParentWriting {
            server,
            set: &set,
            resource: &secrets,
            accepted_take_over: &[],
            manifest: None,
            writing: &writing,
            interrupt: &interrupt,
        },
    };
    match script {
        Script::Apply(kinds) => run.apply(kinds).await,
        Script::Delete => run.delete().await,
        Script::Disband => run.disband().await,
        Script::Adopt(kinds) => run.adopt(kinds).await,
        Script::Fix => run.fix().await,
    }
}

struct Run<'a> {
    number: usize,
    parent: ParentWriting<'a>,
}

impl Run<'_> {
    /// Returns the entry of this run. The seconds of its time are cut off, so that a schedule is always the same.
    fn entry(&self, operation: RunOperation, result: RunResult) -> HistoryRun {
        let id = match result {
            RunResult::Running => format!("run-{}", self.number),
            _ => String::new(),
        };
        HistoryRun {
            time: self.parent.server.now().strftime("%FT%H:%M:00Z").to_string(),
            result,
            counts: Counts::default(),
            takes_out: matches!(operation, RunOperation::Delete | RunOperation::Disband),
            operation,
            // All runs have the same manifests, as runs of one pipeline may: their entries must not be confused.
            manifests: "same".to_owned(),
            user: None,
            message: None,
            version: "v1".to_owned(),
            id,
            renewed: None,
            others: std::collections::BTreeMap::new(),
        }
    }

    async fn apply(&self, kinds: &[&str]) -> Result<(), ParentWriteError> {
        let desired = record_of_kinds(kinds);
        let current = self.parent.read().await?;
        let wide = current.as_ref().map(recorded).unwrap_or_default().union(&desired);
        let found = self.list(&wide).await?;
        let entry = self.entry(RunOperation::Apply, RunResult::Running);
        let mut known = self.parent.begin(current, &wide, entry, &mut ignore).await?;
        for kind in kinds {
            self.label(kind).await?;
        }
        let is_pruned = |live: &&Live| !desired.group_kinds.contains(&live.key.group_kind);
        for live in found.iter().filter(is_pruned) {
            self.remove_member(live).await?;
        }
        let lost = wide.group_kinds.difference(&desired.group_kinds).cloned();
        let lost = Record {
            group_kinds: lost.collect(),
            ..Record::default()
        };
        let exact = if known.is_shared {
            None
        } else {
            Some(desired.union(&record_of(&self.list(&lost).await?)))
        };
        self.end(&mut known, &wide, exact.as_ref(), Some(RunOperation::Apply))
            .await
    }

    async fn adopt(&self, kinds: &[&str]) -> Result<(), ParentWriteError> {
        let needed = record_of_kinds(kinds);
        let current = self.parent.read().await?;
        let entry = self.entry(RunOperation::Apply, RunResult::Running);
        let mut known = self.parent.begin(current, &needed, entry, &mut ignore).await?;
        for kind in kinds {
            self.label(kind).await?;
        }
        self.end(&mut known, &needed, None, Some(RunOperation::Apply))
            .await
    }

    async fn fix(&self) -> Result<(), ParentWriteError> {
        let Some(current) = self.parent.read().await? else {
            return Ok(());
        };
        if !current.running.is_empty() {
            return Ok(());
        }
        let wide = recorded(&current);
        let found = record_of(&self.list(&record_of_kinds(&["One", "Two", "Three"])).await?);
        let mut known = KnownParent::from_read(current);
        self.end(&mut known, &wide, Some(&found), None).await
    }

    async fn end(
        &self,
        known: &mut KnownParent,
        needed: &Record,
        exact: Option<&Record>,
        ended: Option<RunOperation>,
    ) -> Result<(), ParentWriteError> {
        let run = ended.map(|operation| self.entry(operation, RunResult::Done));
        self.parent
            .write_final_entry_and_record(known, needed, exact, run, &mut ignore)
            .await
    }

    async fn delete(&self) -> Result<(), ParentWriteError> {
        let Some(current) = self.parent.read().await? else {
            return Ok(());
        };
        let wide = recorded(&current);
        let found = self.list(&wide).await?;
        let mut known = self
            .begin_to_take_out(current, &wide, RunOperation::Delete)
            .await?;
        for live in found {
            self.remove_member(&live).await?;
        }
        self.release(&mut known, &wide, RunOperation::Delete).await
    }

    /// Deletes the parent or removes its record, as `former_parent` does at the end of such a run.
    async fn release(
        &self,
        known: &mut KnownParent,
        wide: &Record,
        ended: RunOperation,
    ) -> Result<(), ParentWriteError> {
        let uid = known.parent.uid.clone();
        for _ in 0..20 {
            let whole = read_live_parent(self.parent.server, self.parent.resource, &self.parent.set.parent);
            let Some(whole) = whole.await? else {
                return self.without_parent(wide).await;
            };
            if whole.object.uid != uid || whole.object.reading == Reading::NoRecord {
                return self.without_parent(wide).await;
            }
            known.replace_and_note_other_runs(whole.object.clone());
            let wide = wide.union(&recorded(&whole.object));
            let left = record_of(&self.list(&wide).await?);
            if !left.is_empty() {
                return self.end(known, &wide, Some(&left), Some(ended.clone())).await;
            }
            if whole.object.adding_runs_beside(known.entry_id()).next().is_some() {
                return self.end(known, &wide, None, Some(ended.clone())).await;
            }
            let is_written = match ended {
                RunOperation::Delete => self.parent.delete_if_unchanged(&whole.live).await?.is_some(),
                _ => self.parent.remove_record_if_unchanged(&whole.object).await?,
            };
            if is_written {
                return Ok(());
            }
        }
        Err(ParentWriteError::Contended)
    }

    async fn begin_to_take_out(
        &self,
        current: ParentObject,
        wide: &Record,
        operation: RunOperation,
    ) -> Result<KnownParent, ParentWriteError> {
        let without_entry = KnownParent::from_read_to_take_out(current.clone());
        let entry = self.entry(operation, RunResult::Running);
        match self.parent.begin(Some(current), wide, entry, &mut ignore).await {
            Err(ParentWriteError::Gone) => Ok(without_entry),
            begun => begun,
        }
    }

    /// Ends a run whose parent was deleted or replaced: it fails if anything is left.
    async fn without_parent(&self, wide: &Record) -> Result<(), ParentWriteError> {
        if self.list(wide).await?.is_empty() {
            Ok(())
        } else {
            Err(ParentWriteError::Gone)
        }
    }

    async fn disband(&self) -> Result<(), ParentWriteError> {
        let Some(before) = self.parent.read().await? else {
            return Ok(());
        };
        let wide = recorded(&before);
        let mut known = self
            .begin_to_take_out(before, &wide, RunOperation::Disband)
            .await?;
        self.release_members(&wide).await?;
        self.release(&mut known, &wide, RunOperation::Disband).await
    }

    /// Lists the members of the kinds of this record.
    async fn list(&self, record: &Record) -> Result<Vec<Live>, ParentWriteError> {
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
        found.map_err(|(_, error)| ParentWriteError::NotListed(error))
    }

    async fn label(&self, kind: &str) -> Result<(), ParentWriteError> {
        let id = self.parent.set.id.as_str();
        self.patch(kind, &json!({"metadata": {"labels": {PART_OF_LABEL: id}}}))
            .await
    }

    async fn release_members(&self, record: &Record) -> Result<(), ParentWriteError> {
        for live in self.list(record).await? {
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
        self.send_unless_changed(request).await
    }

    async fn remove_member(&self, live: &Live) -> Result<(), ParentWriteError> {
        self.send_unless_changed(delete_request(live, DryRun::None)).await
    }

    /// Sends a write of a member. It is no failure if the member has changed or is gone.
    async fn send_unless_changed(&self, request: ApiRequest) -> Result<(), ParentWriteError> {
        match self.parent.server.send(request).await {
            Err(error)
                if error.has_status_code(StatusCode::CONFLICT)
                    || error.has_status_code(StatusCode::NOT_FOUND) =>
            {
                Ok(())
            }
            answer => Ok(answer.map(drop)?),
        }
    }
}

fn ignore(_: Event) {}

fn record_of_kinds(kinds: &[&str]) -> Record {
    Record {
        group_kinds: kinds.iter().map(|kind| GroupKind::new("", *kind)).collect(),
        ..Record::default()
    }
}

fn recorded(parent: &ParentObject) -> Record {
    match &parent.reading {
        Reading::Parent(ParentAnnotations {
            kinds: RecordedKinds::GroupKinds(group_kinds),
            ..
        }) => Record {
            group_kinds: group_kinds.clone(),
            ..Record::default()
        },
        _ => Record::default(),
    }
}

fn record_of(found: &[Live]) -> Record {
    Record::from_members(found.iter().map(|live| &live.key), &set().parent)
}

fn resource_of(kind: &str) -> Arc<Resource> {
    resource(kind, Scope::Namespaced)
}
