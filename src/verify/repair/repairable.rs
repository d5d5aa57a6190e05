//! Checks that a parent may be repaired: it must certainly be a parent, and of a set of this program.

use super::super::lenient_record::read_tooling;
use super::super::record_findings::present_members;
use super::super::{CheckContext, ExaminedSet, ParentEligibility};
use crate::compare::ownership::{FOREIGN_PARENT_FIELD_MANAGER, PARENT_FIELD_MANAGER};
use crate::model::applyset::Tooling;
use crate::model::applyset::parent::{ParentFault, Reading};
use crate::model::applyset::record::InvalidValue;
use crate::model::live::Presence;
use crate::read::LiveParent;

/// Checks that the parent may be repaired.
///
/// # Errors
///
/// The reason for which it may not be repaired.
pub(super) fn check_repairable(set: &ExaminedSet, context: CheckContext<'_>) -> Result<(), String> {
    let parent = &set.parent;
    let annotations = &parent.object.annotations;
    if parent.object.presence == Presence::Terminating {
        return Err("the parent is being deleted".to_owned());
    }
    match set.eligibility {
        ParentEligibility::Permitted | ParentEligibility::Unknown => {}
        ParentEligibility::Unlabeled | ParentEligibility::Forbidden => {
            return Err("its kind cannot be a parent".to_owned());
        }
    }
    let faults = match &parent.object.reading {
        Reading::Parent(_) => &[][..],
        Reading::Faulty(faults) => faults,
        Reading::Unfinished(_) | Reading::Unrecorded(_) | Reading::NoRecord => {
            return Err("nothing is recorded".to_owned());
        }
    };
    if faults.iter().any(is_later_format) {
        return Err("part of it has a newer format".to_owned());
    }
    match read_tooling(annotations) {
        Some(found) if found.is_same_program(&Tooling::this_program()) => {}
        Some(found) => {
            return Err(format!("the set is managed by {found}"));
        }
        None if is_recorded_by_us_alone(parent) => {}
        None => return Err("the tool that manages the set is unknown".to_owned()),
    }
    let has_lost_its_id = faults
        .iter()
        .any(|fault| matches!(fault, ParentFault::WrongId { .. } | ParentFault::IdMissing));
    if has_lost_its_id && present_members(&set.found, context.appliers).next().is_none() {
        return Err("no member has the id of this parent, so it may be a copy of another one".to_owned());
    }
    Ok(())
}

/// Returns whether field ownership shows that the set is this program's: it has written the parent, and no other tool
/// has applied the parent. Users may have edited it. A set that one tool has taken over from another has the field
/// managers of both, and they do not show which tool came last, so the answer is `false` then.
fn is_recorded_by_us_alone(parent: &LiveParent) -> bool {
    parent.writers.contains(PARENT_FIELD_MANAGER)
        && !parent.writers.contains(FOREIGN_PARENT_FIELD_MANAGER)
        && parent
            .appliers
            .iter()
            .all(|applier| applier == PARENT_FIELD_MANAGER)
}

fn is_later_format(fault: &ParentFault) -> bool {
    matches!(
        fault,
        ParentFault::LaterIdFormat(_)
            | ParentFault::InvalidValue {
                fault: InvalidValue::LaterFormat(_),
                ..
            }
    )
}
