//! What can happen in a history, and how often.

use std::collections::BTreeMap;

use super::place::{NAMESPACES, Slot, VARIANTS, Variant};
use crate::support::Random;

/// Which of the two sets.
pub(super) type SetNumber = usize;
/// The objects that a run is given.
pub(super) type Manifests = BTreeMap<Slot, Variant>;

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A run, to its end.
    Apply {
        set: SetNumber,
        manifests: Manifests,
        how: How,
    },
    /// Runs at once, on one set.
    Race {
        set: SetNumber,
        manifests: Vec<Manifests>,
    },
    /// A run that is killed.
    Kill {
        set: SetNumber,
        manifests: Manifests,
        moment: Moment,
    },
    /// Another client creates an object, where it is not there.
    Stranger { slot: Slot, variant: Variant },
    /// Another client writes the set's part-of label on an object, or makes one that has it.
    Label { set: SetNumber, slot: Slot },
    /// Another client says that an object is to be kept, or takes that back.
    Protect { slot: Slot, protection: Protection },
    /// Another client makes an object belong to another one, or takes that back.
    Own { slot: Slot, ownership: Ownership },
    /// A server-side apply in the program's name that knows nothing of sets.
    ServerSideApply { slot: Slot, variant: Variant },
    /// `kubectl apply` as most people know it.
    ClientSideApply { slot: Slot, variant: Variant },
    /// Another client deletes an object.
    Delete { slot: Slot },
    /// Another client adds a field to an object.
    Drift { slot: Slot, value: Variant },
}

/// How a run is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Without flags of interest.
    Plainly,
    /// And once more, which must change nothing.
    Twice,
    /// `--prune=false`
    WithoutPruning,
    /// `--take-ownership`
    TakeOwnership,
    /// `--dry-run=client`
    DryOnClient,
    /// `--dry-run=server`
    DryOnServer,
}

/// When a run is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// When so many writes were carried out.
    Writes(usize),
    /// When so many milliseconds have gone by.
    Milliseconds(u64),
}

/// Whether an annotation keeps an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protection {
    Kept,
    Unkept,
}

/// Whether an object has an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    Owned,
    Free,
}

/// A history of this many steps.
pub(super) fn generate(random: &mut Random, length: usize) -> Vec<Step> {
    let mut recent = Vec::new();
    let mut steps = Vec::new();
    for _ in 0..length {
        let step = step(random, &recent);
        if let Step::Apply { manifests, .. } | Step::Kill { manifests, .. } = &step {
            recent = manifests.keys().copied().collect();
        }
        steps.push(step);
    }
    steps
}

/// `recent` are the objects of the last run, which others are most likely to meddle with.
fn step(random: &mut Random, recent: &[Slot]) -> Step {
    let set = random.below(2);
    match random.below(100) {
        0..42 => Step::Apply {
            set,
            manifests: manifests(random),
            how: how(random),
        },
        42..48 => {
            let first = manifests(random);
            let manifests = match random.below(3) {
                0 => vec![first.clone(), first.clone(), first],
                1 => vec![first, manifests(random)],
                _ => vec![first, manifests(random), manifests(random)],
            };
            Step::Race { set, manifests }
        }
        48..60 => Step::Kill {
            set,
            manifests: manifests(random),
            moment: if random.percent(60) {
                Moment::Writes(random.below(10))
            } else {
                Moment::Milliseconds(random.below(120) as u64)
            },
        },
        60..67 => Step::Stranger {
            slot: slot(random, recent),
            variant: variant(random),
        },
        67..72 => Step::Label {
            set,
            slot: slot(random, recent),
        },
        72..78 => Step::Protect {
            slot: slot(random, recent),
            protection: if random.percent(60) {
                Protection::Kept
            } else {
                Protection::Unkept
            },
        },
        78..83 => Step::Own {
            slot: slot(random, recent),
            ownership: if random.percent(60) {
                Ownership::Owned
            } else {
                Ownership::Free
            },
        },
        83..87 => Step::ServerSideApply {
            slot: slot(random, recent),
            variant: variant(random),
        },
        87..91 => Step::ClientSideApply {
            slot: slot(random, recent),
            variant: variant(random),
        },
        91..95 => Step::Delete {
            slot: slot(random, recent),
        },
        _ => Step::Drift {
            slot: slot(random, recent),
            value: variant(random),
        },
    }
}

fn how(random: &mut Random) -> How {
    match random.below(10) {
        0..5 => How::Plainly,
        5 => How::Twice,
        6 => How::WithoutPruning,
        7 => How::TakeOwnership,
        8 => How::DryOnClient,
        _ => How::DryOnServer,
    }
}

fn slot(random: &mut Random, recent: &[Slot]) -> Slot {
    if !recent.is_empty() && random.percent(70) {
        return *random.pick(recent);
    }
    let slots: Vec<Slot> = Slot::all().collect();
    *random.pick(&slots)
}

fn variant(random: &mut Random) -> Variant {
    u8::try_from(random.below(VARIANTS)).expect("a small number")
}

/// Manifests that leave out whole namespaces, as those of people do, and are empty at times.
fn manifests(random: &mut Random) -> Manifests {
    let visited: Vec<bool> = (0..NAMESPACES).map(|_| random.percent(60)).collect();
    let density = *random.pick(&[10, 20, 40]);
    let mut manifests = Manifests::new();
    for slot in Slot::all() {
        let is_visited = slot.namespace().is_none_or(|namespace| visited[namespace]);
        if is_visited && random.percent(density) {
            manifests.insert(slot, variant(random));
        }
    }
    manifests
}
