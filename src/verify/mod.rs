//! `verify`: finds inconsistencies of sets, and plans the repairs that are safe.
//!
//! Nothing here sends requests: the caller passes what it has read, and writes the repairs. A rule has its name and its
//! severity in `finding`, and its check in the file `*_findings.rs` of its subject: the parent, its record or the
//! members. A repair offers to fix the findings that the same rules no longer report for the repaired set.

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

use examined::record_covers;
pub use examined::{CheckContext, ExaminedSet, Extent, NewNamespaces, RunsUnderWay};
pub use finding::{Finding, FixStatus, Rule, Severity};
pub use record_findings::describe_record_inconsistencies_of_sets;
pub use repair::{Removal, Repair};

pub use crate::read::ParentEligibility;

use crate::model::applyset::Tooling;
use crate::model::applyset::parent::Reading;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::text::{counted, first_names_and_more};
use crate::read::found_set::served_record;

/// Findings to report, and the repairs that `--fix` would write.
#[derive(Debug, Clone, Default)]
pub struct FindingsAndRepairs {
    /// Findings, the worst first.
    pub findings: Vec<Finding>,
    /// The repairs, one for each parent that would be written.
    pub repairs: Vec<Repair>,
}

/// Finds the inconsistencies of the sets.
pub fn check(sets: &[ExaminedSet], context: CheckContext<'_>) -> FindingsAndRepairs {
    let mut result = FindingsAndRepairs::default();
    for set in sets {
        let appliers = find_appliers(set, context);
        let context = CheckContext {
            appliers: &appliers,
            ..context
        };
        let mut findings = apply_rules(set, context);
        match repair::plan_repair(set, context) {
            Ok(Some(repair)) => {
                let remaining = apply_rules(&repair.repaired_set(set), context);
                let fixes_finding = offer_fixed_findings(&mut findings, &remaining);
                // A repair that changes the parent without fixing a finding is not offered, unless it ends runs.
                if fixes_finding || !repair.ended.is_empty() {
                    result.repairs.push(repair);
                }
            }
            Ok(None) => {}
            Err(reason) => {
                for finding in findings.iter_mut().filter(|finding| finding.rule.is_repairable()) {
                    finding.hint = format!("{}; --fix cannot repair it: {reason}", finding.hint);
                }
            }
        }
        result.findings.extend(findings);
    }
    sort(&mut result.findings);
    result
}

/// Finds members of sets that have no parent. `known_set_ids` has the ids of all sets with a parent. `reference` is
/// the set as the command line names it; `None` if the command checks all sets.
pub fn check_orphans(
    objects: &[Live],
    known_set_ids: &BTreeSet<String>,
    appliers: &BTreeSet<String>,
    reference: Option<&str>,
) -> Vec<Finding> {
    let mut findings = member_findings::find_orphans(objects, known_set_ids, appliers, reference);
    sort(&mut findings);
    findings
}

/// Finds the lost members that the record of one of this program's `sets` covers.
///
/// If the record of one of the `others` covers the object too, the object may have been a member of that set instead.
/// Then it is reported only for a set of `sets` whose parent is in the object's namespace, or if the object itself
/// shows that it has lost its label. If several of `sets` may have lost the object, the finding does not name one.
pub fn lost_member_findings(
    sets: &[ExaminedSet],
    others: &[ExaminedSet],
    context: CheckContext<'_>,
) -> Vec<Finding> {
    let CheckContext { discovery, lost, .. } = context;
    let mut findings = Vec::new();
    for live in lost {
        let is_shared = others.iter().any(|set| set.may_have_lost(live, discovery));
        let former_sets: Vec<&ExaminedSet> = sets
            .iter()
            .filter(|set| set.may_have_lost(live, discovery))
            .filter(|set| !is_shared || live.has_lost_part_of_label() || set.shares_namespace_with(live))
            .collect();
        let finding = member_findings::lost_member_finding(live);
        findings.extend(match former_sets[..] {
            [] => None,
            [one] => Some(finding.with_set_id(one.found.id.as_str())),
            [..] => Some(finding),
        });
    }
    sort(&mut findings);
    findings
}

/// Returns the finding about the resources that could not be listed; `None` if all could be. `object` is the parent if
/// the command checks one set.
pub fn unlisted_resources_finding(unread: &BTreeSet<String>, object: Option<&ObjectKey>) -> Option<Finding> {
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
            first_names_and_more(unread)
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
fn apply_rules(set: &ExaminedSet, context: CheckContext<'_>) -> Vec<Finding> {
    let CheckContext {
        discovery, appliers, ..
    } = context;
    let mut findings = parent_findings::check_parent(set);
    if set.eligibility == ParentEligibility::Forbidden {
        // Such an object has a copy of a parent's label, so the rules about sets do not apply.
        return findings;
    }
    if !matches!(set.found.reading, Reading::Unrecorded(_)) {
        findings.extend(record_findings::check_record(&set.found, discovery, appliers));
        findings.extend(member_findings::find_unrecorded_members_and_label_copies(
            set, discovery, appliers,
        ));
    }
    let id = set.found.id.as_str();
    findings
        .into_iter()
        .map(|finding| finding.with_set_id(id))
        .collect()
}

/// Marks as offered the findings that the repair fixes: they are not among the findings after it (`remaining`). Returns
/// whether there are any.
fn offer_fixed_findings(findings: &mut [Finding], remaining: &[Finding]) -> bool {
    for finding in &mut *findings {
        if !remaining
            .iter()
            .any(|other| other.has_same_rule_object_and_set(finding))
        {
            finding.fix_status = FixStatus::Offered;
            finding.hint.clear();
        }
    }
    findings
        .iter()
        .any(|finding| finding.fix_status == FixStatus::Offered)
}

/// Returns the field managers whose part-of labels make an object a member of the set. For a set of another tool than
/// kubectl and this program, these include the tool itself and all field managers that labeled objects in the record's
/// scope, because the field manager of that tool is not known.
fn find_appliers(set: &ExaminedSet, context: CheckContext<'_>) -> BTreeSet<String> {
    let mut appliers = context.appliers.clone();
    let Reading::Parent(recorded) = &set.parent.object.reading else {
        return appliers;
    };
    let name = &recorded.tooling.name;
    if appliers.contains(name) || recorded.tooling.is_same_program(&Tooling::this_program()) {
        return appliers;
    }
    let record = served_record(recorded, context.discovery);
    appliers.insert(name.clone());
    for live in set.found.members.iter().filter(|live| live.owners.is_empty()) {
        if record_covers(live, &record, &set.found) {
            appliers.extend(live.part_of_writers.iter().cloned());
        }
    }
    appliers
}
