//! `verify`: inspects the sets (read → check) and reports the findings. With `--fix`, each parent that can be repaired
//! is written, and the sets are inspected again.

mod inspection;

use std::collections::BTreeSet;
use std::time::Instant;

use inspection::Inspected;

use crate::cli::{GlobalFlags, Verify};
use crate::compare::ownership::member_field_manager;
use crate::error::{Error, ErrorKind};
use crate::event::{Interrupt, Resume};
use crate::execute::{ParentWriteError, ParentWriting, Written};
use crate::exit::Exit;
use crate::model::text::counted;
use crate::model::write_settings::{DryRun, WebhookPatience, WriteSettings};
use crate::plan::{Consent, Proposal, Refusal};
use crate::read::{Cluster, Wanted};
use crate::report::{self, ContextAndServer, Format, Question, RequestsAndSeconds, Style, VerifyDocument};
use crate::session::connect;
use crate::session::prompt::{self, Agreed, Questions, ask_user};
use crate::session::signals::{listen, run_unless_interrupted};
use crate::settings::{self, VerifyOptions};
use crate::verify::{Finding, FixStatus, Repair};

/// Runs `verify`.
pub(super) async fn run(arguments: &Verify, shared: &GlobalFlags) -> Result<Exit, Error> {
    let style = settings::read_style(shared);
    let options = VerifyOptions::new(arguments)?;
    let mut run = VerifyRun {
        options: &options,
        shared,
        style,
        started: Instant::now(),
        inspected: Inspected::default(),
        failures: Vec::new(),
        cluster: None,
        interrupt: listen(),
        questions: Questions::at_terminal(options.is_interactive, &[]),
        consent: options.consent.clone(),
        place: ContextAndServer::default(),
    };
    let outcome = run.verify().await;
    // A usage error has no document.
    if let Err(error) = &outcome
        && error.exit() == Exit::Usage
    {
        return outcome.map(|()| Exit::Done);
    }
    let has_inspected = !run.inspected.listings.is_empty();
    let document = run.take_document(outcome.as_ref().err());
    let place = &run.place;
    for warning in &document.warnings {
        report::print_warning(warning, style);
    }
    let print = || {
        report::print_listing(&document, place, style);
        document.print_hints_and_summary(style);
    };
    match outcome.as_ref().err().map(|error| error.kind) {
        // The findings were printed above the question.
        Some(ErrorKind::NotConfirmed) if matches!(style.format, Format::Lines | Format::Wide) => {
            document.print_hints_and_summary(style);
        }
        None | Some(ErrorKind::Refused | ErrorKind::NotConfirmed) => print(),
        Some(_) if has_inspected => print(),
        // Nothing was read, so there are no findings to count.
        Some(_) => report::print_if_json_or_yaml(&document, place, style),
    }
    outcome?;
    Ok(if document.has_unfixed_problems() {
        Exit::Failed
    } else {
        Exit::Done
    })
}

/// One run, and its results so far.
struct VerifyRun<'a> {
    options: &'a VerifyOptions,
    shared: &'a GlobalFlags,
    style: Style,
    /// The time at which the run began, moved by the time that the user took for answers.
    started: Instant,
    /// The result of the last inspection.
    inspected: Inspected,
    /// A message for each write that failed.
    failures: Vec<String>,
    cluster: Option<Cluster>,
    /// The user's request to stop.
    interrupt: Interrupt,
    questions: Questions,
    consent: Consent,
    place: ContextAndServer,
}

