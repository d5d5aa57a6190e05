//! `verify`: read → pure check → report. With `--fix`, each parent that can be repaired is written, and
//! all is read again.

mod examine;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use examine::Looked;

use crate::cli::{GlobalFlags, Verify};
use crate::compare::ownership::member_field_manager;
use crate::error::{Error, ErrorKind, Exit};
use crate::execute::{Interrupt, ParentWriteError, ParentWriting, Repaired};
use crate::model::applyset::ParentIdentity;
use crate::model::text::counted;
use crate::model::write_settings::{DryRun, WebhookPatience, WriteSettings};
use crate::plan::{Consent, Proposal, Refusal};
use crate::read::{Cluster, Wanted};
use crate::report::{
    self, ContextAndServer, Question, RequestsAndSeconds, Style, VerifyDocument, WrittenBefore,
};
use crate::session::connect;
use crate::session::prompt::{self, Agreed, Questions, answer};
use crate::session::signals::{listen, unless_stopped};
use crate::settings::{self, VerifyOptions};
use crate::verify::{Finding, FixStatus, Repair};

/// Limit of rounds of repair if another run changes the parents at the same time.
const ROUNDS: usize = 3;

/// Runs `verify`.
pub(super) async fn run(arguments: &Verify, shared: &GlobalFlags) -> Result<Exit, Error> {
    let style = settings::style(shared);
    let options = VerifyOptions::new(arguments)?;
    let mut verifying = Verifying {
        options: &options,
        shared,
        style,
        started: Instant::now(),
        looked: Looked::default(),
        failures: Vec::new(),
        cluster: None,
        interrupt: listen(),
        questions: Questions::at_terminal(options.is_interactive, &[]),
        consent: options.consent.clone(),
        place: ContextAndServer::default(),
        paused: Duration::ZERO,
        are_printed: false,
    };
    let outcome = verifying.verify().await;
    if let Err(error) = &outcome
        && error.exit() == Exit::Usage
    {
        return outcome.map(|()| Exit::Done);
    }
    let has_looked = !verifying.looked.listings.is_empty();
    let document = verifying.document(outcome.as_ref().err());
    let place = &verifying.place;
    for warning in &document.warnings {
        report::warning(warning, style);
    }
    let print = || {
        report::listing(&document, place, style);
        document.print_summary(style);
    };
    match outcome.as_ref().err().map(|error| error.kind) {
        Some(ErrorKind::NotConfirmed) if verifying.are_printed => document.print_summary(style),
        None | Some(ErrorKind::Refused | ErrorKind::NotConfirmed) => print(),
        Some(ErrorKind::Interrupted) if has_looked => print(),
        // Nothing was read, so there are no findings to count.
        Some(_) => report::document(&document, place, style),
    }
    outcome?;
    Ok(if document.has_something_left() {
        Exit::Failed
    } else {
        Exit::Done
    })
}

/// One run, and its results so far.
struct Verifying<'a> {
    options: &'a VerifyOptions,
    shared: &'a GlobalFlags,
    style: Style,
    started: Instant,
    looked: Looked,
    /// Writes that failed.
    failures: Vec<String>,
    cluster: Option<Cluster>,
    /// The user's request to stop.
    interrupt: Interrupt,
    questions: Questions,
    consent: Consent,
    place: ContextAndServer,
    /// The time until the answers.
    paused: Duration,
    /// True if the lines of the findings are printed.
    are_printed: bool,
}

