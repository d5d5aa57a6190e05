//! `apply --plan` of an undo file: record → verdicts → plan → execute → report.

use std::path::Path;

use super::apply::{carry_out, check_permissions, style};
use crate::cli::{Apply, GlobalFlags};
use crate::error::{Error, Exit};
use crate::event::{Ending, Event, Operation};
use crate::plan::undo::{UndoRecord, UndoScope};
use crate::report::SetDocument;
use crate::session::command_run::{Agreed, CommandRun};
use crate::session::other_runs::OtherRuns;
use crate::session::prepare::undo::{self, Undo};
use crate::session::prompt::Questions;
use crate::settings::ApplyOptions;

/// Undoes the run whose undo file has this text.
pub(super) async fn run(
    file: &Path,
    text: &str,
    arguments: &Apply,
    shared: &GlobalFlags,
) -> Result<Exit, Error> {
    let record = undo::record(file, text)?;
    let mut options = ApplyOptions::of_undo(&record.run, arguments, shared)?;
    let mut run = CommandRun::begin(
        Operation::Apply,
        SetDocument::named(&options.set.name),
        style(arguments, shared),
        options.writing.dry_run,
        Questions::at_terminal(options.is_interactive, &[]),
    );
    run.reporter.brief_out.clone_from(&arguments.markdown.brief_out);
    run.limit(options.waiting.limit);
    let outcome = undo(&mut run, shared, &mut options, (file, &record)).await;
    run.finish(outcome.map_err(Error::in_reach_of_rbac))
}

async fn undo(
    run: &mut CommandRun,
    shared: &GlobalFlags,
    options: &mut ApplyOptions,
    (file, record): (&Path, &UndoRecord),
) -> Result<Ending, Error> {
    let interrupt = run.interrupt.clone();
    let approve = async {
        let mut consent = options.consent.clone();
        loop {
            // The cluster may have changed while the prompt was open: all is read and judged again.
            let undo = undo::plan(run, shared, options, (file, record)).await?;
            let prepared = &undo.prepared;
            check_permissions(prepared, options).await?;
            let proposal = prepared.proposal(options.confirm);
            let others = prepared.await_other_runs(run).await?;
            if others == OtherRuns::None
                && run.agree(&mut consent, proposal, || prepared.outline()).await? == Agreed::Before
            {
                return Ok::<_, Error>(undo);
            }
        }
    };
    let Undo {
        mut prepared,
        outcomes,
    } = tokio::select! {
        biased;
        () = interrupt.requested() => return Ok(Ending::Interrupted),
        approved = approve => approved?,
    };
    for outcome in outcomes {
        run.reporter.event(Event::Object(outcome));
    }
    let ending = carry_out(run, &mut prepared, options).await?;
    Ok(match (ending, prepared.undoes) {
        (Ending::Done, Some(UndoScope::Partial)) => Ending::Incomplete,
        (ending, _) => ending,
    })
}
