//! Tables: which objects are adopted, moved, released or kept.

use serde_json::json;

use super::*;
use crate::model::applyset::ApplySetId;
use crate::plan::fixtures::{live, policy, set};

const OTHER: &str = "applyset-other-v1";
const WRITE: MembershipChange = MembershipChange::Write(FieldOwnership::Kept);

fn owner(uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Service".to_owned(),
        name: "web".to_owned(),
        uid: uid.to_owned(),
    }
}

fn adopted(found_by: FoundBy, take_ownership: Risk, change: impl FnOnce(&mut Live)) -> MembershipChange {
    let mut live = live("ConfigMap", Some("shop"), "a");
    live.part_of = None;
    change(&mut live);
    let fields = FieldOwnership::Kept;
    judge_adoption(
        &Candidate {
            live,
            found_by,
            fields,
        },
        &set(),
        take_ownership,
    )
}

fn named(change: impl FnOnce(&mut Live)) -> MembershipChange {
    adopted(FoundBy::Named, Risk::Refused, change)
}

#[test]
fn adoption_takes_what_is_free_and_leaves_the_rest() {
    use MembershipChange::{Keep, OfAnotherSet, Settled};
    use MembershipKeepReason::{IsParent, MadeByOthers, NotOfInventory, Owned, Terminating};
    assert_eq!(named(|_| {}), WRITE);
    assert_eq!(named(|live| live.part_of = Some(set().id.to_string())), Settled);
    let untracked = |live: &mut Live| {
        live.part_of = Some(set().id.to_string());
        live.tracking = Tracking::Off;
        live.part_of_writers.clear();
    };
    assert_eq!(named(untracked), WRITE);
    assert_eq!(
        named(|live| live.part_of = Some(OTHER.to_owned())),
        OfAnotherSet(OTHER.to_owned())
    );
    assert_eq!(named(|live| live.key = set().parent), Keep(IsParent));
    assert_eq!(
        named(|live| live.presence = Presence::Terminating),
        Keep(Terminating)
    );
    assert_eq!(
        named(|live| live.owners.push(owner("w"))),
        Keep(Owned(owner("w")))
    );
    assert_eq!(named(|live| live.owners.push(owner("uid-of-parent"))), WRITE);
    let table = [
        (FoundBy::Selected(Creator::Person), WRITE),
        (
            FoundBy::Selected(Creator::Others(vec!["operator".to_owned()])),
            Keep(MadeByOthers {
                managers: vec!["operator".to_owned()],
            }),
        ),
        (FoundBy::Tracked(Mark::Own), WRITE),
        (
            FoundBy::Tracked(Mark::Other("other".to_owned())),
            Keep(NotOfInventory("other".to_owned())),
        ),
        (
            FoundBy::Tracked(Mark::Missing("none".to_owned())),
            Keep(NotOfInventory("none".to_owned())),
        ),
    ];
    for (found_by, change) in table {
        assert_eq!(adopted(found_by, Risk::Refused, |_| {}), change);
    }
    assert_eq!(
        adopted(FoundBy::Named, Risk::Allowed, |live| live.part_of =
            Some(OTHER.to_owned())),
        WRITE
    );
}

#[test]
fn fields_move_with_the_label_or_after_it_and_only_from_the_tool_that_marked_the_object() {
    let moved = || FieldOwnership::Moved(json!([{"manager": "ours"}]));
    let judged = |found_by: FoundBy, part_of: Option<&str>, fields: FieldOwnership| {
        let mut live = live("ConfigMap", Some("shop"), "a");
        live.part_of = part_of.map(str::to_owned);
        judge_adoption(
            &Candidate {
                live,
                found_by,
                fields,
            },
            &set(),
            Risk::Refused,
        )
    };
    let (own, id) = (|| FoundBy::Tracked(Mark::Own), set().id.to_string());
    let moves = || MembershipChange::Write(moved());
    assert_eq!(judged(own(), None, moved()), moves());
    assert_eq!(judged(own(), Some(&id), moved()), moves());
    assert_eq!(
        judged(own(), Some(&id), FieldOwnership::Kept),
        MembershipChange::Settled
    );
    for mark in [Mark::Missing(String::new()), Mark::Other(String::new())] {
        assert_eq!(
            judged(FoundBy::Tracked(mark), Some(&id), moved()),
            MembershipChange::Settled
        );
    }
}

