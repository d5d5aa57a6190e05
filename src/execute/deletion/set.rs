//! Deletes a whole set: its members in reverse order, then the parent, and last what the
//! parent lives in.
//!
//! Members go wave by wave, as when `apply` prunes. What becomes of the parent is seen to
//! by `release`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cluster::apiserver::ApiServer;
use crate::compare::ownership::{
    FOREIGN_PARENT_FIELD_MANAGER, KUBECTL_PARENT_FIELD_MANAGER, PARENT_FIELD_MANAGER,
};
use crate::event::{Action, Ending, Event, NotDone, ObjectOutcome, Phase};
use crate::execute::concurrency_limit::ConcurrencyLimit;
use crate::execute::deletion::dependants::{SecondLook, Unread};
use crate::execute::deletion::detach::Detaching;
use crate::execute::deletion::object::{Deleting, LeftInPlace, untouched};
use crate::execute::deletion::parent::{Parent, Releasing, foreseen, names, told, unlistable};
use crate::execute::deletion::remaining::{Found, Lingering, Remaining, Unseen, fail, obstacles, waiting};
use crate::execute::wave::News;
use crate::execute::{Cause, Interrupt, ParentWriting, Sink};
use crate::manifest::desired::Desired;
use crate::model::applyset::Record;
use crate::model::contents::Contents;
use crate::model::identity::ObjectKey;
use crate::model::live::Live;
use crate::model::resource::Resource;
use crate::model::set::Set;
use crate::model::settings::{DryRun, Writing};
use crate::model::text::counted;
use crate::plan::{
    Confirmation, Dependants, Judge, ParentFate, ParentPolicy, Plan, Policy, Remains, Skip, SkipReason,
    is_home_of,
};
use crate::read::{Places, WholeParent};

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
    /// What stays recorded because its objects cannot be listed.
    pub unlisted: &'a Record,
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
    /// UIDs of those that were deleted.
    pub deleted: BTreeSet<String>,
    /// What is still owned by what is to be deleted, and is not to go with it.
    pub attached: Dependants,
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
        sink(Event::Planned(self.planned()));
        for skip in &self.plan.skips {
            sink(told(&skip.live, Action::Skipped, skip.reason.to_string()));
        }
        let mut done = 0;
        let mut failed = 0;
        let mut left = LeftInPlace::default();
        let mut deleted = BTreeSet::new();
        let mut pace = ConcurrencyLimit::new(self.writing.concurrency);
        let nothing = Desired::default();
        let detaching = Detaching {
            server: self.server,
            writing: self.writing,
            interrupt: self.interrupt,
        };
        let dependants = match self.dependants(&nothing).await {
            Ok(dependants) => dependants,
            Err(unread) => {
                sink(Event::failure(format!("{unread}, so nothing was deleted")));
                sink(NotDone::all(
                    "nothing is deleted, because owner references could not be read",
                ));
                return MembersDeleted {
                    ending: Ending::Incomplete,
                    left,
                    deleted,
                    attached: self.plan.dependants.clone(),
                };
            }
        };
        let mut judge = self.judge(&nothing, &dependants);
        let detached = detaching
            .detach_all(&dependants.detachments, &mut judge, &mut pace, sink)
            .await;
        let attached = dependants.without(&detached);
        for wave in &self.plan.prunes {
            let members = wave.iter().filter(|live| !is_home_of(self.set, live));
            let mut told = |news: News<ObjectOutcome>| {
                sink(news.counted(|outcome| {
                    done += 1;
                    failed += usize::from(outcome.action == Action::Failed);
                    if outcome.action == Action::Deleted {
                        deleted.extend(outcome.subject.uid.clone());
                    }
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
            // What has become of the parent since it was read is not known.
            let failures = counted(failed, "object");
            let parent = self
                .parent
                .map_or("", |_| ", so this run does not delete the set's parent");
            sink(Event::Warning(format!(
                "{failures} could not be deleted{parent}; run the same command again"
            )));
            Ending::Incomplete
        } else {
            Ending::Done
        };
        MembersDeleted {
            ending,
            left,
            deleted,
            attached,
        }
    }

    /// What the deletions would do to the parent and to kept objects as they are now. A dry run
    /// answers from the plan.
    async fn dependants(&self, nothing: &Desired) -> Result<Dependants, Unread> {
        if self.writing.dry_run != DryRun::None || self.plan.deletions() == 0 {
            return Ok(self.plan.dependants.clone());
        }
        let look = SecondLook {
            server: self.server,
            set: self.set,
            parent: self.parent.map(|_| self.parent_resource),
            plan: self.plan,
            desired: nothing,
            contents: self.contents,
            places: self.places,
            concurrency: self.writing.concurrency,
        };
        Box::pin(look.dependants()).await
    }

    /// Deletes the parent, and then what it lives in, where no member is left; else makes
    /// it record what is.
    ///
    /// It is `Done` only where nothing is left, or what people want to stay.
    pub async fn finish(
        &self,
        mut members: MembersDeleted,
        lingering: Lingering,
        sink: &mut Sink<'_>,
    ) -> Ending {
        if self.writing.dry_run != DryRun::None {
            return self.rehearse_parent(members, sink).await;
        }
        if self.interrupt.is_requested() {
            self.tell_left(self.homes().count(), sink);
            return Ending::Interrupted;
        }
        let Some(known) = self.parent else {
            return self.finish_without_parent(members, lingering, sink).await;
        };
        // What cannot go keeps the parent, which would be missed.
        let ending = self.leave_filled(&mut members, sink).await;
        let left = &members.left;
        let releasing = Releasing {
            writing: self.parent_writing(),
            known: &known.object,
            recorded: &self.plan.record_during,
            left,
            remaining: self.remaining(self.homes().collect(), lingering, &members.deleted),
            unlisted: self.unlisted.clone(),
            surveyed: known.object.reading.clone(),
        };
        match Box::pin(releasing.release(sink)).await {
            Err(error) => {
                sink(Event::failure(error.to_string()));
                Ending::Incomplete
            }
            Ok(Parent::Gone) => self.delete_last(members, lingering, sink).await,
            Ok(Parent::Going(live)) => {
                self.delete_homes(&mut members, sink).await;
                sink(Event::failure(format!(
                    "{}: the set's parent is still being deleted: {}",
                    self.set.parent,
                    waiting(&live)
                )));
                Ending::Incomplete
            }
            Ok(Parent::Ordinary) => ending,
            Ok(Parent::Replaced) => {
                sink(Event::failure(format!(
                    "{}: the set could not be deleted: another run has created it again",
                    self.set.parent
                )));
                Ending::Incomplete
            }
            Ok(Parent::Stays(remains, unlisted)) => {
                for live in self.homes().filter(|live| !left.contains(live)) {
                    sink(told(live, Action::Skipped, SkipReason::HoldsParent.to_string()));
                }
                let ending = worse(ending, self.tell_remains(&remains, sink));
                worse(ending, self.tell_unlisted(&unlisted, sink))
            }
            Ok(Parent::Untouched) => {
                self.tell_left(self.homes().count(), sink);
                Ending::Interrupted
            }
        }
    }

    /// Without a parent nothing is recorded, and there is nothing to delete in its place.
    async fn finish_without_parent(
        &self,
        mut members: MembersDeleted,
        lingering: Lingering,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let ending = self.delete_homes(&mut members, sink).await;
        if ending == Ending::Interrupted {
            return ending;
        }
        match self.rest(lingering, &members.deleted, sink).await {
            Ok(Found { remains, .. }) => {
                if !remains.kept.is_empty() {
                    sink(Event::Warning(format!(
                        "{} are kept, and no parent records them: {}",
                        counted(remains.kept.len(), "object"),
                        names(&remains.kept)
                    )));
                }
                worse(ending, self.tell_rest(&remains, sink))
            }
            Err(unseen) => self.tell_unseen(&unseen, sink),
        }
    }

    /// Deletes what the parent lived in, and waits until it is gone.
    async fn delete_last(
        &self,
        mut members: MembersDeleted,
        lingering: Lingering,
        sink: &mut Sink<'_>,
    ) -> Ending {
        let ending = self.delete_homes(&mut members, sink).await;
        let awaits_homes = lingering == Lingering::Awaited && self.homes().next().is_some();
        if ending == Ending::Interrupted || !awaits_homes {
            return ending;
        }
        match self.rest(lingering, &members.deleted, sink).await {
            Ok(Found { remains, .. }) => worse(ending, self.tell_rest(&remains, sink)),
            Err(unseen) => self.tell_unseen(&unseen, sink),
        }
    }

    /// What is left in the end, what the parent lived in included, unless the run waits for
    /// that in another way.
    async fn rest(
        &self,
        lingering: Lingering,
        deleted: &BTreeSet<String>,
        sink: &mut Sink<'_>,
    ) -> Result<Found, Unseen> {
        let homes = match lingering {
            Lingering::Awaited => Vec::new(),
            Lingering::Told => self.homes().collect(),
        };
        let remaining = self.remaining(homes, lingering, deleted);
        remaining.settled(&ParentFate::Goes, sink).await
    }

    /// Where the rest of the set is looked for; not at these homes of its parent.
    fn remaining<'a>(
        &'a self,
        homes: Vec<&'a Live>,
        lingering: Lingering,
        deleted: &BTreeSet<String>,
    ) -> Remaining<'a> {
        Remaining {
            server: self.server,
            set: self.set,
            interrupt: self.interrupt,
            concurrency: self.writing.concurrency,
            appliers: &self.policy.appliers,
            places: self.places.clone(),
            homes,
            deleted: deleted.clone(),
            holders: self.holders(),
            lingering,
        }
    }

    /// The UIDs of what is kept because a mark keeps an object in it.
    fn holders(&self) -> BTreeSet<String> {
        let skips = self.plan.skips.iter();
        let holders = skips.filter(|skip| matches!(skip.reason, SkipReason::HoldsMarked { .. }));
        holders.map(|skip| skip.live.uid.clone()).collect()
    }

    fn parent_writing(&self) -> ParentWriting<'_> {
        ParentWriting {
            server: self.server,
            set: self.set,
            resource: self.parent_resource,
            policy: ParentPolicy {
                take_over: Confirmation::Missing,
            },
            manifest: None,
            writing: self.writing,
            interrupt: self.interrupt,
        }
    }

    /// Names what holds the parent: what people keep is a warning, all else a failure.
    fn tell_remains(&self, remains: &Remains, sink: &mut Sink<'_>) -> Ending {
        if !remains.kept.is_empty() {
            sink(Event::Warning(format!(
                "the set is kept with {}: {}; `kubectl applyset disband` ends a set and keeps its objects",
                counted(remains.kept.len(), "object"),
                names(&remains.kept)
            )));
        }
        self.tell_failure(remains, sink)
    }

    fn tell_failure(&self, remains: &Remains, sink: &mut Sink<'_>) -> Ending {
        fail(remains, self.set, &self.policy.appliers, sink)
    }

    /// Names what is left in the end. It is no failure if the user stopped the wait for it.
    fn tell_rest(&self, remains: &Remains, sink: &mut Sink<'_>) -> Ending {
        if !self.interrupt.is_requested() {
            return self.tell_failure(remains, sink);
        }
        match obstacles(remains, self.set, &self.policy.appliers) {
            Some(obstacles) => {
                sink(Event::Warning(format!("{}: {obstacles}", self.set.parent)));
                Ending::Interrupted
            }
            None => Ending::Done,
        }
    }

    /// Fails if objects that cannot be listed may be members: the parent stays because of them.
    fn tell_unlisted(&self, unlisted: &Record, sink: &mut Sink<'_>) -> Ending {
        if unlisted.is_empty() {
            return Ending::Done;
        }
        let parent = &self.set.parent;
        let reason = unlistable(unlisted);
        let is_not_deleted = match self.writing.dry_run {
            DryRun::None => "could not be deleted",
            DryRun::Client | DryRun::Server => "would not be deleted",
        };
        sink(Event::failure(format!(
            "{parent}: the set {is_not_deleted}: {reason}"
        )));
        Ending::Incomplete
    }

    fn tell_unseen(&self, unseen: &Unseen, sink: &mut Sink<'_>) -> Ending {
        sink(Event::failure(format!(
            "{}: what is left of the set could not be read: {unseen}",
            self.set.parent
        )));
        Ending::Incomplete
    }

    /// Leaves what the parent lives in, where something has come into it.
    async fn leave_filled(&self, members: &mut MembersDeleted, sink: &mut Sink<'_>) -> Ending {
        let mut ending = Ending::Done;
        let nothing = Desired::default();
        let judge = self.judge(&nothing, &members.attached);
        for outcome in self.deleting(&judge).filled(self.homes()).await {
            if outcome.action == Action::Failed {
                ending = Ending::Incomplete;
            }
            members.left.note(&outcome);
            sink(Event::Object(outcome));
        }
        ending
    }

    /// What becomes of each member and of the parent if the run ends before it.
    fn planned(&self) -> Vec<ObjectOutcome> {
        let skipped = self.plan.skips.iter().map(|skip| ObjectOutcome {
            reason: skip.reason.to_string(),
            ..untouched(&skip.live)
        });
        let members = self.plan.prunes.iter().flatten();
        let (homes, members): (Vec<&Live>, Vec<&Live>) = members.partition(|live| is_home_of(self.set, live));
        let parent = self.parent.map(|parent| untouched(&parent.live));
        let deleted = members.into_iter().map(untouched);
        let homes = homes.into_iter().map(untouched);
        skipped.chain(deleted).chain(parent).chain(homes).collect()
    }

    /// Members that are deleted or on their way out, as far as they come before the parent.
    pub fn going(&self) -> impl Iterator<Item = &Live> {
        let is_terminating = |skip: &&Skip| matches!(skip.reason, SkipReason::Terminating { .. });
        let terminating = self.plan.skips.iter().filter(is_terminating);
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
    fn judge<'j>(&'j self, nothing: &'j Desired, attached: &Dependants) -> Judge<'j> {
        let uids = BTreeSet::new();
        let mut judge = Judge::of_plan(self.set, self.policy, nothing, self.contents, self.plan, uids);
        judge.renew(attached);
        judge
    }

    fn deleting<'j>(&'j self, judge: &'j Judge<'j>) -> Deleting<'j> {
        Deleting {
            server: self.server,
            judge,
            writing: self.writing,
            done: Action::Deleted,
            preconditions: &self.plan.preconditions,
        }
    }

    async fn delete_homes(&self, members: &mut MembersDeleted, sink: &mut Sink<'_>) -> Ending {
        // To see to the parent takes a while, too.
        let mut ending = self.leave_filled(members, sink).await;
        let left = &members.left;
        for live in self.homes().filter(|live| left.contains(live)) {
            ending = Ending::Incomplete;
            sink(Event::failure(format!(
                "{} stays as a member of a set without a parent; the same command finds it again",
                live.key
            )));
        }
        let nothing = Desired::default();
        let judge = self.judge(&nothing, &members.attached);
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

    async fn rehearse_parent(&self, mut members: MembersDeleted, sink: &mut Sink<'_>) -> Ending {
        let Some(parent) = self.parent else {
            return self.delete_homes(&mut members, sink).await;
        };
        // What is only left to an owner that goes will go with it.
        let going = &self.plan.dependants.going;
        let is_left = |skip: &&Skip| {
            !matches!(skip.reason, SkipReason::OwnedCopy(_)) && !going.contains_key(&skip.live.uid)
        };
        let left_behind = self.plan.skips.iter().filter(is_left).count();
        if left_behind > 0 {
            let count = counted(left_behind, "object");
            sink(told(
                &parent.live,
                Action::Skipped,
                format!("{count} of its set left"),
            ));
            return self.tell_unlisted(self.unlisted, sink);
        }
        if !self.unlisted.is_empty() {
            sink(told(&parent.live, Action::Skipped, unlistable(self.unlisted)));
            return self.tell_unlisted(self.unlisted, sink);
        }
        let (fate, event) = foreseen(self.set, parent, &self.writing.field_manager);
        sink(event);
        match fate {
            ParentFate::Goes => self.delete_homes(&mut members, sink).await,
            ParentFate::Stays(_) => Ending::Done,
        }
    }

    fn tell_left(&self, left: usize, sink: &mut Sink<'_>) {
        let objects = (left > 0).then(|| counted(left, "object"));
        let parent = self.parent.map(|_| "the set's parent".to_owned());
        let before: Vec<String> = objects.into_iter().chain(parent).collect();
        let is_interrupted = match self.interrupt.cause() {
            Cause::User => "interrupted",
            Cause::Time => "the run ended",
        };
        if before.is_empty() {
            return;
        }
        sink(Event::Warning(format!(
            "{is_interrupted} before {}; run the same command again",
            before.join(" and ")
        )));
    }
}

/// How a run ends of which one part ended so, and the other so.
fn worse(one: Ending, other: Ending) -> Ending {
    match (one, other) {
        (Ending::Interrupted, _) | (_, Ending::Interrupted) => Ending::Interrupted,
        (Ending::Incomplete, _) | (_, Ending::Incomplete) => Ending::Incomplete,
        (Ending::Done, Ending::Done) => Ending::Done,
    }
}
