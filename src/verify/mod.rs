//! `verify`: inconsistencies of sets, and the repairs that are safe.
//!
//! Pure: what was read goes in, findings and repairs come out. The files `*_findings.rs` hold the
//! rules about the parent, its record and the members. A repair offers to fix the findings that the
//! same rules no longer report for the repaired set.

mod examined;
mod finding;
mod lenient_record;
mod member_findings;
mod parent_findings;
mod record_findings;
mod repair;

#[cfg(test)]
mod fixtures;

use std::collections::BTreeSet;

use examined::is_within;
pub use examined::{Examined, Extent, NewNamespaces, RunsUnderWay, Surroundings};
pub use finding::{Finding, FixStatus, Rule, Severity};
pub use record_findings::doubts;
pub use repair::{Removal, Repair};

pub use crate::read::ParentKind;

use crate::model::applyset::Tooling;
use crate::model::applyset::parent::Reading;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::text::{counted, listed};

/// Findings to report, and the repairs that `--fix` would write.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// Findings, the worst first.
    pub findings: Vec<Finding>,
    /// Repairs, one for each parent that would be written.
    pub repairs: Vec<Repair>,
}

/// Finds the inconsistencies of the sets.
pub fn check(sets: &[Examined], surroundings: Surroundings<'_>) -> Verdict {
    let mut verdict = Verdict::default();
    for set in sets {
        let appliers = appliers(set, surroundings);
        let surroundings = Surroundings {
            appliers: &appliers,
            ..surroundings
        };
        let mut findings = judge(set, surroundings);
        match repair::repair(set, surroundings) {
            Ok(Some(repair)) => {
                let repaired = judge(&repair.apply_to(set), surroundings);
                let is_offered = offer(&mut findings, &repaired) || !repair.ended.is_empty();
                verdict.repairs.extend(is_offered.then_some(repair));
            }
            Ok(None) => {}
            Err(reason) => {
                for finding in findings.iter_mut().filter(|finding| finding.rule.is_repairable()) {
                    finding.hint = format!("{}; --fix cannot repair it: {reason}", finding.hint);
                }
            }
        }
        verdict.findings.extend(findings);
    }
    sort(&mut verdict.findings);
    verdict
}

/// Finds members of sets that have no parent among `known`. `reference` is the command line's name
/// of the set, if known.
pub fn check_orphans(
    objects: &[Live],
    known: &BTreeSet<String>,
    appliers: &BTreeSet<String>,
    reference: Option<&str>,
) -> Vec<Finding> {
    let mut findings = member_findings::orphans(objects, known, appliers, reference);
    sort(&mut findings);
    findings
}

/// Reports the lost members that the record of one of this program's `sets` covers. What the record of one of the
/// `others` covers as well may be theirs, so it counts only against the sets whose parents are in its namespace, and
/// against those that keep it recorded.
pub fn check_lost(sets: &[Examined], others: &[Examined], surroundings: Surroundings<'_>) -> Vec<Finding> {
    let Surroundings { discovery, lost, .. } = surroundings;
    let mut findings = Vec::new();
    for live in lost {
        let is_shared = others.iter().any(|set| set.may_hold(live, discovery));
        let holders: Vec<&Examined> = sets
            .iter()
            .filter(|set| set.may_hold(live, discovery))
            .filter(|set| !is_shared || live.has_lost_label() || set.is_home_of(live))
            .collect();
        let finding = member_findings::finding_of_lost(live);
        findings.extend(match holders[..] {
            [] => None,
            [one] => Some(finding.with_set_id(one.found.id.as_str())),
            [..] => Some(finding),
        });
    }
    sort(&mut findings);
    findings
}

/// Reports the resources that could not be listed, if any.
pub fn check_extent(unread: &BTreeSet<String>, object: Option<&ObjectKey>) -> Option<Finding> {
    if unread.is_empty() {
        return None;
    }
    Some(Finding {
        rule: Rule::IncompleteLook,
        severity: Severity::Info,
        object: object.cloned(),
        set: None,
        message: format!(
            "cannot list {} in the whole cluster: {}",
            counted(unread.len(), "resource"),
            listed(unread)
        ),
        hint: "verify as a user who can list everything; until then, --fix removes only kinds that no longer exist from records"
            .to_owned(),
        fix_status: FixStatus::ByHand,
    })
}

/// Sorts by severity, the worst first, then by object.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| {
        let object = finding.object.as_ref();
        (
            finding.severity,
            object.map(|key| (key.namespace.clone(), key.group_kind.clone(), key.name.clone())),
            finding.rule,
        )
    });
}

/// Applies all rules to one set.
fn judge(set: &Examined, surroundings: Surroundings<'_>) -> Vec<Finding> {
    let Surroundings {
        discovery, appliers, ..
    } = surroundings;
    let mut findings = parent_findings::findings(set);
    if set.kind == ParentKind::Forbidden {
        // The object carries a copy of a parent's label, and has no set.
        return findings;
    }
    findings.extend(record_findings::findings(&set.found, discovery, appliers));
    findings.extend(member_findings::findings(set, discovery, appliers));
    let id = set.found.id.as_str();
    findings
        .into_iter()
        .map(|finding| finding.with_set_id(id))
        .collect()
}

/// Marks the findings that `repaired` no longer has as offered, and returns whether there are any.
fn offer(findings: &mut [Finding], repaired: &[Finding]) -> bool {
    for finding in &mut *findings {
        if !repaired.iter().any(|other| other.is_same(finding)) {
            finding.fix_status = FixStatus::Offered;
            finding.hint.clear();
        }
    }
    findings
        .iter()
        .any(|finding| finding.fix_status == FixStatus::Offered)
}

/// Returns the appliers of a set. For a set of another tool than kubectl and this program, these
/// include the tool and all field managers that labeled the members within the record.
fn appliers(set: &Examined, surroundings: Surroundings<'_>) -> BTreeSet<String> {
    let mut appliers = surroundings.appliers.clone();
    let Reading::Parent(recorded) = &set.parent.object.reading else {
        return appliers;
    };
    let name = &recorded.tooling.name;
    if appliers.contains(name) || recorded.tooling.is_same_program(&Tooling::this_program()) {
        return appliers;
    }
    let served = record_findings::served_record(recorded, surroundings.discovery);
    appliers.insert(name.clone());
    for live in set.found.members.iter().filter(|live| live.owners.is_empty()) {
        if is_within(live, &served, &set.found) {
            appliers.extend(live.part_of_writers.iter().cloned());
        }
    }
    appliers
}

/// The object as kubectl's arguments name it: `secret/web -n shop`.
fn kubectl_name(key: &ObjectKey) -> String {
    let name = key.object_name();
    match &key.namespace {
        Some(namespace) => format!("{name} -n {namespace}"),
        None => name,
    }
}