#[test]
fn each_object_of_another_set_is_refused_by_name() {
    let of_other = |name: &str| {
        let mut live = live("ConfigMap", Some("shop"), name);
        live.part_of = Some(OTHER.to_owned());
        Candidate {
            live,
            found_by: FoundBy::Named,
            fields: FieldOwnership::Kept,
        }
    };
    let candidates = [of_other("a"), of_other("b")];
    let plan = plan_adoption(
        &set(),
        &candidates,
        Vec::new(),
        &OtherParents::default(),
        Risk::Refused,
    );
    let names: Vec<&str> = plan
        .refusals
        .iter()
        .map(|refusal| match refusal {
            Refusal::OfAnotherSet { object, .. } => object.name.as_str(),
            other => panic!("{other}"),
        })
        .collect();
    assert_eq!(names, ["a", "b"]);
}

fn new_set() -> Set {
    let mut new = set();
    new.parent.name = "new".to_owned();
    new.id = ApplySetId::for_parent(&new.parent);
    new
}

#[test]
fn members_move_and_objects_with_a_copied_label_are_kept() {
    use MembershipChange::{Keep, Settled};
    let moved = |change: fn(&mut Live)| {
        let mut live = live("ConfigMap", Some("shop"), "a");
        change(&mut live);
        judge_move(&live, &set(), &new_set(), &policy().appliers)
    };
    assert_eq!(moved(|_| {}), WRITE);
    assert_eq!(
        moved(|live| live.part_of = Some(new_set().id.to_string())),
        Settled
    );
    assert_eq!(
        moved(|live| live.part_of = None),
        Keep(MembershipKeepReason::NotAMember)
    );
    assert_eq!(
        moved(|live| live.key = new_set().parent),
        Keep(MembershipKeepReason::IsParent)
    );
    assert_eq!(
        moved(|live| live.presence = Presence::Terminating),
        Keep(MembershipKeepReason::Terminating)
    );
    assert_eq!(
        moved(|live| live.owners.push(owner("uid-of-parent"))),
        Keep(MembershipKeepReason::Owned(owner("uid-of-parent")))
    );
    assert_eq!(
        moved(|live| live.part_of_writers = vec!["controller".to_owned()]),
        Keep(MembershipKeepReason::CopiedLabel {
            writers: vec!["controller".to_owned()]
        })
    );
}

#[test]
fn the_name_for_merged_writers_is_not_offered_as_field_manager() {
    for (writer, is_offered) in [("controller", true), ("ancient-changes", false)] {
        let writers = vec![writer.to_owned()];
        let text = MembershipKeepReason::CopiedLabel { writers }.to_string();
        assert_eq!(text.contains("--field-manager"), is_offered, "{text}");
    }
}

#[test]
fn only_what_was_asked_for_moves_and_strangers_are_reported() {
    let members = [
        live("ConfigMap", Some("shop"), "a"),
        live("ConfigMap", Some("shop"), "b"),
    ];
    let stranger = live("ConfigMap", Some("shop"), "c");
    let asked =
        [&members[0], &stranger].map(|live| MembershipSkip::new(live, MembershipKeepReason::NotAMember));
    let appliers = policy().appliers;
    let some = plan_move(&set(), &new_set(), &members, Some(asked.to_vec()), &appliers);
    assert_eq!(some.changes, members[..1]);
    assert_eq!(some.skips, asked[1..]);
    let all = plan_move(&set(), &new_set(), &members, None, &appliers);
    assert_eq!(all.changes, members);
}

#[test]
fn everything_with_the_label_is_released_and_copies_come_last() {
    let mut copy = live("ConfigMap", Some("shop"), "a");
    copy.part_of_writers.clear();
    copy.uid = "copy".to_owned();
    let own = live("ConfigMap", Some("shop"), "b");
    let mut stranger = live("ConfigMap", Some("shop"), "c");
    stranger.part_of = Some(OTHER.to_owned());
    let members = vec![copy.clone(), own.clone(), stranger];
    let plan = plan_disband(&set(), members, &policy().appliers);
    assert_eq!(plan.changes, [own, copy]);
    assert_eq!(
        plan.refusals[0]
            .to_string()
            .split_once("; ")
            .expect("two parts")
            .1,
        "1 object would leave it, but stay in the cluster; the label is also removed from 1 object that is not a member: \
         configmap/a in namespace shop"
    );
    let of_empty_set = plan_disband(&set(), Vec::new(), &policy().appliers);
    assert_eq!(of_empty_set, MembershipPlan::default());
}
