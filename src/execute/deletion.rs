//! Deletes a whole set: its members in reverse order, then the parent, and last what the
//! parent lives in.
//!
//! Members go wave by wave, as when `apply` prunes. What becomes of the parent is seen to
//! by `release`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::detach::Detaching;
use super::pace::Pace;
use super::prune::{Deleting, LeftInPlace};
use super::release::{Releasing, names, told};
use super::wave::News;
use super::{DryRun, Interrupt, Sink, Writing};
use crate::apiserver::ApiServer;
use crate::desired::Desired;
use crate::discovery::Resource;
use crate::event::{Action, Ending, Event, ObjectOutcome, Phase};
use crate::identity::ObjectKey;
use crate::observe::{Contents, Live, Places, WholeParent};
use crate::ownership::{FOREIGN_PARENT_FIELD_MANAGER, KUBECTL_PARENT_FIELD_MANAGER, PARENT_FIELD_MANAGER};
use crate::plan::{Judge, ParentFate, Plan, Policy, Set, SkipReason, is_home_of, parent_fate};
use crate::wording::counted;

/// Everything that deleting a set needs.
pub struct SetDeletion<'a> {
    /// Where to write.
    pub server: &'a ApiServer,
    /// The set; its tooling is that of the parent.
    pub set: &'a Set,
    /// The resource of the parent.
    pub parent_resource: &'a Arc<Resource>,
    /// The parent as the plan knows it; `None` where there is none with bookkeeping.
    pub parent: Option<&'a WholeParent>,
    /// Where members were looked for.
    pub places: &'a Places,
    /// What to delete, and what stays.
    pub plan: &'a Plan,
    /// What the plan was made under; objects that changed meanwhile are judged again.
    pub policy: &'a Policy,
    /// What namespaces and definitions of kinds held when their deletion was judged.
    pub contents: &'a BTreeMap<ObjectKey, Contents>,
    /// How.
    pub writing: &'a Writing,
    /// The user's wish to stop.
    pub interrupt: &'a Interrupt,
}

/// What came of deleting the members.
#[derive(Debug)]
pub struct MembersDeleted {
    /// Whether the run may go on with the parent.
    pub ending: Ending,
    /// Members that are there to stay.
    pub left: LeftInPlace,
}

/// The field managers whose contents of a parent are the set's own: that of the record,
/// kubectl's for the same, and that of members, for a parent that came with them.
pub fn parent_managers(field_manager: &str) -> BTreeSet<String> {
    let managers = [
        PARENT_FIELD_MANAGER,
        FOREIGN_PARENT_FIELD_MANAGER,
        KUBECTL_PARENT_FIELD_MANAGER,
        field_manager,
    ];
    managers.map(str::to_owned).into()
}

/// What became of the parent.
pub(super) enum Parent {
    Gone,
    Stays,
    /// The user wanted the run to stop before.
    Untouched,
}

