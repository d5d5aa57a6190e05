//! The rules about objects: members outside the record, orphans, copied labels and lost labels.

use std::collections::BTreeSet;

use super::finding::{Finding, Rule};
use super::record_findings::present_members;
use super::{ExaminedSet, record_covers};
use crate::cluster::discovery::Discovery;
use crate::model::live::Live;
use crate::model::text::first_names_and_more;
use crate::plan::{ReasonToKeep, describe_label_writers, reason_not_a_member};
use crate::read::found_set::{FoundSet, served_record};

/// The hint of [`Rule::UnrecordedMember`].
const UNRECORDED_MEMBER_HINT: &str = "record its namespace with --fix --include-namespaces if you trust the writers of the label; the next apply then prunes it, unless it is in the manifests";

/// Finds members outside the record of a set, members that an apply never prunes, and copies of the label of a set.
pub(super) fn find_unrecorded_members_and_label_copies(
    set: &ExaminedSet,
    discovery: &Discovery,
    appliers: &BTreeSet<String>,
) -> Vec<Finding> {
    let set = &set.found;
    let mut findings = find_unrecorded_members(set, discovery, appliers);
    let parent_uid = Some(&*set.parent_uid);
    let recorded = set.recorded().map(|record| served_record(record, discovery));
    findings.extend(set.members.iter().filter_map(|live| {
        let is_recorded = recorded
            .as_ref()
            .is_some_and(|recorded| record_covers(live, recorded, set));
        if is_recorded && !live.is_copy_with_foreign_owner(parent_uid, appliers) {
            unpruned_member_finding(live, parent_uid, appliers)
        } else {
            copied_label_finding(live, parent_uid, appliers)
        }
    }));
    findings
}

/// Finds members outside the record, which an apply does not find.
fn find_unrecorded_members(
    set: &FoundSet,
    discovery: &Discovery,
    appliers: &BTreeSet<String>,
) -> Vec<Finding> {
    let Some(applyset_record) = set.recorded() else {
        return Vec::new();
    };
    let recorded = served_record(applyset_record, discovery);
    present_members(set, appliers)
        .filter(|live| !record_covers(live, &recorded, set))
        .map(|live| {
            let message = format!(
                "member of {}, outside its record; its label was written by {}",
                set.identity,
                first_names_and_more(&live.part_of_writers)
            );
            Finding::new(Rule::UnrecordedMember, &live.key, message).with_hint(UNRECORDED_MEMBER_HINT)
        })
        .collect()
}

/// Finds members whose set has no parent. `known_set_ids` has the ids of all sets with a parent. `reference` is the
/// set as the command line names it; `None` if the command checks all sets.
pub(super) fn find_orphans(
    objects: &[Live],
    known_set_ids: &BTreeSet<String>,
    appliers: &BTreeSet<String>,
    reference: Option<&str>,
) -> Vec<Finding> {
    objects
        .iter()
        .filter_map(|live| {
            let id = live
                .part_of
                .as_deref()
                .filter(|id| !known_set_ids.contains(*id))?;
            let finding = if has_later_id_format(id) {
                let message = format!("member of the set {id}, whose id has a newer format");
                Finding::new(Rule::LaterFormat, &live.key, message).with_hint("upgrade kubectl-applyset")
            } else {
                copied_label_finding(live, None, appliers)
                    .unwrap_or_else(|| orphan_finding(live, id, reference))
            };
            Some(finding.with_set_id(id))
        })
        .collect()
}

