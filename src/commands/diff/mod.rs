//! `diff`: manifests → discovery → cluster state → plan → prediction → comparison of the live and the predicted
//! objects.

mod base;
mod comparisons;
mod record;
mod unanswered;

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::Value;

use self::base::Divided;
use self::comparisons::build_comparisons;
use self::record::{compare_records, predict_record};
use self::unanswered::unanswered_error;
use crate::cli::{Diff, GlobalFlags};
use crate::cluster::apiserver::ApiServer;
use crate::compare::diff::{self, Difference, OldSide};
use crate::error::Error;
use crate::event::{Action, Ending, Event, Interrupt, Operation, Phase, Resume, Sink};
use crate::execute::{Execution, ParentPrediction, Prediction, PreviewAfterFailure};
use crate::exit::Exit;
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::applyset::Record;
use crate::model::identity::ObjectKey;
use crate::model::text::{counted, shell_word};
use crate::model::write_settings::DryRun;
use crate::plan::saved::SavedPlan;
use crate::plan::{Refusal, permissions};
use crate::read::{Administrator, NamedSet};
use crate::report::{
    self, Comparison, DiffLayout, DifferenceKind, Differences, Format, NOT_VALIDATED, RunEnd, SetDocument,
};
use crate::session;
use crate::session::command_run::CommandRun;
use crate::session::prepare::{self, Input, Prepared, saved_plan, saved_plan_to_compare};
use crate::session::prompt::Questions;
use crate::settings::{self, DiffOptions};

/// Runs `diff`.
pub(super) async fn run(arguments: &Diff, shared: &GlobalFlags) -> Result<Exit, Error> {
    settings::check_plan_can_be_saved(arguments)?;
    let Some(file) = &arguments.out else {
        return compare_and_print(arguments, shared).await;
    };
    // Otherwise, a run that fails would leave the plan of an earlier run, and the user might apply it as the new one.
    let had_plan = saved_plan::discard_earlier_plan(file)?;
    let outcome = compare_and_print(arguments, shared).await;
    let style = settings::read_style(shared);
    if file.exists() {
        let file = shell_word(&file.to_string_lossy());
        let text = format!("plan saved; apply it with `kubectl applyset apply --plan {file}`");
        report::print_note(&text, style);
    } else if had_plan {
        let text = format!(
            "{}: the plan of an earlier run was removed, and no new one is saved",
            file.display()
        );
        report::print_warning(&text, style);
    }
    outcome
}

async fn compare_and_print(arguments: &Diff, shared: &GlobalFlags) -> Result<Exit, Error> {
    let plan = arguments.plan.as_deref().map(saved_plan::read).transpose()?;
    let options = match &plan {
        Some(plan) => DiffOptions::from_plan(plan, arguments, shared)?,
        None => DiffOptions::new(arguments, shared)?,
    };
    let style = settings::read_style_with_markdown(shared, &arguments.markdown);
    let mut run = CommandRun::begin(
        Operation::Diff,
        SetDocument::from_name(&options.apply.set.name),
        style,
        options.apply.writing.dry_run,
        Questions::Impossible,
    );
    run.reporter.brief_out.clone_from(&arguments.markdown.brief_out);
    let mut found = Differences {
        dry_run: options.apply.writing.dry_run,
        ..Differences::default()
    };
    let interrupt = run.interrupt.clone();
    let outcome = tokio::select! {
        biased;
        () = interrupt.wait_until_requested() => Ok(Exit::Interrupted),
        outcome = compare_and_save_plan(&mut run, shared, &options, plan.as_ref(), &mut found) => outcome,
    };
    let outcome = match (outcome, &options.external) {
        (Ok(exit), Some(program))
            if matches!(style.format, Format::Lines | Format::Wide) && exit != Exit::Interrupted =>
        {
            let shown = found.non_empty();
            let finds_difference = if shown.is_empty() {
                Ok(false)
            } else {
                report::show_externally(program, &shown)
            };
            let drift = found.drift_lines();
            for line in found.describe_ownership_only_changes().iter().chain(&drift) {
                report::print_note(line, style);
            }
            external_exit(finds_difference, &found)
                .map(|exit| exit_for_chosen_difference_kinds(exit, &options, &found))
        }
        (outcome, _) => {
            print_differences(&mut run, &found, options.layout, &outcome);
            if matches!(outcome, Ok(Exit::Interrupted)) {
                let text = if found.objects.is_empty() {
                    "interrupted: not all objects were compared, and no difference was found before that"
                } else {
                    "interrupted: there may be more differences"
                };
                run.reporter.take_event(Event::Warning(text.to_owned()));
            }
            outcome
        }
    };
    let layout = match options.external {
        Some(_) => DiffLayout::Unified,
        None => options.layout,
    };
    finish(
        run,
        &found,
        outcome.map_err(match found.dry_run {
            DryRun::Client => Error::with_read_only_rbac_hint_if_forbidden,
            DryRun::None | DryRun::Server => Error::with_diff_hints_if_forbidden,
        }),
        layout,
    )
}

