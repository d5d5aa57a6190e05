//! Keeps the record of the parent: wide before members are written, exact when all is
//! done, and never narrower than what any run has written.
//!
//! What is recorded was decided in `plan`; how the parent is written is known to
//! `parent`.

use std::collections::BTreeSet;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::again::read_again;
use super::parent::{Known, ParentWriteError, ParentWriting, Written};
use super::{Execution, Sink};
use crate::event::{Ending, Event};
use crate::model::applyset::parent::{Bookkeeping, Reading, RecordedKinds, annotations};
use crate::model::applyset::{PART_OF_LABEL, Record};
use crate::model::identity::GroupKind;
use crate::model::live::{Live, Presence};
use crate::model::parent_object::ParentObject;
use crate::model::resource::{Resource, Scope};
use crate::plan::{self, Standing};
use crate::read::{self, ListError, Places, Selector};

/// How often a parent that others write at the same time is read and tried again.
const ATTEMPTS: usize = 20;

/// Pauses between looks at what is being deleted: what the server's own controllers hold back
/// goes within them.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(600),
];

/// Told when another run works on the same set.
pub(super) const OVERTAKEN: &str = "another run works on this set; its record stays wide until the next run";

impl ParentWriting<'_> {
    /// Makes the parent, which was `current` when it was last read, record at least the
    /// places of `needed`.
    pub(super) async fn cover(
        &self,
        mut current: Option<ParentObject>,
        needed: &Record,
        sink: &mut Sink<'_>,
    ) -> Result<Known, ParentWriteError> {
        let mut overtaken = false;
        for _ in 0..ATTEMPTS {
            let standing =
                plan::judge(self.set, current.as_ref(), self.policy).map_err(ParentWriteError::Refused)?;
            let target = annotations(&self.set.tooling, &recorded(&standing).union(needed));
            let attempt = match &current {
                Some(parent) if is_up_to_date(parent, &target) => Written::Done(Known {
                    resource_version: parent.resource_version.clone(),
                    annotations: target.clone(),
                    overtaken: false,
                }),
                Some(parent) => self.write_record(&parent.resource_version, &target).await?,
                None => Box::pin(self.create(&target, sink)).await?,
            };
            match attempt {
                Written::Done(known) => return Ok(Known { overtaken, ..known }),
                Written::Overtaken => {
                    let found = self.read().await?;
                    // The very record that was to be written is this run's own, of which the
                    // answer was lost, or that of a run with the same places; and where only
                    // something else of the parent was changed, it is the one that was planned
                    // on. None of them holds places that the plan knows nothing of.
                    let is_foreseen = |found: &ParentObject| {
                        let before = current.as_ref().map(|before| &before.reading);
                        is_up_to_date(found, &target) || before == Some(&found.reading)
                    };
                    overtaken |= !found.as_ref().is_some_and(is_foreseen);
                    current = found;
                }
            }
        }
        Err(ParentWriteError::Contended)
    }

    /// Sees to it that no other run has narrowed the record below `needed`.
    pub(super) async fn stay_wide(
        &self,
        known: &mut Known,
        needed: &Record,
        sink: &mut Sink<'_>,
    ) -> Result<(), ParentWriteError> {
        let current = self.read().await?;
        let has_changed = !current
            .as_ref()
            .is_some_and(|parent| is_up_to_date(parent, &known.annotations));
        let latest = self.cover(current, needed, sink).await?;
        *known = Known {
            overtaken: known.overtaken || has_changed || latest.overtaken,
            ..latest
        };
        Ok(())
    }
}

