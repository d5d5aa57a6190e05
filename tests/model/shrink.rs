//! Makes a history that fails shorter: steps are left out, then objects of manifests, as
//! long as what is left fails too.

use super::history::Step;

/// How many shorter histories are tried at most.
const ATTEMPTS: usize = 150;

/// The shortest history found that fails, and how it fails.
pub(super) fn shrink(
    steps: Vec<Step>,
    failure: String,
    live: impl Fn(&[Step]) -> Result<(), String>,
) -> (Vec<Step>, String) {
    let mut shortest = (steps, failure);
    let mut attempts = 0;
    let mut fails = |candidate: &[Step]| {
        attempts += 1;
        (attempts <= ATTEMPTS).then(|| live(candidate).err()).flatten()
    };
    let mut chunk = shortest.0.len().div_ceil(2);
    while chunk > 0 {
        let mut start = 0;
        while start < shortest.0.len() {
            let end = (start + chunk).min(shortest.0.len());
            let candidate = [&shortest.0[..start], &shortest.0[end..]].concat();
            match fails(&candidate) {
                Some(failure) => shortest = (candidate, failure),
                None => start = end,
            }
        }
        chunk /= 2;
    }
    for index in 0..shortest.0.len() {
        for slot in super::place::Slot::all() {
            let mut candidate = shortest.0.clone();
            if remove(&mut candidate[index], slot)
                && let Some(failure) = fails(&candidate)
            {
                shortest = (candidate, failure);
            }
        }
    }
    shortest
}

/// Whether the step's manifests held the object.
fn remove(step: &mut Step, slot: super::place::Slot) -> bool {
    match step {
        Step::Apply { manifests, .. } | Step::Kill { manifests, .. } => manifests.remove(&slot).is_some(),
        Step::Race { manifests, .. } => {
            let removed = manifests
                .iter_mut()
                .map(|manifests| manifests.remove(&slot).is_some());
            removed.fold(false, |any, removed| any | removed)
        }
        _ => false,
    }
}