impl SetDeletion<'_> {
    /// Deletes the members, one wave after the other, but for what the parent lives in.
    ///
    /// # Panics
    ///
    /// Where the plan has refusals: carrying it out would be worse.
    pub async fn delete_members(&self, sink: &mut Sink<'_>) -> MembersDeleted {
        assert!(
            self.plan.refusals.is_empty(),
            "a plan with refusals must not be carried out"
        );
        sink(Event::Phase {
            phase: Phase::Deleting,
            total: self.plan.deletions(),
        });
        for skip in &self.plan.skips {
            sink(told(&skip.live, Action::Skipped, skip.reason.to_string()));
        }
        let mut done = 0;
        let mut failed = 0;
        let mut left = LeftInPlace::default();
        let mut pace = Pace::new(self.writing.concurrency);
        let nothing = Desired::default();
        let mut judge = self.judge(&nothing);
        let detaching = Detaching {
            server: self.server,
            writing: self.writing,
            interrupt: self.interrupt,
        };
        let detachments = &self.plan.dependants.detachments;
        detaching
            .detach_all(detachments, &mut judge, &mut pace, sink)
            .await;
        for wave in &self.plan.prunes {
            let members = wave.iter().filter(|live| !is_home_of(self.set, live));
            let mut told = |news: News<ObjectOutcome>| {
                sink(news.counted(|outcome| {
                    done += 1;
                    failed += usize::from(outcome.action == Action::Failed);
                }));
            };
            self.deleting(&judge)
                .delete_wave(members, &mut left, self.interrupt, &mut pace, &mut told)
                .await;
        }
        let ending = if self.interrupt.is_requested() {
            self.tell_left(self.plan.deletions() - done, sink);
            Ending::Interrupted
        } else if failed > 0 {
            let failures = counted(failed, "object");
            sink(Event::Warning(format!(
                "the set's parent stays, because {failures} could not be deleted; the same command goes on from here"
            )));
            Ending::Incomplete
        } else {
            Ending::Done
        };
        MembersDeleted { ending, left }
    }

    /// Deletes the parent, and then what it lives in, where no member is left; else makes
    /// it record what is. `left` are the members that were not deleted.
    pub async fn finish(&self, mut left: LeftInPlace, sink: &mut Sink<'_>) -> Ending {
        if self.writing.dry_run != DryRun::None {
            return self.rehearse_parent(left, sink).await;
        }
        if self.interrupt.is_requested() {
            self.tell_left(self.homes().count(), sink);
            return Ending::Interrupted;
        }
        let Some(known) = self.parent else {
            self.tell_unrecorded(sink);
            return self.delete_homes(left, sink).await;
        };
        // What cannot go keeps the parent, which would be missed.
        let ending = self.leave_filled(&mut left, sink).await;
        match Box::pin(Releasing::new(self, known, &left).release(sink)).await {
            Err(error) => {
                sink(Event::Failure(error.to_string()));
                Ending::Incomplete
            }
            Ok(Parent::Gone) => self.delete_homes(left, sink).await,
            Ok(Parent::Stays) => {
                for live in self.homes().filter(|live| !left.contains(live)) {
                    sink(told(live, Action::Skipped, SkipReason::HoldsParent.to_string()));
                }
                ending
            }
            Ok(Parent::Untouched) => {
                self.tell_left(self.homes().count(), sink);
                Ending::Interrupted
            }
        }
    }

    /// Leaves what the parent lives in, where something has come into it.
    async fn leave_filled(&self, left: &mut LeftInPlace, sink: &mut Sink<'_>) -> Ending {
        let mut ending = Ending::Done;
        let nothing = Desired::default();
        let judge = self.judge(&nothing);
        for outcome in self.deleting(&judge).filled(self.homes()).await {
            if outcome.action == Action::Failed {
                ending = Ending::Incomplete;
            }
            left.note(&outcome);
            sink(Event::Object(outcome));
        }
        ending
    }

    /// Members that are deleted or on their way out, as far as they come before the parent.
    pub fn going(&self) -> impl Iterator<Item = &Live> {
        let terminating = self.plan.skips.iter().filter(|skip| !skip.is_kept());
        let deleted = self.plan.prunes.iter().flatten();
        deleted
            .filter(|live| !is_home_of(self.set, live))
            .chain(terminating.map(|skip| &skip.live))
    }

    /// What the parent lives in, as far as that is deleted.
    pub fn homes(&self) -> impl Iterator<Item = &Live> {
        let prunes = self.plan.prunes.iter().flatten();
        prunes.filter(|live| is_home_of(self.set, live))
    }

    /// Judges what is deleted. `nothing` is what the manifests of a set that goes ask for.
    fn judge<'j>(&'j self, nothing: &'j Desired) -> Judge<'j> {
        let uids = BTreeSet::new();
        Judge::of_plan(self.set, self.policy, nothing, self.contents, self.plan, uids)
    }

    fn deleting<'j>(&'j self, judge: &'j Judge<'j>) -> Deleting<'j> {
        Deleting {
            server: self.server,
            judge,
            policy: self.policy,
            writing: self.writing,
            done: Action::Deleted,
            approval: None,
        }
    }

    async fn delete_homes(&self, mut left: LeftInPlace, sink: &mut Sink<'_>) -> Ending {
        // To see to the parent takes a while, too.
        let mut ending = self.leave_filled(&mut left, sink).await;
        for live in self.homes().filter(|live| left.contains(live)) {
            sink(Event::Warning(format!(
                "{} stays as a member of a set without a parent; the same command finds it again",
                live.key
            )));
        }
        let nothing = Desired::default();
        let judge = self.judge(&nothing);
        for live in self.homes().filter(|live| !left.contains(live)) {
            if self.interrupt.is_requested() {
                self.tell_left(1, sink);
                return Ending::Interrupted;
            }
            let outcome = match left.outcome(live) {
                Some(held) => held,
                None => self.deleting(&judge).delete(live).await,
            };
            if outcome.action == Action::Failed {
                ending = Ending::Incomplete;
            }
            sink(Event::Object(outcome));
        }
        ending
    }

    /// Without a parent nothing is recorded, and there is nothing to delete in its place.
    fn tell_unrecorded(&self, sink: &mut Sink<'_>) {
        let kept: Vec<&Live> = self.plan.skips.iter().map(|skip| &skip.live).collect();
        if !kept.is_empty() {
            sink(Event::Warning(format!(
                "{} stay, and no parent records them: {}",
                counted(kept.len(), "object"),
                names(&kept)
            )));
        }
    }

    async fn rehearse_parent(&self, left: LeftInPlace, sink: &mut Sink<'_>) -> Ending {
        let Some(parent) = self.parent else {
            return self.delete_homes(left, sink).await;
        };
        if !self.plan.skips.is_empty() {
            let count = counted(self.plan.skips.len(), "object");
            sink(told(
                &parent.live,
                Action::Skipped,
                format!("{count} of its set left"),
            ));
            return Ending::Done;
        }
        let managers = parent_managers(&self.writing.field_manager);
        match parent_fate(self.set, &parent.live, &parent.content_writers, &managers) {
            ParentFate::Goes => {
                sink(told(&parent.live, Action::Deleted, String::new()));
                self.delete_homes(left, sink).await
            }
            ParentFate::Stays(why) => {
                sink(told(&parent.live, Action::Skipped, why.to_string()));
                Ending::Done
            }
        }
    }

    fn tell_left(&self, left: usize, sink: &mut Sink<'_>) {
        let parent = if self.parent.is_some() {
            " and the set's parent"
        } else {
            ""
        };
        sink(Event::Warning(format!(
            "interrupted; {}{parent} left as they are, and the same command goes on from here",
            counted(left, "object")
        )));
    }
}
