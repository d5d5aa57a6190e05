//! The output of `verify`: a document, or a line for each finding.

use std::collections::BTreeSet;

use serde::Serialize;

use super::list::SetListing;
use super::report::RequestsAndSeconds;
use super::{ErrorDocument, Listing};
use crate::error::Error;
use crate::model::identity::ObjectKey;
use crate::model::text::counted;
use crate::model::write_settings::DryRun;
use crate::report::print_unless_quiet;
use crate::report::style::Style;
use crate::report::text_lines::{self, Label};
use crate::verify::{Finding, FixStatus, Severity};

/// The document of `verify`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifyDocument {
    /// The sets that were checked, as in the document of `list`.
    pub sets: Vec<SetListing>,
    findings: Vec<Finding>,
    summary: FindingCounts,
    /// Resources that could not be listed in all namespaces, and API groups that could not be discovered. Their objects
    /// were not checked.
    unread: BTreeSet<String>,
    /// Failed reads and writes.
    pub warnings: Vec<String>,
    error: Option<ErrorDocument>,
    #[serde(flatten)]
    cost: RequestsAndSeconds,
}

/// The number of remaining findings by severity, and of fixed ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct FindingCounts {
    errors: usize,
    warnings: usize,
    infos: usize,
    fixed: usize,
}

impl VerifyDocument {
    /// Creates the document of these findings. `error` is the error that ended the command early.
    pub fn new(
        sets: Vec<SetListing>,
        findings: Vec<Finding>,
        unread: BTreeSet<String>,
        warnings: Vec<String>,
        error: Option<&Error>,
        cost: RequestsAndSeconds,
    ) -> Self {
        let mut summary = FindingCounts::default();
        for finding in &findings {
            let count = match (finding.fix_status, finding.severity) {
                (FixStatus::Done, _) => &mut summary.fixed,
                (_, Severity::Error) => &mut summary.errors,
                (_, Severity::Warning) => &mut summary.warnings,
                (_, Severity::Info) => &mut summary.infos,
            };
            *count += 1;
        }
        Self {
            sets,
            summary,
            findings,
            unread,
            warnings,
            error: error.map(ErrorDocument::from),
            cost,
        }
    }

    /// Returns whether errors or warnings remain that are not fixed.
    pub fn has_unfixed_problems(&self) -> bool {
        self.summary.errors + self.summary.warnings > 0
    }

    /// Prints hints and the summary to standard error.
    pub fn print_hints_and_summary(&self, style: Style) {
        let mut seen = BTreeSet::new();
        for finding in &self.findings {
            if !finding.hint.is_empty() && seen.insert((finding.rule, &finding.hint)) {
                print_unless_quiet(Label::Hint, &format!("{}: {}", finding.rule, finding.hint), style);
            }
        }
        let findings = self.findings.iter();
        let offered = findings
            .filter(|finding| finding.fix_status == FixStatus::Offered)
            .count();
        if offered > 0 {
            print_unless_quiet(
                Label::Hint,
                &format!("repair {offered} of these with --fix"),
                style,
            );
        }
        print_unless_quiet(Label::Plain, &self.summary_line(), style);
    }

    fn summary_line(&self) -> String {
        let FindingCounts {
            errors,
            warnings,
            infos,
            fixed,
        } = self.summary;
        let named = [(errors, "error"), (warnings, "warning"), (infos, "info")].into_iter();
        let mut counts: Vec<String> = named
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| counted(count, word))
            .collect();
        counts.extend((fixed > 0).then(|| format!("{fixed} fixed")));
        if counts.is_empty() {
            counts.push("nothing to report".to_owned());
        }
        let counts = format!("{} in {}", counts.join(", "), counted(self.sets.len(), "set"));
        text_lines::summary_line(&counts, DryRun::None, self.cost)
    }
}

impl Listing for VerifyDocument {
    fn lines(&self, _: Style) -> Vec<String> {
        finding_lines(&self.findings)
    }

    /// Returns the names of the objects with findings, each once.
    fn names(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let objects = self.findings.iter();
        objects
            .filter_map(|finding| finding.object.as_ref())
            .filter(|key| seen.insert(*key))
            .map(ObjectKey::object_name)
            .collect()
    }
}

/// Returns a line for each finding: `error wrong-id secret/web in namespace shop: label … (fixed)`
pub(in crate::report) fn finding_lines(findings: &[Finding]) -> Vec<String> {
    let mut lines = Vec::new();
    for finding in findings {
        let object = finding.object.as_ref();
        lines.push(format!(
            "{} {} {}: {}{}",
            finding.severity,
            finding.rule,
            object.map_or_else(|| "cluster".to_owned(), ToString::to_string),
            finding.message,
            if finding.fix_status == FixStatus::Done {
                " (fixed)"
            } else {
                ""
            }
        ));
    }
    lines
}