impl Execution<'_> {
    /// Makes the parent record exactly what the plan says and what is not gone yet, unless
    /// somebody else has written it since; then it only sees to it that nothing of ours is
    /// missing.
    ///
    /// `settled` are the UIDs of the members that this run has applied or left as they are.
    pub(super) async fn narrow(
        &self,
        mut known: Known,
        settled: &BTreeSet<String>,
        sink: &mut Sink<'_>,
    ) -> Result<Ending, ParentWriteError> {
        let parent = self.parent_writing();
        let needed = &self.plan.record_during;
        let exact = annotations(&self.set.tooling, &self.plan.record_after);
        if known.annotations == exact {
            if self.plan.applies() > 0 {
                parent.stay_wide(&mut known, needed, sink).await?;
            }
            return Ok(Ending::Done);
        }
        // Where another run has written the record, there is nothing to look for.
        let lingering = if known.overtaken {
            None
        } else {
            let found = self.look_for_others(settled).await?;
            (!found.newcomers).then_some(found.lingering)
        };
        let Some(lingering) = lingering else {
            sink(Event::Warning(OVERTAKEN.to_owned()));
            parent.stay_wide(&mut known, needed, sink).await?;
            return Ok(Ending::Done);
        };
        let after = self.plan.record_after.union(&lingering);
        let target = annotations(&self.set.tooling, &after);
        if known.annotations == target {
            parent.stay_wide(&mut known, needed, sink).await?;
            return Ok(Ending::Done);
        }
        for _ in 0..ATTEMPTS {
            // All is done but for this, and the record is wide enough.
            if self.interrupt.is_requested() {
                return Ok(Ending::Interrupted);
            }
            if let Written::Overtaken = parent.write_record(&known.resource_version, &target).await? {
                match parent.read().await? {
                    // The write got through, and its answer was lost.
                    Some(found) if is_up_to_date(&found, &target) => {}
                    // Something else of the parent was changed.
                    Some(found) if is_up_to_date(&found, &known.annotations) => {
                        known.resource_version = found.resource_version;
                        continue;
                    }
                    _ => break,
                }
            }
            // A member that another run has put there between the last look and this write
            // would be lost without a second look.
            match self.look(settled).await {
                Ok(found) if !found.newcomers => return Ok(Ending::Done),
                Ok(_) => break,
                // Whoever does not know whether there are any must not forget them.
                Err(error) => {
                    parent.stay_wide(&mut known, needed, sink).await?;
                    return Err(error);
                }
            }
        }
        sink(Event::Warning(OVERTAKEN.to_owned()));
        parent.stay_wide(&mut known, needed, sink).await?;
        Ok(Ending::Done)
    }

    /// Looks until what is being deleted has gone, or waits for something that takes its time.
    async fn look_for_others(&self, settled: &BTreeSet<String>) -> Result<Others, ParentWriteError> {
        let mut found = self.look(settled).await?;
        for pause in PAUSES {
            if found.newcomers || found.lingering == Record::default() || self.interrupt.is_requested() {
                break;
            }
            tokio::time::sleep(pause).await;
            found = self.look(settled).await?;
        }
        Ok(found)
    }

    /// What is where this run is about to record nothing. What two groups serve is no
    /// newcomer under the name that the manifests do not use.
    async fn look(&self, settled: &BTreeSet<String>) -> Result<Others, ParentWriteError> {
        let selector = Selector {
            labels: format!("{PART_OF_LABEL}={}", self.set.id),
            accept: read::METADATA_LIST,
        };
        let mut others = Others::default();
        for places in self.places_to_leave() {
            let members = read::members(
                self.server,
                &places,
                &selector,
                self.writing.concurrency,
                Live::of,
            )
            .await;
            let members = match members {
                Ok(members) => members,
                Err((_, error)) => return Err(ParentWriteError::Unwatched(error)),
            };
            let (present, terminating): (Vec<&Live>, Vec<&Live>) = members
                .iter()
                .filter(|live| !self.set.is_parent(live))
                .partition(|live| live.presence == Presence::Present);
            others.newcomers |= present.iter().any(|live| !settled.contains(&live.uid));
            // A list of metadata does not show what a namespace waits for.
            let lingering = Record::of(terminating.iter().map(|live| &live.key), &self.set.parent);
            others.lingering = others.lingering.union(&lingering);
        }
        for definition in self.plan.prunes.iter().flatten() {
            let Some(kind) = &definition.defines else { continue };
            let fresh = read_again(self.server, &definition.key, &definition.resource).await;
            if fresh
                .map_err(|error| ParentWriteError::Unwatched(ListError::Request(error)))?
                .is_some()
            {
                let lingering = self.pruned_of(kind, definition);
                others.lingering = others.lingering.union(&lingering);
            }
        }
        Ok(others)
    }

    /// The places of a pruned definition and of the members of its kind. A definition stays until
    /// all objects of its kind are gone.
    fn pruned_of(&self, kind: &GroupKind, definition: &Live) -> Record {
        let pruned = self.plan.prunes.iter().flatten();
        let skipped = self.plan.skips.iter().map(|skip| &skip.live);
        let of_kind = pruned.chain(skipped).filter(|live| live.key.group_kind == *kind);
        let keys = iter::once(&definition.key).chain(of_kind.map(|live| &live.key));
        Record::of(keys, &self.set.parent)
    }

    /// The places that the record loses: whole kinds, and namespaces of the kinds that stay.
    fn places_to_leave(&self) -> [Places; 2] {
        let after = &self.plan.record_after;
        let own = self.set.parent.namespace.as_ref();
        let is_dropped = |namespace: &&String| {
            !after.additional_namespaces.contains(*namespace) && Some(*namespace) != own
        };
        let is_recorded = |resource: &&Arc<Resource>| after.group_kinds.contains(&resource.group_kind());
        // The objects of a pruned definition are gone as soon as it is, and it is looked for itself.
        let undefined: BTreeSet<&GroupKind> = self
            .plan
            .prunes
            .iter()
            .flatten()
            .filter_map(|live| live.defines.as_ref())
            .collect();
        let resources = self
            .places
            .resources
            .iter()
            .filter(|resource| !undefined.contains(&resource.group_kind()));
        let (kept, dropped): (Vec<_>, Vec<_>) = resources.partition(is_recorded);
        let namespaces = &self.places.namespaces;
        [
            Places {
                resources: dropped.into_iter().cloned().collect(),
                namespaces: namespaces.clone(),
            },
            Places {
                resources: kept
                    .into_iter()
                    .filter(|kept| kept.scope == Scope::Namespaced)
                    .cloned()
                    .collect(),
                namespaces: namespaces.iter().filter(is_dropped).cloned().collect(),
            },
        ]
    }
}

/// Members where a run is about to record none.
#[derive(Debug, Default)]
struct Others {
    /// Whether another run has put some there.
    newcomers: bool,
    /// The places of those that were deleted and are not gone yet.
    lingering: Record,
}

/// What the parent records of a set that the plan was not made for: by another run.
fn recorded(standing: &Standing) -> Record {
    match standing {
        Standing::Recorded(Bookkeeping {
            kinds: RecordedKinds::GroupKinds(group_kinds),
            additional_namespaces,
            ..
        }) => Record {
            group_kinds: group_kinds.clone(),
            additional_namespaces: additional_namespaces.clone(),
        },
        // The deprecated list was translated when the plan was made, and nobody writes it today.
        Standing::Recorded(_) | Standing::New => Record::default(),
    }
}

/// Whether the parent says already what is to be written on it.
pub(super) fn is_up_to_date(parent: &ParentObject, target: &Value) -> bool {
    let Some(target) = target.as_object() else {
        return false;
    };
    matches!(parent.reading, Reading::Parent(_))
        && target
            .iter()
            .all(|(key, value)| parent.annotations.get(key).map(String::as_str) == value.as_str())
}