impl VerifyRun<'_> {
    /// Inspects the cluster, and with `--fix` asks the user and repairs.
    async fn verify(&mut self) -> Result<(), Error> {
        let interrupt = self.interrupt.clone();
        run_unless_interrupted(&interrupt, self.inspect_and_agree()).await?;
        if !self.options.fix || self.inspected.repairs.is_empty() {
            return Ok(());
        }
        let found = self.inspected.findings.clone();
        let fixed = self.repair_and_inspect(&interrupt).await;
        if fixed.is_err() {
            // `fix` has taken the findings. Without a further inspection, it is unknown which of them are repaired, so
            // all are reported.
            self.inspected.findings = found;
        }
        fixed
    }

    /// Connects and inspects the cluster. With `--fix`, returns once the user has agreed to the repairs.
    async fn inspect_and_agree(&mut self) -> Result<(), Error> {
        let connection = connect::connect(self.shared).await?;
        self.place = connect::context_and_server(&connection);
        let waits = connect::unlimited_kind_waits(self.style);
        self.cluster = Some(connect::discover(connection, waits, Wanted::Nothing).await?);
        self.inspect().await?;
        if self.options.fix {
            self.ensure_agreement_to_repairs().await?;
        }
        Ok(())
    }

    /// Inspects the cluster.
    async fn inspect(&mut self) -> Result<(), Error> {
        if let Some(cluster) = &mut self.cluster {
            self.inspected = inspection::inspect(cluster, self.options, self.shared, self.style).await?;
        }
        Ok(())
    }

    /// Inspects the cluster with a new discovery: since the last discovery, another run may have recorded a kind that
    /// was defined after it.
    async fn discover_and_inspect_again(&mut self) -> Result<(), Error> {
        if let Some(cluster) = &mut self.cluster {
            cluster.discover_again().await?;
        }
        self.inspect().await
    }

    /// Returns once the user has agreed to the repairs, or the last inspection has found none.
    ///
    /// While a question is open, the cluster may change. After each answer, the cluster is therefore inspected again.
    /// If the repairs are still covered by the answer, this returns, and otherwise it asks again.
    async fn ensure_agreement_to_repairs(&mut self) -> Result<(), Error> {
        while !self.inspected.repairs.is_empty() {
            let style = self.style;
            let proposal = build_proposal(&self.inspected.repairs);
            let agreed = prompt::ensure_agreement(
                self.questions,
                &mut self.consent,
                proposal,
                style,
                async |refusals| {
                    report::print_findings_in_line_formats(&self.inspected.findings, style);
                    let asked = Instant::now();
                    let is_confirmed = ask_user(Question {
                        set: None,
                        place: self.place.clone(),
                        refusals,
                        outline: None,
                        device: style.messages,
                        colors: style.colors,
                    })
                    .await;
                    self.started += asked.elapsed();
                    is_confirmed
                },
            )
            .await?;
            if agreed == Agreed::WithoutQuestion {
                break;
            }
            self.discover_and_inspect_again().await?;
        }
        Ok(())
    }

    /// Repairs what the user has confirmed, and inspects the cluster again. Marks the findings that are gone after the
    /// repairs as repaired. What can be repaired only now stays offered: only once killed runs are ended is it known to
    /// what the records can be narrowed.
    async fn repair_and_inspect(&mut self, interrupt: &Interrupt) -> Result<(), Error> {
        let offered = std::mem::take(&mut self.inspected.findings);
        let mut results = RepairResults::default();
        self.write_repairs(&mut results, interrupt).await?;
        self.failures = std::mem::take(&mut results.failures);
        run_unless_interrupted(interrupt, self.discover_and_inspect_again()).await?;
        if results.ended_runs > 0 {
            let runs = counted(results.ended_runs, "run");
            report::print_note(&format!("{runs} listed as abandoned"), self.style);
        }
        let remaining = &mut self.inspected.findings;
        let repaired: Vec<Finding> = offered
            .into_iter()
            .filter(|finding| finding.fix_status == FixStatus::Offered)
            // If this run has not written the parent, another client has removed the cause of the finding.
            .filter(|finding| finding.set.iter().any(|id| results.written.contains(id)))
            .filter(|finding| {
                !remaining
                    .iter()
                    .any(|other| other.has_same_rule_object_and_set(finding))
            })
            .map(|finding| Finding {
                fix_status: FixStatus::Done,
                ..finding
            })
            .collect();
        remaining.extend(repaired);
        crate::verify::sort(remaining);
        Ok(())
    }

    /// Writes the repairs of the last inspection.
    async fn write_repairs(
        &mut self,
        results: &mut RepairResults,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        let Some(cluster) = &self.cluster else {
            return Ok(());
        };
        for repair in std::mem::take(&mut self.inspected.repairs) {
            // The question has shown the changes already.
            let is_shown = matches!(self.consent, Consent::To(_));
            for change in repair.changes.iter().filter(|_| !is_shown) {
                report::print_note(&format!("{}: {change}", repair.set.parent), self.style);
            }
            let write = results.write_parent_or_keep_failure(cluster, &repair, self.shared);
            if interrupt.is_requested() || interrupt.run_unless_aborted(write).await.is_none() {
                return Err(Error::interrupted().with_hint(Resume::SameCommand.to_string()));
            }
        }
        Ok(())
    }

    /// Takes the results so far as the document of the run.
    fn take_document(&mut self, error: Option<&Error>) -> VerifyDocument {
        let inspected = std::mem::take(&mut self.inspected);
        let server = self.cluster.as_ref().map(|cluster| &cluster.server);
        let mut warnings = inspected.warnings;
        warnings.append(&mut self.failures);
        VerifyDocument::new(
            inspected.listings,
            inspected.findings,
            inspected.unread,
            warnings,
            error,
            RequestsAndSeconds {
                requests: server.map_or(0, crate::cluster::apiserver::ApiServer::request_count),
                seconds: self.started.elapsed().as_secs_f64(),
            },
        )
    }
}

/// Returns what the user has to agree to.
fn build_proposal(repairs: &[Repair]) -> Proposal {
    let refusals = repairs.iter().map(|repair| Refusal::RepairsParent {
        parent: repair.set.parent.clone(),
        changes: repair.changes.clone(),
    });
    Proposal::new(refusals.collect(), [])
}

/// The results of the repairs so far.
#[derive(Default)]
struct RepairResults {
    /// The ids of the sets whose parents were written.
    written: BTreeSet<String>,
    /// A message for each parent that was not written.
    failures: Vec<String>,
    /// The number of runs whose entries were ended.
    ended_runs: usize,
}

impl RepairResults {
    /// Writes one parent. If that fails, the failure is kept, and the other parents can be written.
    async fn write_parent_or_keep_failure(
        &mut self,
        cluster: &Cluster,
        repair: &Repair,
        shared: &GlobalFlags,
    ) {
        match write_parent(cluster, repair, shared).await {
            Ok(Written::Done(_)) => {
                self.written.insert(repair.set.id.to_string());
                self.ended_runs += repair.ended.len();
            }
            Ok(Written::Conflict) => self.failures.push(format!(
                "{}: not repaired: it changed during the run; run the same command again",
                repair.set.parent
            )),
            Err(error) => self.failures.push(format!("{}: {error}", repair.set.parent)),
        }
    }
}

async fn write_parent(
    cluster: &Cluster,
    repair: &Repair,
    shared: &GlobalFlags,
) -> Result<Written, ParentWriteError> {
    let writing = WriteSettings {
        webhook_patience: WebhookPatience::NONE,
        ..WriteSettings::for_commands_without_manifests(
            member_field_manager(&repair.set.tooling).to_owned(),
            DryRun::None,
            usize::from(shared.concurrency),
        )
    };
    let parent = ParentWriting {
        server: &cluster.server,
        set: &repair.set,
        resource: &repair.resource,
        accepted_take_over: &[],
        manifest: None,
        writing: &writing,
        interrupt: &Interrupt::default(),
    };
    parent.repair(repair, &mut |_| {}).await
}