/// Prints the differences. If the run failed or was interrupted before it found any, the grouped output is omitted: it
/// would say that nothing changes.
fn print_differences(
    run: &mut CommandRun,
    found: &Differences,
    layout: DiffLayout,
    outcome: &Result<Exit, Error>,
) {
    let is_partial = matches!(outcome, Err(_) | Ok(Exit::Interrupted));
    if layout == DiffLayout::Unified || !is_partial || !found.objects.is_empty() {
        run.reporter
            .print_differences((&run.set, &run.place), found, layout);
    }
}

/// Returns the exit code after an external diff. As in kubectl, the external program decides about the objects that it
/// compares. Changes that are not in these objects (of the record or of field ownership) count, too.
fn external_exit(finds_difference: Result<bool, String>, found: &Differences) -> Result<Exit, Error> {
    match finds_difference {
        Ok(false) if !found.has_results_beyond_unified_text() => Ok(Exit::Done),
        Ok(_) => Ok(Exit::Different),
        Err(message) => Err(Error::usage(
            message,
            "set KUBECTL_EXTERNAL_DIFF to a program that exits with 0 or 1, or unset it",
        )),
    }
}

/// Prints the end of the run, with the number of differences.
fn finish(
    run: CommandRun,
    found: &Differences,
    outcome: Result<Exit, Error>,
    layout: DiffLayout,
) -> Result<Exit, Error> {
    let requests = run.server.as_ref().map_or(0, ApiServer::request_count);
    let end = match &outcome {
        Ok(exit @ Exit::Interrupted) => RunEnd::Interrupted(Resume::SameCommand, *exit),
        Ok(_) => RunEnd::Complete,
        Err(error) => RunEnd::Failed(error),
    };
    if run.reporter.may_print_end(end) {
        run.reporter
            .finish_diff((run.set, &run.place), found, end, requests, layout);
    }
    outcome
}