impl Verifying<'_> {
    async fn verify(&mut self) -> Result<(), Error> {
        let interrupt = self.interrupt.clone();
        let connection = unless_stopped(&interrupt, connect::connect(self.shared)).await?;
        self.place = connect::context_and_server(&connection);
        let cluster = unless_stopped(
            &interrupt,
            connect::discover(connection, connect::unlimited_waits(self.style), Wanted::Nothing),
        )
        .await?;
        self.cluster = Some(cluster);
        unless_stopped(&interrupt, self.look()).await?;
        for text in &self.looked.runs_under_way {
            report::note(text, self.style);
        }
        if !self.options.fix {
            return Ok(());
        }
        unless_stopped(&interrupt, self.agree(WrittenBefore::Nothing)).await?;
        if self.looked.repairs.is_empty() {
            return Ok(());
        }
        let found = self.looked.findings.clone();
        let fixed = self.fix(&interrupt).await;
        if fixed
            .as_ref()
            .is_err_and(|error| error.kind == ErrorKind::Interrupted)
        {
            // The next inspection shows what is repaired.
            self.looked.findings = found;
        }
        fixed
    }

    /// Inspects the cluster.
    async fn look(&mut self) -> Result<(), Error> {
        if let Some(cluster) = &mut self.cluster {
            self.looked = examine::look(cluster, self.options, self.shared, self.style).await?;
        }
        Ok(())
    }

    /// Inspects it by a new discovery: another run may have recorded a kind that is newer than the last one.
    async fn look_again(&mut self) -> Result<(), Error> {
        if let Some(cluster) = &mut self.cluster {
            cluster.discover_again().await?;
        }
        self.look().await
    }

    /// Returns once the user agrees to the repairs of an inspection that began after the last answer, or it
    /// found none.
    async fn agree(&mut self, written: WrittenBefore) -> Result<(), Error> {
        while !self.looked.repairs.is_empty() {
            let proposal = proposal(&self.looked.repairs);
            if written == WrittenBefore::Nothing && self.asks_about(&proposal) {
                self.are_printed = report::findings_to_repair(&self.looked.findings, self.style);
            }
            if self.ask(proposal, written).await? == Agreed::WithoutQuestion {
                break;
            }
            // They are printed again, each with its result.
            self.are_printed = false;
            self.look_again().await?;
        }
        Ok(())
    }

    /// Returns whether the user is asked about these repairs.
    fn asks_about(&self, proposal: &Proposal) -> bool {
        self.questions == Questions::Possible && !self.consent.covers(proposal)
    }

    /// Returns whether the user agrees to the repairs.
    async fn ask(&mut self, proposal: Proposal, written: WrittenBefore) -> Result<Agreed, Error> {
        let (place, style) = (&self.place, self.style);
        let mut paused = Duration::ZERO;
        let asking = prompt::agree(
            self.questions,
            &mut self.consent,
            proposal,
            style,
            async |refusals| {
                let asked = Instant::now();
                let is_confirmed = answer(Question {
                    set: None,
                    place: place.clone(),
                    refusals,
                    outline: None,
                    written,
                    device: style.messages,
                    colors: style.colors,
                })
                .await;
                paused = asked.elapsed();
                is_confirmed
            },
        );
        let agreed = asking.await;
        self.paused += paused;
        agreed
    }

    /// Repairs what the user has confirmed, and inspects the cluster again.
    async fn fix(&mut self, interrupt: &Interrupt) -> Result<(), Error> {
        let mut offered = std::mem::take(&mut self.looked.findings);
        let mut repaired = Attempts::default();
        for round in 1..=ROUNDS {
            let ends_runs = self.looked.repairs.iter().any(|repair| !repair.ended.is_empty());
            self.write(&mut repaired, interrupt).await?;
            if ends_runs && matches!(self.consent, Consent::To(_)) {
                // What the records need now could not be shown before.
                self.consent = Consent::Missing;
            }
            unless_stopped(interrupt, self.look_again()).await?;
            if !repaired.failures.is_empty() || round == ROUNDS {
                break;
            }
            match unless_stopped(interrupt, self.agree(WrittenBefore::Confirmed)).await {
                Ok(()) => {}
                Err(error) if matches!(error.kind, ErrorKind::Refused | ErrorKind::NotConfirmed) => break,
                Err(error) => return Err(error),
            }
            if self.looked.repairs.is_empty() {
                break;
            }
            let mut new = self.looked.findings.clone();
            new.retain(|finding| !offered.iter().any(|other| other.is_same(finding)));
            offered.extend(new);
        }
        self.failures = repaired.failures_with(&self.looked.repairs);
        if repaired.ended > 0 {
            let runs = counted(repaired.ended, "run");
            report::note(&format!("{runs} listed as abandoned"), self.style);
        }
        let left = &mut self.looked.findings;
        let repaired: Vec<Finding> = offered
            .into_iter()
            .filter(|finding| finding.fix_status == FixStatus::Offered)
            // A finding that disappeared by itself was not repaired.
            .filter(|finding| finding.set.iter().any(|id| repaired.written.contains(id)))
            .filter(|finding| !left.iter().any(|other| other.is_same(finding)))
            .map(|finding| Finding {
                fix_status: FixStatus::Done,
                ..finding
            })
            .collect();
        left.extend(repaired);
        crate::verify::sort(left);
        Ok(())
    }

    /// Writes the repairs of the last inspection.
    async fn write(&mut self, repaired: &mut Attempts, interrupt: &Interrupt) -> Result<(), Error> {
        let Some(cluster) = &self.cluster else {
            return Ok(());
        };
        repaired.overtaken.clear();
        for repair in std::mem::take(&mut self.looked.repairs) {
            // A user who was asked has seen it.
            let is_shown = matches!(self.consent, Consent::To(_));
            for change in repair.changes.iter().filter(|_| !is_shown) {
                report::note(&format!("{}: {change}", repair.set.parent), self.style);
            }
            if interrupt.is_requested() {
                return Err(Error::interrupted());
            }
            let write = repaired.write(cluster, &repair, self.shared);
            if interrupt.run_until_insisted(write).await.is_none() {
                return Err(Error::interrupted());
            }
        }
        Ok(())
    }

    fn document(&mut self, error: Option<&Error>) -> VerifyDocument {
        let looked = std::mem::take(&mut self.looked);
        let server = self.cluster.as_ref().map(|cluster| &cluster.server);
        let mut warnings = looked.warnings;
        warnings.append(&mut self.failures);
        VerifyDocument::new(
            looked.listings,
            looked.findings,
            looked.unread,
            warnings,
            error,
            RequestsAndSeconds {
                requests: server.map_or(0, crate::cluster::apiserver::ApiServer::requests),
                seconds: self.started.elapsed().saturating_sub(self.paused).as_secs_f64(),
            },
        )
    }
}

