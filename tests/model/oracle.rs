//! What a run may have done to a cluster, reported from what was there before it. Knows the
//! rules in words of its own, and nothing of the program.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::history::Manifests;
use super::place::Slot;
use crate::support::{GROUP_KINDS, NAMESPACES, PART_OF};

/// Managers whose part-of labels make members.
const APPLIERS: [&str; 3] = ["applyset", "kubectl", "kubectl-client-side-apply"];
/// The annotation by which histories protect objects.
pub(super) const KEEP: (&str, &str) = ("helm.sh/resource-policy", "keep");

/// The cluster at one moment, as far as a history is about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Snapshot {
    pub(super) objects: BTreeMap<Slot, Value>,
    /// The parents of the two sets.
    pub(super) parents: [Option<Value>; 2],
}

/// One set, as the oracle needs to know it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) id: &'a str,
    /// Its place in `Snapshot::parents`; also the number of its parent's namespace.
    pub(super) number: usize,
    /// The names of all namespaces.
    pub(super) names: &'a [String],
}

/// Whether a run deletes what left its manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pruning {
    On,
    Off,
}

pub(super) fn part_of(object: &Value) -> Option<&str> {
    object["metadata"]["labels"][PART_OF].as_str()
}

fn is_labeled_by_an_applier(object: &Value) -> bool {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().any(|entry| {
        let labels = &entry["fieldsV1"]["f:metadata"]["f:labels"];
        let owns = labels.get(format!("f:{PART_OF}")).is_some();
        owns && APPLIERS.iter().any(|applier| entry["manager"] == *applier)
    })
}

