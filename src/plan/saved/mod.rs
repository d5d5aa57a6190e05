//! Plans that are saved in a file, reviewed, and applied later: exactly
//! as saved, or not at all.
//!
//! A saved plan contains the manifests, the policy, and the state of the cluster when the plan was made: `fields` has
//! them. `file_with_digest` writes it to a file with a digest, which shows damage and edits. `secrets` keeps values of
//! Secrets out of the file. A run that applies the saved plan makes a new plan first, and `drift` compares both: any
//! difference ends the run.

mod drift;
mod fields;
mod file_with_digest;
mod secrets;

use std::collections::BTreeMap;

pub use super::preconditions::{Salt, Seen};
pub use drift::{
    CurrentState, find_drift, find_other_cluster, objects_to_read, pointer_left_to_autoscaler,
    stale_plan_error,
};
pub use fields::{
    Intent, NamespaceUids, SavedCluster, SavedDetachment, SavedIgnore, SavedManifest, SavedObject,
    SavedParent, SavedPlan, SavedSet, SavedSource,
};
pub use file_with_digest::{read, remove_existing_plan, write};
pub use secrets::{
    fill_in_secret_values_for_comparison, restore_manifests_with_secrets, would_lose_secret_values,
};

use crate::manifest::desired::Desired;
use crate::model::identity::ObjectKey;
use crate::plan::Plan;

const MAKE_A_NEW_PLAN: &str = "make a new plan with `kubectl applyset diff SET -f … --out FILE`";

/// Returns the objects of a plan whose owner references are removed, as they are saved.
pub fn saved_detachments(plan: &Plan) -> Vec<SavedDetachment> {
    let detachments = plan.dependents.detachments.iter();
    let saved = detachments.map(|detachment| SavedDetachment {
        key: detachment.dependent.key.clone(),
        uid: detachment.dependent.uid.clone(),
        owners: detachment.owners.clone(),
    });
    saved.collect()
}

/// Returns the intent for each object of a plan, with the UID of an object that the plan does not write. The UID is
/// `None` for an object that the plan writes: it is read again, with its content, to be compared.
pub fn list_intents_and_unwritten_uids(
    plan: &Plan,
    desired: &Desired,
) -> BTreeMap<ObjectKey, (Intent, Option<String>)> {
    let mut intents = BTreeMap::new();
    for apply in plan.all_applies() {
        intents.insert(desired.members[apply.index].key.clone(), (Intent::Apply, None));
    }
    for unchanged in &plan.unchanged {
        let key = desired.members[unchanged.index].key.clone();
        intents.insert(key, (Intent::LeaveAlone, Some(unchanged.uid.clone())));
    }
    for live in plan.all_prunes() {
        intents.insert(live.key.clone(), (Intent::Prune, None));
    }
    for skip in &plan.skips {
        let intent = Intent::Skip(skip.reason.to_string());
        intents.insert(skip.live.key.clone(), (intent, Some(skip.live.uid.clone())));
    }
    intents
}

#[cfg(test)]
mod tests;
