//! Lives through a history: three fresh namespaces, two sets, and one step after another,
//! each held against the oracle.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::history::{How, Manifests, Moment, Ownership, Protection, SetNumber, Step};
use super::oracle::{KEEP, Pruning, Snapshot, Subject, part_of};
use super::place::{NAMESPACES, Slot};
use crate::support::{
    Files, PART_OF, Program, Proxy, Run, Set, cluster, config_map, kubectl_apply, namespace, objects_file,
    with,
};

/// Flags of every run: fields that others own are taken, so that no run fails for them.
const FLAGS: [&str; 1] = ["--force-conflicts"];

/// What a history happens in.
pub(super) struct World {
    names: Vec<String>,
    sets: [Set; 2],
    /// The collections of all objects.
    collections: Vec<String>,
}

impl World {
    /// Lives through all steps, up to the first after which the cluster is not right.
    pub(super) fn live(steps: &[Step]) -> Result<(), String> {
        let run = || {
            let world = Self::new();
            for (number, step) in steps.iter().enumerate() {
                let outcome = world.step(step);
                outcome.map_err(|failure| format!("after step {number}, {step:?}: {failure}"))?;
            }
            Ok(())
        };
        // What the tests' own requests assert is a failure of the history, too.
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(message(&*panic)))
    }

    fn new() -> Self {
        let names: Vec<String> = (0..NAMESPACES).map(|_| namespace("model")).collect();
        for name in &names {
            cluster().create(&config_map(name, "owner", "1"));
        }
        let mut collections: Vec<String> = Slot::all().map(|slot| slot.collection(&names)).collect();
        collections.sort();
        collections.dedup();
        let sets = [Set::secret(&names[0], "web"), Set::config_map(&names[1], "web")];
        Self {
            names,
            sets,
            collections,
        }
    }

    fn step(&self, step: &Step) -> Result<(), String> {
        match step {
            Step::Apply { set, manifests, how } => self.apply(*set, manifests, *how),
            Step::Race { set, manifests } => self.race(*set, manifests),
            Step::Kill {
                set,
                manifests,
                moment,
            } => self.kill(*set, manifests, *moment),
            other => {
                self.disturb(other);
                Ok(())
            }
        }
    }

    fn subject(&self, set: SetNumber) -> Subject<'_> {
        Subject {
            id: &self.sets[set].id,
            number: set,
            names: &self.names,
        }
    }

    fn look(&self) -> Snapshot {
        let lists = cluster().list_all(&self.collections);
        let found: BTreeMap<(&str, String), Value> = self
            .collections
            .iter()
            .zip(lists)
            .flat_map(|(collection, items)| {
                items.into_iter().map(move |item| {
                    let name = item["metadata"]["name"].as_str().expect("a name").to_owned();
                    ((collection.as_str(), name), item)
                })
            })
            .collect();
        let objects = Slot::all().filter_map(|slot| {
            let identity = slot.identity(&self.names);
            let name = identity["metadata"]["name"].as_str().expect("a name").to_owned();
            let collection = slot.collection(&self.names);
            Some((slot, found.get(&(collection.as_str(), name))?.clone()))
        });
        Snapshot {
            objects: objects.collect(),
            parents: self.sets.each_ref().map(Set::live_parent),
        }
    }

    fn objects(&self, manifests: &Manifests) -> Vec<Value> {
        let objects = manifests.iter();
        objects
            .map(|(slot, variant)| slot.object(&self.names, *variant))
            .collect()
    }

    fn apply(&self, set: SetNumber, manifests: &Manifests, how: How) -> Result<(), String> {
        let subject = self.subject(set);
        let before = self.look();
        let overlaps = manifests.keys().any(|slot| subject.overlaps(&before, *slot));
        let is_refused = manifests.is_empty() || (overlaps && how != How::TakeOwnership);
        let flag = match how {
            How::Plainly | How::Twice => None,
            How::WithoutPruning => Some("--prune=false"),
            How::TakeOwnership => Some("--take-ownership"),
            How::DryOnClient => Some("--dry-run=client"),
            How::DryOnServer => Some("--dry-run=server"),
        };
        let run = self.run(set, manifests, flag);
        expect(&run, if is_refused { 3 } else { 0 })?;
        let after = self.look();
        if is_refused || matches!(how, How::DryOnClient | How::DryOnServer) {
            return expect_same(&before, &after);
        }
        let pruning = if how == How::WithoutPruning {
            Pruning::Off
        } else {
            Pruning::On
        };
        subject.check_run(&before, &after, manifests, pruning)?;
        if how == How::Twice {
            expect(&self.run(set, manifests, None), 0)?;
            expect_same(&after, &self.look())?;
        }
        Ok(())
    }

    fn run(&self, set: SetNumber, manifests: &Manifests, flag: Option<&str>) -> Run {
        // Random manifests often hold no member of the set, which is refused; so are empty ones.
        let replaces = (!manifests.is_empty()).then_some("--allow-prune-all");
        let flags: Vec<&str> = FLAGS.into_iter().chain(flag).chain(replaces).collect();
        self.sets[set].apply_with(&self.objects(manifests), &flags)
    }

    /// The manifests without what other sets hold; `None` where nothing is left.
    fn without_overlap(&self, set: SetNumber, before: &Snapshot, manifests: &Manifests) -> Option<Manifests> {
        let mut manifests = manifests.clone();
        manifests.retain(|slot, _| !self.subject(set).overlaps(before, *slot));
        (!manifests.is_empty()).then_some(manifests)
    }

    fn race(&self, set: SetNumber, manifests: &[Manifests]) -> Result<(), String> {
        let before = self.look();
        let disjoint = manifests
            .iter()
            .map(|one| self.without_overlap(set, &before, one));
        let Some(manifests) = disjoint.collect::<Option<Vec<_>>>() else {
            return Ok(());
        };
        let runs: Vec<Run> = thread::scope(|scope| {
            let runs: Vec<_> = manifests
                .iter()
                .map(|manifests| scope.spawn(|| self.run(set, manifests, None)))
                .collect();
            runs.into_iter()
                .map(|run| run.join().expect("no panic"))
                .collect()
        });
        for run in &runs {
            expect(run, 0)?;
        }
        let after = self.look();
        let subject = self.subject(set);
        subject.check_between(&before, &after, &manifests)?;
        // What all of them want, none of them may have deleted.
        for slot in manifests[0].keys() {
            let is_wanted = manifests.iter().all(|manifests| manifests.contains_key(slot));
            let is_held = after.objects.get(slot).and_then(part_of) == Some(subject.id);
            if is_wanted && !is_held {
                return Err(format!("{slot:?} is wanted by all runs, and none holds it"));
            }
        }
        self.apply(set, &manifests[0], How::Twice)
    }

    fn kill(&self, set: SetNumber, manifests: &Manifests, moment: Moment) -> Result<(), String> {
        let before = self.look();
        let Some(manifests) = self.without_overlap(set, &before, manifests) else {
            return Ok(());
        };
        let files = Files::new().with("objects.yaml", &objects_file(&self.objects(&manifests)));
        let command = |program| {
            self.sets[set]
                .command(program, &files)
                .args(FLAGS)
                .args(["--allow-prune-all"])
        };
        match moment {
            Moment::Writes(writes) => {
                let proxy = Proxy::holding_after(writes);
                command(Program::with_kubeconfig(&proxy.kubeconfig())).run_until_held(&proxy);
            }
            Moment::Milliseconds(milliseconds) => {
                command(Program::new()).run_and_kill(Duration::from_millis(milliseconds));
            }
        }
        let after = self.look_until_still();
        self.subject(set).check_between(&before, &after, &[manifests])?;
        if self.sets[set].live_parent().is_some() {
            self.sets[set].abandon_runs();
        }
        Ok(())
    }

    /// The server may still be at work on the last request of a run that was killed.
    fn look_until_still(&self) -> Snapshot {
        let mut last = self.look();
        loop {
            let next = self.look();
            if next == last {
                return next;
            }
            last = next;
        }
    }

    /// Does what others do; nothing where the object is not there.
    fn disturb(&self, step: &Step) {
        let live = |slot: &Slot| {
            let identity = slot.identity(&self.names);
            cluster().live(&identity).map(|live| (identity, live))
        };
        let patch = |slot: &Slot, metadata: Value| {
            if let Some((identity, _)) = live(slot) {
                cluster().patch(&identity, &json!({"metadata": metadata}));
            }
        };
        match step {
            Step::Apply { .. } | Step::Race { .. } | Step::Kill { .. } => unreachable!("a run"),
            Step::Stranger { slot, variant } => {
                if live(slot).is_none() {
                    cluster().create(&slot.object(&self.names, *variant));
                }
            }
            Step::Label { set, slot } => {
                let labels = json!({"labels": {PART_OF: self.sets[*set].id}});
                if live(slot).is_some() {
                    patch(slot, labels);
                } else {
                    let object = slot.object(&self.names, 0);
                    cluster().create(&with(object, &json!({"metadata": labels})));
                }
            }
            Step::Protect { slot, protection } => {
                let value = (*protection == Protection::Kept).then_some(KEEP.1);
                patch(slot, json!({"annotations": {KEEP.0: value}}));
            }
            Step::Own { slot, ownership } => {
                // The garbage collector would delete what is cluster-scoped.
                if let Some(namespace) = slot.namespace() {
                    let owner = (*ownership == Ownership::Owned).then(|| vec![self.owner(namespace)]);
                    patch(slot, json!({"ownerReferences": owner}));
                }
            }
            Step::ServerSideApply { slot, variant } => {
                if live(slot).is_some() {
                    cluster().apply_as("applyset", &slot.object(&self.names, *variant));
                }
            }
            Step::ClientSideApply { slot, variant } => {
                kubectl_apply(&[slot.object(&self.names, *variant)], &[]).expect(0);
            }
            Step::Delete { slot } => {
                if let Some((identity, _)) = live(slot) {
                    cluster().delete(&identity);
                }
            }
            Step::Drift { slot, value } => patch(slot, json!({"labels": {"drift": value.to_string()}})),
        }
    }

    /// A reference to the object that owns others in this namespace.
    fn owner(&self, namespace: usize) -> Value {
        let owner = config_map(&self.names[namespace], "owner", "1");
        let live = cluster().live(&owner).expect("the owner");
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": live["metadata"]["uid"]})
    }
}

fn expect(run: &Run, code: i32) -> Result<(), String> {
    if run.code == code {
        Ok(())
    } else {
        Err(format!(
            "exit code {} instead of {code}\n{}",
            run.code, run.stderr
        ))
    }
}

fn expect_same(before: &Snapshot, after: &Snapshot) -> Result<(), String> {
    for slot in Slot::all() {
        let (was, is) = (before.objects.get(&slot), after.objects.get(&slot));
        if was != is {
            return Err(format!(
                "{slot:?} changed, and nothing may\nfrom {was:?}\nto {is:?}"
            ));
        }
    }
    if before.parents == after.parents {
        Ok(())
    } else {
        Err(format!(
            "a parent changed, and nothing may\nfrom {:?}\nto {:?}",
            before.parents, after.parents
        ))
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic").to_owned()
}