impl Subject<'_> {
    fn holds(&self, object: &Value) -> bool {
        part_of(object) == Some(self.id)
    }

    /// Whether a run that does not want the object deletes it.
    pub(super) fn prunes(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let has_owner = metadata["ownerReferences"]
            .as_array()
            .is_some_and(|owners| !owners.is_empty());
        let is_kept = metadata["annotations"][KEEP.0] == KEEP.1;
        self.holds(object) && is_labeled_by_an_applier(object) && !has_owner && !is_kept
    }

    /// Whether another set holds an object of the manifests.
    pub(super) fn overlaps(&self, before: &Snapshot, slot: Slot) -> bool {
        let label = before.objects.get(&slot).and_then(part_of);
        label.is_some_and(|label| label != self.id)
    }

    /// The kinds and namespaces that the parent records.
    fn recorded(&self, snapshot: &Snapshot) -> Option<(BTreeSet<String>, BTreeSet<String>)> {
        let annotations = &snapshot.parents[self.number].as_ref()?["metadata"]["annotations"];
        let list = |key: &str| -> BTreeSet<String> {
            let text = annotations[key].as_str().unwrap_or_default();
            text.split(',')
                .filter(|entry| !entry.is_empty())
                .map(str::to_owned)
                .collect()
        };
        Some((list(GROUP_KINDS), list(NAMESPACES)))
    }

    fn is_at(&self, slot: Slot, kinds: &BTreeSet<String>, namespaces: &BTreeSet<String>) -> bool {
        let is_reached = |number: usize| number == self.number || namespaces.contains(&self.names[number]);
        kinds.contains(&slot.group_kind()) && slot.namespace().is_none_or(is_reached)
    }

    /// Whether a run with these manifests looks where the object is.
    fn looks_at(&self, before: &Snapshot, manifests: &Manifests, slot: Slot) -> bool {
        let (mut kinds, mut namespaces) = self.recorded(before).unwrap_or_default();
        for slot in manifests.keys() {
            kinds.insert(slot.group_kind());
            namespaces.extend(slot.namespace().map(|number| self.names[number].clone()));
        }
        self.is_at(slot, &kinds, &namespaces)
    }

    /// Members that an applier made and that the parent does not record: they would leak.
    pub(super) fn leaks(&self, after: &Snapshot) -> Result<(), String> {
        let (kinds, namespaces) = self.recorded(after).unwrap_or_default();
        for (slot, object) in &after.objects {
            if self.prunes(object) && !self.is_at(*slot, &kinds, &namespaces) {
                return Err(format!(
                    "{slot:?} is a member that set {} does not record",
                    self.number
                ));
            }
        }
        Ok(())
    }

    /// After a run that succeeded, with nothing else running.
    pub(super) fn check_run(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        manifests: &Manifests,
        pruning: Pruning,
    ) -> Result<(), String> {
        for slot in Slot::all() {
            let (was, is) = (before.objects.get(&slot), after.objects.get(&slot));
            match (manifests.get(&slot), was, is) {
                (Some(variant), _, Some(is)) => self.check_member(slot, *variant, was, is)?,
                (Some(_), _, None) => return Err(format!("{slot:?} is wanted, and is not there")),
                (None, Some(was), is) if pruning == Pruning::On && self.prunes(was) => {
                    // What the run could not know of, it leaves: a label that came from elsewhere.
                    if is.is_some() && self.looks_at(before, manifests, slot) {
                        return Err(format!("{slot:?} left the manifests, and is still there"));
                    }
                }
                (None, was, is) if was == is => {}
                (None, was, is) => return Err(changed(slot, was, is)),
            }
        }
        self.check_other(before, after)?;
        self.check_record(before, after, manifests)
    }

    fn check_member(&self, slot: Slot, variant: u8, was: Option<&Value>, is: &Value) -> Result<(), String> {
        if !self.holds(is) {
            return Err(format!("{slot:?} is wanted, and is not a member: {is}"));
        }
        if !slot.shows(is, variant) {
            return Err(format!("{slot:?} is not what the manifest says: {is}"));
        }
        let uid = |object: &Value| object["metadata"]["uid"].clone();
        if was.is_some_and(|was| uid(was) != uid(is)) {
            return Err(format!("{slot:?} was recreated"));
        }
        check_no_stale_keys(slot, variant, is)
    }

    /// The other set belongs to its own runs only.
    pub(super) fn check_other(&self, before: &Snapshot, after: &Snapshot) -> Result<(), String> {
        let other = 1 - self.number;
        if before.parents[other] == after.parents[other] {
            Ok(())
        } else {
            Err(format!(
                "a run of set {} wrote the parent of set {other}",
                self.number
            ))
        }
    }

    fn check_record(&self, before: &Snapshot, after: &Snapshot, manifests: &Manifests) -> Result<(), String> {
        let held = after.objects.iter().filter(|(slot, object)| {
            manifests.contains_key(slot) || (self.holds(object) && self.looks_at(before, manifests, **slot))
        });
        let mut kinds = BTreeSet::new();
        let mut namespaces = BTreeSet::new();
        for (slot, _) in held {
            kinds.insert(slot.group_kind());
            let number = slot.namespace().filter(|number| *number != self.number);
            namespaces.extend(number.map(|number| self.names[number].clone()));
        }
        let expected = Some((kinds, namespaces));
        let recorded = self.recorded(after);
        if recorded == expected {
            Ok(())
        } else {
            Err(format!(
                "set {} records {recorded:?} instead of {expected:?}",
                self.number
            ))
        }
    }

    /// After runs that raced, or one that was killed: what no manifests name is as it
    /// was, but for what the runs may have pruned; nothing leaks.
    pub(super) fn check_between(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        manifests: &[Manifests],
    ) -> Result<(), String> {
        for slot in Slot::all() {
            let (was, is) = (before.objects.get(&slot), after.objects.get(&slot));
            let is_prunable = was.is_some_and(|was| self.prunes(was)) && is.is_none();
            let is_named = manifests.iter().any(|manifests| manifests.contains_key(&slot));
            if was != is && !is_named && !is_prunable {
                return Err(changed(slot, was, is));
            }
        }
        self.check_other(before, after)?;
        self.leaks(after)
    }
}

fn changed(slot: Slot, was: Option<&Value>, is: Option<&Value>) -> String {
    let text = |object: Option<&Value>| object.map_or("nothing".to_owned(), Value::to_string);
    format!(
        "{slot:?} is a bystander, and changed\nfrom {}\nto {}",
        text(was),
        text(is)
    )
}

/// A key that left the manifest leaves the object, unless it is another client's, too.
fn check_no_stale_keys(slot: Slot, variant: u8, is: &Value) -> Result<(), String> {
    let Some(data) = is["data"].as_object() else {
        return Ok(());
    };
    let current = format!("only-{variant}");
    for key in data
        .keys()
        .filter(|key| key.starts_with("only-") && **key != current)
    {
        let entries = is["metadata"]["managedFields"].as_array();
        let is_theirs = |entry: &Value| {
            let owns = entry["fieldsV1"]["f:data"].get(format!("f:{key}")).is_some();
            owns && !APPLIERS.iter().any(|applier| entry["manager"] == *applier)
        };
        if !entries.into_iter().flatten().any(is_theirs) {
            return Err(format!("{slot:?} still has {key}: {is}"));
        }
    }
    Ok(())
}
