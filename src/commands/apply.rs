//! `apply`: manifests → discovery → cluster state → plan → execute → report.

use std::collections::BTreeSet;
use std::mem;
use std::path::Path;

use crate::cli::{Apply, GlobalFlags};
use crate::error::Error;
use crate::event::{Ending, Operation, Resume};
use crate::execute::{Execution, RunWaits, WaitSettings};
use crate::exit::Exit;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::model::message::recreate_flag;
use crate::model::write_settings::DryRun;
use crate::plan::saved::SavedPlan;
use crate::plan::{LiveMembership, Proposal, Recreate, permissions};
use crate::report::{PlanOutline, SetDocument, UnchangedLines, manifest_file_text};
use crate::session;
use crate::session::command_run::CommandRun;
use crate::session::export_members::{ExportSource, PlannedChanges};
use crate::session::plan_and_write::{Script, SetToWrite};
use crate::session::prepare::{self, Prepared, saved_plan};
use crate::session::prompt::Questions;
use crate::session::write_exported_files;
use crate::settings::{self, ApplyOptions};

/// Runs `apply`, with or without a saved plan.
pub(super) async fn run(arguments: &Apply, shared: &GlobalFlags) -> Result<Exit, Error> {
    let saved = arguments.plan.as_deref().map(saved_plan::read).transpose()?;
    let options = match &saved {
        Some(plan) => ApplyOptions::from_plan(plan, arguments, shared)?,
        None => ApplyOptions::new(arguments, shared)?,
    };
    if let Some(file) = &options.undo_out {
        write_exported_files::check_file_can_be_created(UNDO_OUT, file)?;
        write_exported_files::check_not_among_manifests(UNDO_OUT, file, &options.sources, options.recursion)?;
    }
    let mut style = settings::read_style_with_markdown(shared, &arguments.markdown);
    if arguments.show_unchanged {
        style.unchanged = UnchangedLines::Shown;
    }
    let mut run = CommandRun::begin(
        Operation::Apply,
        SetDocument::from_name(&options.set.name),
        style,
        options.writing.dry_run,
        Questions::at_terminal(options.is_interactive, &options.sources),
    );
    if saved.is_some() {
        // If the run ends early, the cluster differs from the plan, so the same plan cannot be applied again.
        run.resume = Resume::NewPlan;
    }
    run.reporter.brief_out.clone_from(&arguments.markdown.brief_out);
    run.set_time_limit(options.waiting.limit);
    run.report_new_notes(options.note_on_shortened_message(arguments).into_iter().collect());
    let mut script = ApplyScript {
        options: &options,
        shared,
        saved: saved.as_ref(),
        has_undo_file: false,
    };
    let outcome = run
        .plan_and_write(&mut script, &options.consent, options.writing.exclusive)
        .await;
    run.finish(outcome.map_err(Error::with_rbac_hint_if_forbidden))
}

struct ApplyScript<'a> {
    options: &'a ApplyOptions,
    shared: &'a GlobalFlags,
    /// The plan of `--plan`.
    saved: Option<&'a SavedPlan>,
    /// True if this run has written the file of `--undo-out`.
    has_undo_file: bool,
}

impl Script for ApplyScript<'_> {
    type Planned = Prepared;

    async fn read_and_plan(
        &mut self,
        run: &mut CommandRun,
        outdated: Option<Prepared>,
    ) -> Result<Option<Prepared>, Error> {
        // After an outdated plan, the set is exported again.
        if let Some(file) = self.options.undo_out.as_ref().filter(|_| self.has_undo_file) {
            write_exported_files::remove_file(UNDO_OUT, file)?;
            self.has_undo_file = false;
        }
        let prepared = match self.saved {
            None => prepare::plan_to_write(run, self.shared, self.options, outdated).await?,
            // The cluster may have changed since the plan was saved, so the cluster is read again and compared with the
            // plan.
            Some(saved) => {
                let prepared =
                    saved_plan::plan_again_and_compare(run, self.shared, self.options, saved).await?;
                run.report_new_warnings(&prepared.plan.describe_ignored_dependencies_and_losses());
                check_permissions(&prepared).await?;
                prepared
            }
        };
        Ok(Some(prepared))
    }

    fn sets<'p>(&'p self, prepared: &'p Prepared) -> Vec<SetToWrite<'p>> {
        vec![prepared.set_to_write()]
    }

    fn proposal(&self, prepared: &Prepared) -> Proposal {
        prepared.proposal(self.options.confirm)
    }

    fn outline(&self, prepared: &Prepared) -> PlanOutline {
        let Some(saved) = self.saved else {
            return prepared.outline();
        };
        let taken_in = saved.objects.iter().filter(|object| object.taken_in);
        let taken_in: BTreeSet<&ObjectKey> = taken_in.map(|object| &object.key).collect();
        let mut outline = prepared.outline();
        // The run of a saved plan does not look for objects that exist in no set: the plan knows them.
        let (existing, created) = mem::take(&mut outline.created)
            .into_iter()
            .partition(|key| taken_in.contains(key));
        outline.created = created;
        outline.changed.extend::<Vec<ObjectKey>>(existing);
        outline
    }

    async fn report_and_check_permissions(
        &mut self,
        run: &mut CommandRun,
        prepared: &mut Prepared,
    ) -> Result<(), Error> {
        // The checks and reports of a saved plan are part of its approval, in `plan`.
        if self.saved.is_some() {
            return Ok(());
        }
        prepare::report_notes_and_warnings(run, prepared);
        prepared.plan.lift_all_refusals();
        check_permissions(prepared).await
    }

    /// Exports the set for `--undo-out`, and carries the plan out.
    async fn execute(&mut self, run: &mut CommandRun, prepared: &mut Prepared) -> Result<Ending, Error> {
        if let Some(file) = &self.options.undo_out {
            let interrupt = run.interrupt.clone();
            let manifests = tokio::select! {
                biased;
                () = interrupt.wait_until_requested() => return Ok(Ending::Interrupted),
                manifests = build_undo_text(prepared, self.shared) => manifests?,
            };
            write_undo_file(file, &manifests, run)?;
            self.has_undo_file = true;
        }
        execute_plan(run, prepared, self.options).await
    }
}

