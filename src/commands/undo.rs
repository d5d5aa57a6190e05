//! The undo of an apply: the manifests that the set had before the run, and with `--undo-on-failure`, the apply of them
//! after a run that failed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::cli::GlobalFlags;
use crate::error::{Error, ErrorKind};
use crate::event::{Ending, Event};
use crate::manifest::{self, Manifests, Recursion, Source};
use crate::model::history_annotation::{History, Run};
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::message::{Message, recreate_flag};
use crate::model::set::ParentObject;
use crate::model::text::{first_names_and_more, shell_word};
use crate::plan::{LiveMembership, Recreate};
use crate::report::{Reporter, manifest_file_text};
use crate::session::export::{ExportSource, PlannedChanges};
use crate::session::manifest_files;
use crate::session::prepare::{Input, Prepared};
use crate::session::waits::WrittenObjects;

/// The manifests of a set before a run.
pub(super) struct UndoText {
    /// The text of the file of `--undo-out`.
    pub(super) text: String,
    /// Sentences about what is not among the manifests.
    left_out: Vec<String>,
    /// True if there are no manifests.
    is_empty: bool,
}

impl UndoText {
    /// Returns the manifests of the members, and of the objects that the run is going to take into the set. The latter are needed because an apply of the file prunes all members that are not in the
    /// file.
    pub(super) async fn export(prepared: &Prepared, shared: &GlobalFlags) -> Result<Self, Error> {
        let Prepared {
            cluster,
            named,
            desired,
            state,
            writing,
            plan,
            ..
        } = prepared;
        // Objects that become members, some of which may not exist: only objects with the label were listed.
        let new_members = plan.all_applies().filter(|apply| {
            matches!(
                apply.live_membership,
                LiveMembership::NotAMember | LiveMembership::OfAnotherSet { .. }
            )
        });
        let new_keys = new_members.map(|apply| desired.members[apply.index].key.clone());
        let parent = desired.parent.iter().map(|parent| parent.key.clone());
        let changes = PlannedChanges {
            taken_in: new_keys.chain(parent).collect(),
            applied: &desired.members,
            deleted: plan.all_prunes().map(|live| &live.key).collect(),
            recreatable: prepared.outline().recreatable.into_iter().collect(),
        };
        let source = ExportSource {
            cluster,
            set: &named.set,
            parent_resource: &named.resource,
            places: &state.places,
            field_manager: &writing.field_manager,
            concurrency: writing.concurrency,
        };
        let exported = source.export(&changes).await?;
        let manifests = exported.manifests;
        let detachments = plan.dependents.detachments.iter();
        let lost_references = detachments.map(|detachment| {
            format!(
                "Not in this file: the owner references of {}.",
                detachment.dependent.key
            )
        });
        let left_out: Vec<String> = lost_references.chain(exported.left_out).collect();
        let (tooling, manager) = (&named.set.tooling, &writing.field_manager);
        let mut flags = manifest_files::apply_flags(tooling, manager, &manifests, &shared.connection);
        // What this run recreates differs in fields that no update can change back either.
        if let Recreate::Kinds(kinds) = &prepared.policy.recreate {
            let recreatable: BTreeSet<&GroupKind> =
                changes.recreatable.iter().map(|key| &key.group_kind).collect();
            let kinds: Vec<&GroupKind> = kinds.iter().filter(|kind| recreatable.contains(kind)).collect();
            if !kinds.is_empty() {
                flags.extend([" ", &recreate_flag(kinds)]);
            }
        }
        Ok(Self {
            text: manifest_file_text(&named.set.parent, &flags, &left_out, &manifests),
            left_out,
            is_empty: manifests.is_empty(),
        })
    }
}

/// What the undo of a run needs.
pub(super) struct Undo {
    before: UndoText,
    parent: ObjectKey,
    /// The namespace of manifests without one.
    namespace: String,
    /// The runs in the history of the set before the run.
    earlier_runs: Vec<Run>,
    /// What the run has written.
    written: WrittenObjects,
    /// The file of `--undo-out`.
    file: Option<PathBuf>,
}

impl Undo {
    pub(super) fn new(
        prepared: &Prepared,
        before: UndoText,
        written: WrittenObjects,
        file: Option<PathBuf>,
    ) -> Self {
        Self {
            before,
            parent: prepared.named.set.parent.clone(),
            namespace: prepared.cluster.namespace.clone(),
            earlier_runs: ended_runs(prepared.state.parent_object()),
            written,
            file,
        }
    }