/// Reads, plans and predicts. `found` gets the differences as they are found, to be printed even after an error.
async fn compare_and_save_plan(
    run: &mut CommandRun,
    shared: &GlobalFlags,
    options: &DiffOptions,
    plan: Option<&SavedPlan>,
    found: &mut Differences,
) -> Result<Exit, Error> {
    let salt = options
        .out
        .as_ref()
        .map(|_| saved_plan::create_salt())
        .transpose()?;
    let prepared = if let Some(plan) = plan {
        saved_plan_to_compare::plan_to_compare(run, shared, &options.apply, plan).await?
    } else {
        let input = match &salt {
            Some(salt) => Input::SourcesToSave(salt.clone()),
            None if options.base.is_empty() => Input::Sources,
            None => Input::SourcesWithBase(options.base.clone()),
        };
        let connection = run.connect(shared).await?;
        prepare::plan_to_show(run, connection, &options.apply, input).await?
    };
    // Until the record is predicted, the planned one is shown, for the case that an error comes first.
    found.record = compare_records(&prepared, &prepared.plan.record_after);
    found.refusals.clone_from(&prepared.plan.refusals);
    found.losses.clone_from(&prepared.plan.accepted);
    let times = prepared
        .plan
        .describe_applies_after_dependencies(&prepared.desired)
        .into_iter();
    for time in times.chain(prepared.plan.describe_prunes_by_time(&prepared.policy)) {
        run.reporter.take_event(Event::Note(time));
    }
    if found.dry_run == DryRun::Client {
        run.reporter.take_event(Event::Note(format!(
            "{NOT_VALIDATED}: predicted from live objects, without admission or the server's defaults"
        )));
        let recreatable = prepared.execution(&run.interrupt).note_on_recreatable_objects();
        run.report_new_notes(recreatable.into_iter().collect());
    }
    check_permissions(&prepared).await?;
    let mut predictions = Vec::new();
    let parent = predict_parent(&prepared, &prepared.desired, run).await?;
    let ending = predict_objects(run, &prepared, parent.as_ref(), &mut predictions, found).await;
    let record_after = predict_record(&prepared, &run.interrupt, &predictions).await?;
    found.record = compare_records(&prepared, &record_after);
    let (mut of_base, mut live_parent) = (Vec::new(), None);
    if let Some(base) = &prepared.base {
        of_base = base::predict_base(&prepared, base, parent, &mut predictions, run).await?;
    } else {
        live_parent = add_parent_comparison(&prepared, &record_after, parent, found);
    }
    let unanswered = unanswered_error(&predictions).or_else(|| unanswered_error(&of_base));
    for object in &predictions {
        for text in &object.warnings {
            run.reporter.take_event(Event::WarningOfObject {
                object: object.outcome.subject.key().to_string(),
                text: text.clone(),
            });
        }
    }
    let mut to_save = None;
    if let Some((file, salt)) = options.out.as_ref().zip(salt) {
        let plan = saved_plan::create(
            &prepared,
            &options.apply,
            &predictions,
            live_parent.as_ref(),
            salt,
        )
        .await?;
        to_save = Some((file, plan));
    }
    if let Some(base) = &prepared.base {
        let mut divided = Divided::new(&prepared, base, predictions, of_base);
        let parent = divided.take_parent(&prepared.named.set.parent);
        add_parent_comparison_with_base(&prepared, parent, found);
        predictions = divided.objects;
        found.drift = Some(divided.drift);
    }
    found.objects = build_comparisons(&prepared, predictions, plan);
    warn_of_prevented_prunes(run, found, &prepared);
    if ending == Ending::Interrupted {
        return Ok(Exit::Interrupted);
    }
    if let Some(error) = unanswered {
        return Err(error);
    }
    if let Some((file, plan)) = to_save {
        saved_plan::write_if_plan_could_be_applied(file, &plan, found)?;
    }
    if options.has_exit_code_on(DifferenceKind::Drift) {
        run.report_new_notes(found.objects.iter().filter_map(Comparison::drift_line).collect());
    }
    let exit = if found.is_empty() {
        Exit::Done
    } else {
        Exit::Different
    };
    Ok(exit_for_chosen_difference_kinds(exit, options, found))
}

/// Returns `exit`; but if it says that there are differences, and `--exit-code-on` names the kind of none of them,
/// returns success. Drift that is listed apart counts only if `--exit-code-on` names it.
fn exit_for_chosen_difference_kinds(exit: Exit, options: &DiffOptions, found: &Differences) -> Exit {
    let has_drift = found.drift.as_ref().is_some_and(|drift| !drift.is_empty());
    match &options.counted {
        Some(kinds) if has_drift && kinds.contains(&DifferenceKind::Drift) => Exit::Different,
        Some(kinds) if exit == Exit::Different && !found.may_have_any_of(kinds) => Exit::Done,
        _ => exit,
    }
}

/// Checks the permissions of the dry runs. A read-only run has none: each of its reads shows by itself whether it is
/// permitted.
async fn check_permissions(prepared: &Prepared) -> Result<(), Error> {
    if prepared.writing.dry_run == DryRun::Client {
        return Ok(());
    }
    let needed =
        permissions::needed_for_dry_run(&prepared.named.set.parent, &prepared.desired, &prepared.plan);
    let concurrency = prepared.writing.concurrency;
    let user = Administrator::NotAsked;
    session::permissions::check_none_is_missing(&prepared.cluster.server, user, &needed, concurrency).await
}