/// Returns what the user has to agree to.
fn proposal(repairs: &[Repair]) -> Proposal {
    let refusals = repairs.iter().map(|repair| Refusal::RepairsParent {
        parent: repair.set.parent.clone(),
        changes: repair.changes.clone(),
    });
    Proposal::new(refusals.collect(), [])
}

/// The results of writing parents.
#[derive(Default)]
struct Attempts {
    /// The ids of the sets whose parents were written.
    written: BTreeSet<String>,
    /// Those that another run changed after they were read, in this round.
    overtaken: Vec<ParentIdentity>,
    failures: Vec<String>,
    /// Number of runs that were ended.
    ended: usize,
}

impl Attempts {
    /// Writes one parent; its failure does not stop the others.
    async fn write(&mut self, cluster: &Cluster, repair: &Repair, shared: &GlobalFlags) {
        match write(cluster, repair, shared).await {
            Ok(Repaired::Written) => {
                self.written.insert(repair.set.id.to_string());
                self.ended += repair.ended.len();
            }
            // The next round reads it again.
            Ok(Repaired::Overtaken) => self.overtaken.push(repair.set.parent.clone()),
            Err(error) => self.failures.push(format!("{}: {error}", repair.set.parent)),
        }
    }

    /// Returns what failed in the end, if this is `left` to be repaired.
    fn failures_with(&self, left: &[Repair]) -> Vec<String> {
        let overtaken = self.overtaken.iter();
        let unrepaired = overtaken.filter(|parent| left.iter().any(|repair| repair.set.parent == **parent));
        let messages = unrepaired.map(|parent| {
            format!("{parent}: not repaired: it changed during the run; run the same command again")
        });
        self.failures.iter().cloned().chain(messages).collect()
    }
}

async fn write(
    cluster: &Cluster,
    repair: &Repair,
    shared: &GlobalFlags,
) -> Result<Repaired, ParentWriteError> {
    let writing = WriteSettings {
        webhook_patience: WebhookPatience::NONE,
        ..WriteSettings::without_manifests(
            member_field_manager(&repair.set.tooling).to_owned(),
            DryRun::None,
            usize::from(shared.concurrency),
        )
    };
    let parent = ParentWriting {
        server: &cluster.server,
        set: &repair.set,
        resource: &repair.resource,
        accepted: &[],
        manifest: None,
        writing: &writing,
        interrupt: &Interrupt::default(),
    };
    parent.repair(repair, &mut |_| {}).await
}