    /// Returns why the run is not undone; `None` if it is.
    pub(super) fn reason_to_leave_run(&self) -> Option<String> {
        if !self.written.has_changes() {
            return Some("nothing to undo: the run has changed no object".to_owned());
        }
        if self.before.is_empty {
            let parent = self.parent.shell_arguments();
            return Some(format!(
                "not undone: the set had no members before this run, so its objects stay; delete them with `kubectl applyset delete {parent}`"
            ));
        }
        None
    }

    /// Returns the notes before the undo begins: what it does, and what does not come back.
    pub(super) fn notes(&self) -> Vec<String> {
        let begin = "undoing the run: applying the manifests that the set had before".to_owned();
        let recreated: Vec<String> = self.written.recreated().map(ToString::to_string).collect();
        let lost = (!recreated.is_empty()).then(|| {
            format!(
                "not undone: {} recreated: the former status and data do not come back",
                first_names_and_more(&recreated)
            )
        });
        let left_out = self.before.left_out.iter().cloned();
        [begin].into_iter().chain(lost).chain(left_out).collect()
    }

    /// Returns the manifests to be applied.
    pub(super) fn input(&self) -> Result<Input, Error> {
        let read = manifest::read_with_standard_input(
            &[Source::StandardInput],
            Recursion::Flat,
            self.before.text.as_bytes(),
        );
        let mut manifests = read?;
        let source = Arc::new(Source::Path(PathBuf::from("manifests before the run")));
        for manifest in &mut manifests {
            manifest.position.source = Arc::clone(&source);
        }
        Ok(Input::Saved {
            manifests: Manifests {
                applied: manifests,
                hooks: Vec::new(),
            },
            namespace: self.namespace.clone(),
        })
    }

    /// Refuses to undo what other runs have done since: the undo would prune their objects, and take their changes
    /// back.
    pub(super) fn check_no_other_run_has_written(&self, prepared: &Prepared) -> Result<(), Error> {
        let runs = ended_runs(prepared.state.parent_object());
        let new_runs = runs.iter().filter(|run| !self.earlier_runs.contains(run)).count();
        let others = prepared.plan.all_prunes();
        let others: Vec<String> = others
            .filter(|live| !self.written.has_created(live))
            .map(|live| live.key.to_string())
            .collect();
        let message = if !others.is_empty() {
            format!(
                "{} would be pruned, and the run has not created it",
                first_names_and_more(&others)
            )
        } else if new_runs != 1 {
            "the history of the set does not show that this run was the last".to_owned()
        } else {
            return Ok(());
        };
        let hint = format!(
            "see what has changed with `kubectl applyset history {}`",
            self.parent.shell_arguments()
        );
        Err(Error::new(
            ErrorKind::Refused,
            Message::new(message).with_hint(hint),
        ))
    }

    /// Reports the end of the undo. Returns how the command ends: the run has failed anyway.
    pub(super) fn report_end(&self, outcome: Result<Ending, Error>, reporter: &mut Reporter) -> Ending {
        let parent = self.parent.shell_arguments();
        match outcome {
            Ok(Ending::Done) => {
                reporter.take_event(Event::Warning(format!(
                    "the run has failed and was undone; wait for its end with `kubectl applyset view {parent} --wait`"
                )));
                Ending::Incomplete
            }
            Ok(Ending::Incomplete) => {
                let message = Message::new("the run was undone only in part");
                reporter.take_event(Event::Failure(message.with_hint(self.advice())));
                Ending::Incomplete
            }
            Ok(Ending::Interrupted) => {
                reporter.take_event(Event::Warning(format!(
                    "the undo was interrupted; {}",
                    self.advice()
                )));
                Ending::Interrupted
            }
            Err(error) => {
                let mut message = Message::new(format!("the run was not undone: {error}"));
                for hint in error.hints() {
                    message = message.with_hint(hint);
                }
                reporter.take_event(Event::Failure(message.with_hint(self.advice())));
                match error.kind {
                    ErrorKind::Interrupted => Ending::Interrupted,
                    _ => Ending::Incomplete,
                }
            }
        }
    }

    /// Returns the warning about a run that the user stopped.
    pub(super) fn describe_how_to_undo(&self) -> String {
        format!("not undone, because the run was stopped; {}", self.advice())
    }

    /// Returns how to undo the run by hand.
    fn advice(&self) -> String {
        match &self.file {
            Some(file) => format!(
                "undo it with `kubectl applyset apply {} -f {}`",
                self.parent.shell_arguments(),
                shell_word(&file.to_string_lossy())
            ),
            None => "apply the former manifests to undo it".to_owned(),
        }
    }
}

fn ended_runs(parent: Option<&ParentObject>) -> Vec<Run> {
    let history = parent.map(|parent| History::from_annotations(&parent.annotations));
    let runs = history.map_or_else(Vec::new, History::into_runs);
    runs.into_iter().filter(|run| !run.is_running()).collect()
}