/// Predicts the objects. `found` gets the errors about objects that would not be applied because others fail.
async fn predict_objects(
    run: &mut CommandRun,
    prepared: &Prepared,
    parent: Option<&ParentPrediction>,
    predictions: &mut Vec<Prediction>,
    found: &mut Differences,
) -> Ending {
    let interrupt: Interrupt = run.interrupt.clone();
    let reporter = &mut run.reporter;
    reporter.take_event(Event::Phase {
        phase: Phase::Comparing,
        total: prepared.plan.count_reported_objects(),
    });
    let refused = Refusal::first_by_object(&prepared.plan.refusals);
    let reporter = RefCell::new(reporter);
    let mut predicted = |object: Prediction, _: &mut Sink<'_>| {
        reporter.borrow_mut().advance_progress_bar();
        predictions.push(object);
    };
    let mut sink = |event: Event| match event {
        Event::Failure(error) => found.failures.push(error),
        event => reporter.borrow_mut().take_event(event),
    };
    let is_left_out = |object: &DesiredObject| refused.contains_key(&object.key);
    let after_failure = match prepared.base {
        // What drift makes fail must not hide what the manifests change.
        Some(_) => PreviewAfterFailure::Continue,
        None => PreviewAfterFailure::AsInRun(parent),
    };
    prepared
        .execution(&interrupt)
        .predict_objects(after_failure, is_left_out, &mut predicted, &mut sink)
        .await
}

async fn predict_parent(
    prepared: &Prepared,
    desired: &Desired,
    run: &CommandRun,
) -> Result<Option<ParentPrediction>, Error> {
    let execution = Execution {
        desired,
        ..prepared.execution(&run.interrupt)
    };
    execution.predict_parent().await.map_err(|error| {
        error.to_error_while_reading(format_args!("the set's parent {}", prepared.named.set.parent))
    })
}

/// Adds the comparison of the parent to `found`. Returns the live parent, if the parent has a manifest.
fn add_parent_comparison(
    prepared: &Prepared,
    record_after: &Record,
    prediction: Option<ParentPrediction>,
    found: &mut Differences,
) -> Option<Value> {
    let error = prediction
        .as_ref()
        .and_then(|prediction| prediction.error.clone());
    found
        .failures
        .extend(error.map(|error| error.with_subject_prefix("the set's parent: ")));
    let live = prediction.as_ref().and_then(|prediction| prediction.live.clone());
    let manifest = prepared.desired.parent.as_ref().zip(prediction);
    found.parent = Some(diff::compare_parent(
        &prepared.named.set,
        &prepared.named.resource,
        prepared.state.parent_object(),
        record_after,
        manifest.map(|(object, prediction)| (object, prediction.live, prediction.predicted)),
    ));
    live
}

/// Adds the comparison of the parent with what the base would make of it to `found`. The record, which each run writes,
/// is left out.
fn add_parent_comparison_with_base(
    prepared: &Prepared,
    prediction: Option<Prediction>,
    found: &mut Differences,
) {
    found.parent = None;
    let Some(Prediction {
        outcome,
        live,
        predicted,
        compared,
        ..
    }) = prediction
    else {
        return;
    };
    let error = outcome
        .error
        .map(|error| error.with_subject_prefix("the set's parent: "));
    found.failures.extend(error);
    let NamedSet { set, resource, .. } = &prepared.named;
    let old_side = compared.as_ref().map_or(OldSide::Live, |_| OldSide::Base);
    let [before, after] = compared.unwrap_or([live, predicted]);
    found.parent = Some(Difference {
        old_side,
        ..Difference::new(resource, &set.parent, before.as_ref(), after.as_ref())
    });
}

/// Warns that the run would not prune, because an object would fail to be applied. With a base, the prunes are shown all
/// the same.
fn warn_of_prevented_prunes(run: &mut CommandRun, found: &Differences, prepared: &Prepared) {
    let pruned: BTreeSet<&ObjectKey> = prepared.plan.all_prunes().map(|live| &live.key).collect();
    let failures = found.objects.iter().filter(|object| {
        object.outcome.action == Action::Failed && !pruned.contains(&object.outcome.subject.key())
    });
    let failing = failures.count();
    if failing > 0 && prepared.base.is_none() && prepared.plan.count_prunes() > 0 && found.refusals.is_empty()
    {
        run.report_new_warnings(&[format!(
            "{} would fail; nothing would be pruned",
            counted(failing, "object")
        )]);
    }
}
