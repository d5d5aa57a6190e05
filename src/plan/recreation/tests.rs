//! Table: which objects are recreated, and every obstacle to it.

use std::collections::HashSet;

use serde_json::json;

use super::*;
use crate::manifest::desired::Desired;
use crate::model::live::{OwnerReference, Presence};
use crate::model::object::Object;
use crate::plan::fixtures::{desired, live, policy, set};
use crate::plan::saved::Salt;
use crate::plan::{Dependent, Dependents, Detachment, Judge, Policy, Risk, Skip};

fn job() -> Live {
    live("Job.batch", Some("shop"), "migrate")
}

fn marked(annotations: &Value) -> DesiredObject {
    DesiredObject {
        object: Object::from(&json!({"metadata": {"name": "migrate", "annotations": annotations}})),
        ..desired("Job.batch", Some("shop"), "migrate")
    }
}

#[test]
fn objects_are_chosen_by_marks_and_by_kind() {
    let plain = marked(&json!({}));
    let flux = marked(&json!({"kustomize.toolkit.fluxcd.io/force": "enabled"}));
    let jobs = Recreate::Kinds([GroupKind::new("batch", "Job")].into());
    let others = Recreate::Kinds([GroupKind::new("other", "Job")].into());
    for (choice, of_plain, of_marked) in [
        (Recreate::Never, false, false),
        (Recreate::Marked, false, true),
        (jobs, true, true),
        (others, false, true),
    ] {
        assert_eq!(choice.chooses(&plain), of_plain, "{choice:?}");
        assert_eq!(choice.chooses(&flux), of_marked, "{choice:?}");
    }
}

#[test]
fn a_saved_plan_recreates_only_what_it_names() {
    let flux = marked(&json!({"kustomize.toolkit.fluxcd.io/force": "enabled"}));
    let bound = |recreated| {
        let salt = Salt::random().expect("random bytes");
        Preconditions::for_saved_plan(salt, BTreeMap::new(), None).with_recreated(recreated)
    };
    for (preconditions, expected) in [
        (Preconditions::default(), true),
        (bound(BTreeSet::new()), false),
        (bound([flux.key.clone()].into()), true),
    ] {
        assert_eq!(Recreate::Marked.allows(&flux, &preconditions), expected);
        assert!(!Recreate::Never.allows(&flux, &preconditions));
    }
}

#[test]
fn what_is_certain_to_stay_may_not_be_recreated() {
    let sets = Policy {
        recreate: Recreate::Kinds([GroupKind::new("", "PersistentVolumeClaim")].into()),
        ..policy()
    };
    let losing = Policy {
        data_loss: Risk::Allowed,
        ..sets.clone()
    };
    let flux = ("kustomize.toolkit.fluxcd.io/force", "enabled");
    let kept = ("kustomize.toolkit.fluxcd.io/prune", "disabled");
    let set = desired("PersistentVolumeClaim", Some("shop"), "db");
    for (object, policy, expected) in [
        (marked(&json!({})), &sets, false),
        (marked(&json!({flux.0: flux.1})), &sets, true),
        (marked(&json!({flux.0: flux.1, kept.0: kept.1})), &sets, false),
        (set.clone(), &sets, false),
        (set, &losing, true),
    ] {
        let found = policy.may_recreate(&object, &Preconditions::default());
        assert_eq!(found, expected, "{object:?}");
    }
}

/// What a run keeps or holds beside the object.
#[derive(Default)]
struct Around {
    desired: Vec<DesiredObject>,
    skips: Vec<Skip>,
    dependents: Dependents,
}

fn obstacle(live: &Live, around: Around, policy: &Policy) -> Option<RecreationObstacle> {
    let set = set();
    let object = desired("Job.batch", Some("shop"), "migrate");
    let manifests = Desired {
        members: [vec![object], around.desired].concat(),
        ..Desired::default()
    };
    let contents = BTreeMap::new();
    let plan = Plan {
        skips: around.skips,
        ..super::super::plan(&set, &manifests, &super::super::Observed::default(), policy)
    };
    let plan = Plan {
        dependents: around.dependents,
        ..plan.with_only_delete_of(live)
    };
    let judge = Judge::for_plan(&set, policy, &manifests, &contents, &plan, HashSet::new());
    judge.obstacle_to_recreation(live)
}

/// The obstacle without and with `--allow-data-loss`.
fn both(live: &Live, around: fn(&Live) -> Around) -> [Option<String>; 2] {
    let allowed = Policy {
        data_loss: Risk::Allowed,
        ..policy()
    };
    [policy(), allowed].map(|policy| {
        let obstacle = obstacle(live, around(live), &policy);
        obstacle.map(|obstacle| obstacle.to_string())
    })
}

fn nothing(_: &Live) -> Around {
    Around::default()
}

