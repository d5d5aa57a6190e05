//! `verify`: look → pure check → report, and with `--fix` a write for each parent that can
//! be mended, after which all is looked at again.

mod look;

use std::time::Instant;

use look::Looked;

use super::opening::{self, Cluster};
use crate::cli::{Shared, Verify};
use crate::error::{Error, Exit};
use crate::execute::{DryRun, Interrupt, Mended, ParentWriting, Writing};
use crate::options::{self, Fix, VerifyOptions};
use crate::plan::{Confirmation, ParentPolicy, Refusal};
use crate::report::{self, Colors, Cost, Style, VerifyDocument};
use crate::verify::{Finding, Mend, Mending};

/// How often is looked again at what another run has changed while it was mended.
const ROUNDS: usize = 3;

/// Runs `verify`.
pub(super) async fn run(arguments: &Verify, shared: &Shared) -> Result<Exit, Error> {
    let style = options::style(shared);
    let options = VerifyOptions::new(arguments)?;
    let mut verifying = Verifying {
        options: &options,
        shared,
        style,
        started: Instant::now(),
        looked: Looked::default(),
        failures: Vec::new(),
        cluster: None,
    };
    let outcome = verifying.verify().await;
    if let Err(error) = &outcome
        && error.exit() == Exit::Usage
    {
        return outcome.map(|()| Exit::Done);
    }
    let document = verifying.document(outcome.as_ref().err());
    for warning in &document.warnings {
        report::warning(warning, style);
    }
    match &outcome {
        // Nothing was looked at: there are no findings to count.
        Err(error) if !matches!(error, Error::Refused(_)) => report::document(&document, style),
        _ => report::findings(&document, style),
    }
    outcome?;
    Ok(if document.has_something_left() {
        Exit::Failed
    } else {
        Exit::Done
    })
}

/// One run, and what it has come to so far.
struct Verifying<'a> {
    options: &'a VerifyOptions,
    shared: &'a Shared,
    style: Style,
    started: Instant,
    looked: Looked,
    /// What could not be written.
    failures: Vec<String>,
    cluster: Option<Cluster>,
}

impl Verifying<'_> {
    async fn verify(&mut self) -> Result<(), Error> {
        let connection = opening::connect(self.shared).await?;
        let cluster = opening::discover(connection).await?;
        let looked = look::look(&cluster, self.options, self.shared, self.style).await;
        let cluster = self.cluster.insert(cluster);
        self.looked = looked?;
        if self.options.fix == Fix::No || self.looked.mends.is_empty() {
            return Ok(());
        }
        confirm(self.options.fix, &self.looked.mends, self.style.colors).await?;
        let offered = std::mem::take(&mut self.looked.findings);
        for round in 0..ROUNDS {
            let is_shown = round == 0 && self.options.fix == Fix::Asked;
            for mend in std::mem::take(&mut self.looked.mends) {
                for change in mend.changes.iter().filter(|_| !is_shown) {
                    report::note(&format!("{}: {change}", mend.set.parent), self.style);
                }
                let written = write(cluster, &mend, self.shared).await;
                self.failures.extend(written.err());
            }
            self.looked = look::look(cluster, self.options, self.shared, self.style).await?;
            if self.looked.mends.is_empty() || !self.failures.is_empty() {
                break;
            }
        }
        let left = &mut self.looked.findings;
        let is_left = |finding: &Finding| left.iter().any(|other| other.is_same(finding));
        let mended: Vec<Finding> = offered
            .into_iter()
            .filter(|finding| finding.mending == Mending::Offered && !is_left(finding))
            .map(|finding| Finding {
                mending: Mending::Done,
                ..finding
            })
            .collect();
        left.extend(mended);
        crate::verify::sort(left);
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
            Cost {
                requests: server.map_or(0, crate::apiserver::ApiServer::requests),
                seconds: self.started.elapsed().as_secs_f64(),
            },
        )
    }
}

/// Shows what would be written, and asks where there is somebody to ask.
async fn confirm(fix: Fix, mends: &[Mend], colors: Colors) -> Result<(), Error> {
    let refusals: Vec<Refusal> = mends
        .iter()
        .map(|mend| Refusal::MendsParent {
            parent: mend.set.parent.clone(),
            changes: mend.changes.clone(),
        })
        .collect();
    let is_confirmed = match fix {
        Fix::Confirmed => true,
        Fix::No | Fix::Unconfirmed => false,
        Fix::Asked => {
            let shown = refusals.clone();
            let answer = tokio::task::spawn_blocking(move || report::confirm(&shown, colors)).await;
            answer.unwrap_or(false)
        }
    };
    if is_confirmed {
        Ok(())
    } else {
        Err(Error::Refused(refusals))
    }
}

/// Writes one parent; the error is in words, since it stops no other.
async fn write(cluster: &Cluster, mend: &Mend, shared: &Shared) -> Result<(), String> {
    let writing = Writing::without_manifests(
        mend.set.tooling.name.clone(),
        DryRun::None,
        usize::from(shared.concurrency),
    );
    let parent = ParentWriting {
        server: &cluster.server,
        set: &mend.set,
        resource: &mend.resource,
        policy: ParentPolicy {
            take_over: Confirmation::Missing,
        },
        manifest: None,
        writing: &writing,
        interrupt: &Interrupt::default(),
    };
    match parent.mend(mend).await {
        Ok(Mended::Written) => Ok(()),
        Ok(Mended::Overtaken) => Err(format!(
            "{}: somebody else has changed it meanwhile, so it was left as it is; run again",
            mend.set.parent
        )),
        Err(error) => Err(format!("{}: {error}", mend.set.parent)),
    }
}