/// Returns whether the id of a set has a later format: it begins with `v`, a number and a dot, which KEP-3659 reserves
/// for labels (in "Versioning"). The ids that this program knows are `applyset-…-v1`.
fn has_later_id_format(id: &str) -> bool {
    id.split_once('.')
        .and_then(|(prefix, _)| prefix.strip_prefix('v'))
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn orphan_finding(live: &Live, id: &str, reference: Option<&str>) -> Finding {
    let message = format!("member of the set {id}, which has no parent");
    let hint = match reference {
        Some(reference) => format!("recreate the parent with `kubectl applyset apply {reference} -f …`"),
        None => {
            "apply its set again under its old name, adopt it with `kubectl applyset adopt SET -n NAMESPACE -f FILE`, or delete it"
                .to_owned()
        }
    };
    Finding::new(Rule::Orphan, &live.key, message).with_hint(hint)
}

/// Returns the finding about an object that the record covers, so that an apply finds it, but never prunes it. An
/// object that was created again from an export is one. Returns `None` if the object is pruned as usual.
fn unpruned_member_finding(
    live: &Live,
    parent_uid: Option<&str>,
    appliers: &BTreeSet<String>,
) -> Option<Finding> {
    let reason = reason_to_keep(live, parent_uid, appliers)?;
    let message = format!("member that is never pruned: {reason}");
    let hint = match live.foreign_owner(parent_uid) {
        Some(_) => "ignore it: it is deleted with its owner",
        None => "apply its manifest, or delete the object if it has none",
    };
    Some(Finding::new(Rule::LabelCopy, &live.key, message).with_hint(hint))
}

/// Returns the finding about an object that only has a copy of the label and that no apply finds; `None` if the object
/// is a member.
fn copied_label_finding(
    live: &Live,
    parent_uid: Option<&str>,
    appliers: &BTreeSet<String>,
) -> Option<Finding> {
    let reason = reason_to_keep(live, parent_uid, appliers)?;
    let message = format!("has the part-of label of a set and is not a member: {reason}");
    Some(Finding::new(Rule::LabelCopy, &live.key, message).with_hint("ignore it: it is never pruned"))
}

fn reason_to_keep(live: &Live, parent_uid: Option<&str>, appliers: &BTreeSet<String>) -> Option<String> {
    Some(match reason_not_a_member(live, parent_uid, appliers)? {
        ReasonToKeep::CopiedLabel { writers } => describe_label_writers(&writers),
        reason => reason.to_string(),
    })
}

/// Returns the finding about an object that was a member and has lost its label.
pub(super) fn lost_member_finding(live: &Live) -> Finding {
    let message = "applied as a member of a set, and its part-of label is gone";
    Finding::new(Rule::LostMember, &live.key, message).with_hint(format!(
        "put the manifest of {} in FILE and run `kubectl applyset adopt SET -n NAMESPACE -f FILE`, or delete the object",
        live.key.shell_arguments()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::ownership::APPLIERS;
    use crate::model::live::OwnerReference;
    use crate::plan::fixtures::live;
    use crate::verify::Severity;

    fn rules(objects: &[Live], set_ids: &[&str]) -> Vec<(Rule, Severity)> {
        let known_set_ids = set_ids.iter().map(|&id| id.to_owned()).collect();
        let appliers = APPLIERS.into_iter().map(str::to_owned).collect();
        find_orphans(objects, &known_set_ids, &appliers, None)
            .iter()
            .map(|finding| (finding.rule, finding.severity))
            .collect()
    }

    /// An object, the ids of all sets, and the expected finding.
    type Case<'a> = (&'a Live, &'a [&'a str], Option<(Rule, Severity)>);

    #[test]
    fn members_of_sets_without_a_parent_are_orphans() {
        let member = live("ConfigMap", Some("shop"), "one");
        let id = member.part_of.clone().expect("an id");
        let labeled = |id: &str| Live {
            part_of: Some(id.to_owned()),
            ..member.clone()
        };
        let owned = Live {
            owners: vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Service".to_owned(),
                name: "web".to_owned(),
                uid: "u".to_owned(),
            }],
            ..member.clone()
        };
        let copied = Live {
            part_of_writers: Vec::new(),
            ..member.clone()
        };
        let known_id = id.as_str();
        let table: [Case<'_>; 8] = [
            (&member, &[known_id], None),
            (&member, &[], Some((Rule::Orphan, Severity::Error))),
            (&member, &["other"], Some((Rule::Orphan, Severity::Error))),
            (
                &labeled("anything"),
                &[known_id],
                Some((Rule::Orphan, Severity::Error)),
            ),
            (
                &labeled("v2.x"),
                &[known_id],
                Some((Rule::LaterFormat, Severity::Error)),
            ),
            // The garbage collector deletes a copy with its owner.
            (&owned, &[], Some((Rule::LabelCopy, Severity::Info))),
            (&copied, &[], Some((Rule::LabelCopy, Severity::Info))),
            (&copied, &[known_id], None),
        ];
        for (index, (object, set_ids, expected)) in table.into_iter().enumerate() {
            let rules = rules(std::slice::from_ref(object), set_ids);
            assert_eq!(rules, expected.into_iter().collect::<Vec<_>>(), "case {index}");
        }
    }
}
