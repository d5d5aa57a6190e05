//! The status of a set in `list` and `view`, by the same rules as the findings about its record.

use std::collections::BTreeSet;

use super::finding_rules::Rule;
use super::record_findings::findings;
use crate::cluster::discovery::Discovery;
use crate::compare::ownership::APPLIERS;
use crate::model::applyset::parent::Reading;
use crate::read::found_set::{FoundSet, RecordStatus};

impl FoundSet {
    /// Returns the status of the set.
    pub fn status(&self, discovery: &Discovery) -> RecordStatus {
        match &self.reading {
            Reading::Parent(_) => {}
            Reading::Unfinished(_) => return RecordStatus::Unfinished,
            Reading::NoRecord | Reading::Faulty(_) => return RecordStatus::Invalid,
        }
        let findings = findings(self, discovery, &appliers());
        let statuses: Vec<RecordStatus> = findings
            .iter()
            .map(|finding| match finding.rule {
                // The next run narrows the record.
                Rule::RecordTooWide | Rule::UnservedKind => RecordStatus::Unfinished,
                Rule::UnreadPlace | Rule::UnknowableKind => RecordStatus::Unknown,
                _ => RecordStatus::Invalid,
            })
            .collect();
        let worst_first = [
            RecordStatus::Invalid,
            RecordStatus::Unknown,
            RecordStatus::Unfinished,
        ];
        let worst = worst_first.into_iter().find(|status| statuses.contains(status));
        worst.unwrap_or(RecordStatus::Consistent)
    }

    /// Returns the messages that speak against the record, without collections that could not be read
    /// and faults of the record: these are reported elsewhere.
    pub fn doubts(&self, discovery: &Discovery) -> Vec<String> {
        findings(self, discovery, &appliers())
            .into_iter()
            .filter(|finding| !matches!(finding.rule, Rule::RecordTooWide | Rule::UnreadPlace))
            .map(|finding| finding.message)
            .collect()
    }
}

/// Lists the messages that speak against the records of these sets, each behind its set.
pub fn doubts(sets: &[FoundSet], discovery: &Discovery) -> Vec<String> {
    let mut lines = Vec::new();
    for set in sets {
        let doubts = set.doubts(discovery).into_iter();
        lines.extend(doubts.map(|doubt| format!("{}: {doubt}", set.identity)));
    }
    lines
}

fn appliers() -> BTreeSet<String> {
    APPLIERS.into_iter().map(str::to_owned).collect()
}