fn owns(live: &Live) -> Around {
    let dependent = super::super::fixtures::live("ConfigMap", Some("shop"), "one");
    let detachment = Detachment {
        dependent: Dependent::from_live(&dependent),
        owners: [live.uid.clone()].into(),
        pruned: [live.key.clone()].into(),
    };
    Around {
        dependents: Dependents {
            detachments: vec![detachment],
            ..Dependents::default()
        },
        ..Around::default()
    }
}

#[test]
fn a_member_is_recreated_unless_a_prune_would_keep_it() {
    let changed = |change: &dyn Fn(&mut Live)| {
        let mut live = job();
        change(&mut live);
        both(&live, nothing)
    };
    let always = |text: &str| [Some(text.to_owned()), Some(text.to_owned())];
    let owner = OwnerReference {
        api_version: "batch/v1".to_owned(),
        kind: "CronJob".to_owned(),
        name: "nightly".to_owned(),
        uid: "owner".to_owned(),
    };
    assert_eq!(changed(&|_| {}), [None, None]);
    assert_eq!(
        changed(&|live| live.presence = Presence::Terminating),
        [None, None]
    );
    assert_eq!(
        changed(&|live| live.key = set().parent),
        always("it is the set's parent")
    );
    assert_eq!(
        changed(&|live| live.part_of = None),
        always("it is not a member of the set")
    );
    assert_eq!(
        changed(&|live| live.part_of = Some("other".to_owned())),
        always("it is a member of another set (other)")
    );
    assert_eq!(
        changed(&|live| live.owners.push(owner.clone())),
        always("owned by CronJob nightly")
    );
    assert_eq!(
        changed(&|live| live.keep_annotation = Some("helm.sh/resource-policy: keep".to_owned())),
        always("kept by helm.sh/resource-policy: keep")
    );
    let [copied, _] = changed(&|live| live.part_of_writers.clear());
    assert!(copied.is_some_and(|text| text.contains("part-of label")));
    assert_eq!(
        changed(&|live| live.parent_of = Some("other".to_owned())),
        always("it is the parent of another set, whose members would become orphans")
    );
}

#[test]
fn an_owner_of_what_stays_is_never_recreated() {
    let text = "the garbage collector would then delete configmap/one in namespace shop".to_owned();
    assert_eq!(both(&job(), owns), [Some(text.clone()), Some(text)]);
}

#[test]
fn data_are_lost_only_if_that_is_allowed() {
    for (kind, namespace) in [
        ("PersistentVolumeClaim", Some("shop")),
        ("PersistentVolume", None),
    ] {
        let live = live(kind, namespace, "old");
        let lost = Some("its data would be lost".to_owned());
        assert_eq!(both(&live, nothing), [lost, None], "{kind}");
    }
    let deletes_claims = Live {
        deletes_claims: true,
        ..live("StatefulSet.apps", Some("shop"), "old")
    };
    let lost = Some("its data would be lost".to_owned());
    assert_eq!(both(&deletes_claims, nothing), [lost, None]);
    for kind in ["Deployment.apps", "StatefulSet.apps", "Service"] {
        assert_eq!(
            both(&live(kind, Some("shop"), "old"), nothing),
            [None, None],
            "{kind}"
        );
    }
}

#[test]
fn a_container_is_never_chosen() {
    for kind in ["Namespace", "CustomResourceDefinition.apiextensions.k8s.io"] {
        let flux = DesiredObject {
            key: desired(kind, None, "shop").key,
            ..marked(&json!({"kustomize.toolkit.fluxcd.io/force": "enabled"}))
        };
        let all = Recreate::Kinds([flux.key.group_kind.clone()].into());
        assert!(!Recreate::Marked.chooses(&flux), "{kind}");
        assert!(!all.chooses(&flux), "{kind}");
    }
}

#[test]
fn a_mark_of_the_manifest_keeps_an_object_too() {
    let kept = marked(&json!({"helm.sh/resource-policy": "keep"}));
    let obstacle = RecreationObstacle::from_manifest(&kept).map(|obstacle| obstacle.to_string());
    assert_eq!(obstacle.as_deref(), Some("kept by helm.sh/resource-policy: keep"));
    assert_eq!(RecreationObstacle::from_manifest(&marked(&json!({}))), None);
}

#[test]
fn a_manifest_with_a_uid_cannot_be_created_again() {
    for (uid, expected) in [
        (json!("1-2-3"), Some(RecreationObstacle::Uid)),
        (Value::Null, None),
    ] {
        let exported = DesiredObject {
            object: Object::from(&json!({"metadata": {"name": "migrate", "uid": uid}})),
            ..desired("Job.batch", Some("shop"), "migrate")
        };
        assert_eq!(RecreationObstacle::from_manifest(&exported), expected);
    }
}