/// The flag for the file with the manifests of the set before the run.
const UNDO_OUT: &str = "--undo-out";

/// Returns the text of the file of `--undo-out`: the manifests of the members, and of the objects that the run is going
/// to take into the set. The latter are needed because an apply of the file prunes all members that are not in the
/// file.
async fn build_undo_text(prepared: &Prepared, shared: &GlobalFlags) -> Result<String, Error> {
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
    let mut flags = write_exported_files::apply_flags(tooling, manager, &manifests, &shared.connection);
    // What this run recreates differs in fields that no update can change back either.
    if let Recreate::Kinds(kinds) = &prepared.policy.recreate {
        let recreatable: BTreeSet<&GroupKind> =
            changes.recreatable.iter().map(|key| &key.group_kind).collect();
        let kinds: Vec<&GroupKind> = kinds.iter().filter(|kind| recreatable.contains(kind)).collect();
        if !kinds.is_empty() {
            flags.push(recreate_flag(kinds));
        }
    }
    Ok(manifest_file_text(
        &named.set.parent,
        &flags,
        &left_out,
        &manifests,
    ))
}

/// Writes the file of `--undo-out`, and reports how to use it.
fn write_undo_file(file: &Path, manifests: &str, run: &mut CommandRun) -> Result<(), Error> {
    write_exported_files::write_new_private_file(UNDO_OUT, file, manifests)?;
    let written = format!(
        "wrote {}; its first lines say how to undo this run",
        file.display()
    );
    run.report_new_notes(vec![written]);
    // The same command would refuse to overwrite the file.
    if run.resume == Resume::SameCommand {
        run.resume = Resume::OtherUndoFile;
    }
    Ok(())
}

async fn execute_plan(
    run: &mut CommandRun,
    prepared: &Prepared,
    options: &ApplyOptions,
) -> Result<Ending, Error> {
    let interrupt = run.interrupt.clone();
    let is_dry = options.writing.dry_run != DryRun::None;
    if is_dry {
        run.reporter.print_header_at_terminal(&run.set, &run.place);
    }
    let reporter = &mut run.reporter;
    reporter.set_accepted_data_losses(&prepared.plan.accepted);
    let patience = options.waiting.patience.filter(|_| !is_dry);
    let dependencies = WaitSettings {
        server: &prepared.cluster.server,
        id: &prepared.named.set.id,
        rules: &options.status_rules,
        interrupt: &interrupt,
        concurrency: options.writing.concurrency,
        failures: options.failures,
        patience: options.waiting.dependency_patience(),
    };
    let waits = patience.map(|patience| {
        let settings = WaitSettings {
            patience,
            ..dependencies
        };
        RunWaits::new(settings, &prepared.desired, &prepared.plan)
    });
    let execution = Execution {
        waits: waits.as_ref(),
        dependencies: Some(dependencies),
        ..prepared.execution(&interrupt)
    };
    let work = async {
        let mut sink = |event| {
            if let Some(waits) = &waits {
                waits.take_note(&event);
            }
            reporter.take_event(event);
        };
        Ok(execution.run(&mut sink).await?)
    };
    interrupt.run_command_unless_aborted(work).await
}

/// Refuses a run that the user has no permission to finish. Opens the connections for its writes in the meantime.
async fn check_permissions(prepared: &Prepared) -> Result<(), Error> {
    prepared.open_connections_for_writes();
    let Prepared {
        cluster,
        named,
        desired,
        state,
        writing,
        plan,
        administrator,
        ..
    } = prepared;
    let parent = state.parent_object();
    let now = cluster.server.now();
    let mut needed =
        permissions::needed_for_plan(&named.set, &named.resource, parent, desired, plan, writing, now);
    if writing.dry_run == DryRun::Server {
        let to_predict = permissions::needed_for_dry_run(&named.set.parent, desired, plan);
        needed.permissions.extend(to_predict.permissions);
    }
    session::permissions::check_to_write(&cluster.server, *administrator, &needed, writing).await
}
