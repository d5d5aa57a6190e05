use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::authorization::v1::SubjectRulesReviewStatus;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::manifest::desired::{Desired, DesiredObject};
use crate::model::applyset::parent::{ParentAnnotations, Reading, RecordedKinds, annotations};
use crate::model::applyset::{Record, Tooling};
use crate::model::identity::GroupKind;
use crate::model::live::{Live, OwnerReference, Presence};
use crate::model::permission::{NeededPermissions, Permission, Verb, rules_allow};
use crate::model::resource::{Origin, Scope};
use crate::model::set::ParentObject;
use crate::model::write_settings::{DryRun, WriteSettings};
use crate::plan::fixtures::{desired, live, policy, resource, set};
use crate::plan::{Observed, plan};

const CLUSTER_ROLE: &str = "ClusterRole.rbac.authorization.k8s.io";

pub(super) fn right(verb: Verb, kind: &str, namespace: Option<&str>, name: Option<&str>) -> Permission {
    let resource = resource(kind, Scope::Namespaced);
    Permission {
        name: name.map(str::to_owned),
        ..Permission::on_all_objects(verb, &resource, namespace)
    }
}

pub(super) fn texts<'r>(permissions: impl IntoIterator<Item = &'r Permission>) -> Vec<String> {
    permissions.into_iter().map(ToString::to_string).collect()
}

pub(super) fn manifests(members: Vec<DesiredObject>) -> Desired {
    Desired {
        members,
        ..Desired::default()
    }
}

#[test]
fn rules_give_what_rbac_would_give() {
    let delete_web = right(Verb::Delete, "Deployment.apps", Some("shop"), Some("web"));
    let delete_any = delete_web.without_name();
    // Verbs, groups, resources, names; whether one object and all may be deleted.
    let table = [
        ("delete", "apps", "deployments", "", true, true),
        ("*", "*", "*", "", true, true),
        ("delete", "*", "deployments", "*", true, true),
        ("delete", "apps", "deployments", "web", true, false),
        (
            "get,delete",
            "batch,apps",
            "jobs,deployments",
            "db,web",
            true,
            false,
        ),
        ("delete", "apps", "deployments", "db", false, false),
        ("get,patch", "apps", "deployments", "", false, false),
        ("delete", "", "deployments", "", false, false),
        ("delete", "apps", "deployments/status", "", false, false),
        ("delete", "apps", "*/status", "", false, false),
        ("deletecollection", "apps", "deployments", "", false, false),
        ("", "apps", "deployments", "", false, false),
    ];
    for (verbs, groups, resources, names, one, all) in table {
        let words = |list: &str| list.split(',').map(str::to_owned).collect::<Vec<_>>();
        let rules: SubjectRulesReviewStatus = serde_json::from_value(json!({"resourceRules": [{
            "verbs": words(verbs),
            "apiGroups": words(groups),
            "resources": words(resources),
            "resourceNames": names.split(',').filter(|name| !name.is_empty()).collect::<Vec<_>>(),
        }]}))
        .expect("rules");
        let case = format!("{verbs} {groups} {resources} {names}");
        assert_eq!(rules_allow(&rules, &delete_web), one, "{case}");
        assert_eq!(rules_allow(&rules, &delete_any), all, "{case}");
    }
}

/// The permissions for the writes of one run to a set that has these members.
fn now(manifests: &Desired, members: Vec<Live>, parent: Option<&ParentObject>) -> NeededPermissions {
    let mut recorded = Record::default();
    for member in &members {
        let key = &member.key;
        recorded.add_kind_and_namespace(&key.group_kind, key.namespace.as_deref(), Some("shop"));
    }
    let observed = Observed {
        recorded,
        members,
        ..Observed::default()
    };
    let plan = plan(&set(), manifests, &observed, &policy());
    needed_for_plan(
        &set(),
        &resource("Secret", Scope::Namespaced),
        parent,
        manifests,
        &plan,
        &WriteSettings::for_commands_without_manifests("applyset".to_owned(), DryRun::None, 1),
        Timestamp::UNIX_EPOCH,
    )
}

fn parent_of(kinds: &[&str]) -> ParentObject {
    let group_kinds: BTreeSet<GroupKind> = kinds.iter().map(|kind| GroupKind::new("", *kind)).collect();
    let record = Record {
        group_kinds: group_kinds.clone(),
        ..Record::default()
    };
    let annotations = annotations(&Tooling::this_program(), &record);
    ParentObject {
        uid: "u".to_owned(),
        resource_version: "1".to_owned(),
        presence: Presence::Present,
        reading: Reading::Parent(ParentAnnotations {
            tooling: Tooling::this_program(),
            kinds: RecordedKinds::GroupKinds(group_kinds),
            additional_namespaces: BTreeSet::new(),
        }),
        annotations: serde_json::from_value(annotations).expect("texts"),
        running: Vec::new(),
        abandoned: Vec::new(),
        part_of: None,
        owners: Vec::new(),
    }
}

#[test]
fn what_is_detached_from_its_owner_is_patched() {
    let [owner, mut owned] = ["a", "b"].map(|name| live("ConfigMap", Some("shop"), name));
    owned.owners.push(OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: "a".to_owned(),
        uid: owner.uid.clone(),
    });
    let manifests = manifests(vec![desired("ConfigMap", Some("shop"), "b")]);
    let parent = parent_of(&["ConfigMap"]);
    let patch = right(Verb::Patch, "ConfigMap", Some("shop"), Some("b"));
    for (members, expected) in [(vec![owner.clone(), owned.clone()], 1), (vec![owner], 0)] {
        let observed = Observed {
            members,
            ..Observed::default()
        };
        let plan = plan(&set(), &Desired::default(), &observed, &policy());
        assert_eq!(plan.dependents.detachments.len(), 0);
        let plan = crate::plan::plan(&set(), &manifests, &observed, &policy());
        assert_eq!(plan.dependents.detachments.len(), expected);
        let secrets = resource("Secret", Scope::Namespaced);
        let needed = needed_to_delete_set(&set(), &secrets, Some(&parent), &plan);
        assert_eq!(needed.permissions.contains(&patch), expected == 1);
    }
}

#[test]
fn a_first_run_creates_the_parent_and_perhaps_its_members() {
    let manifests = manifests(vec![desired("ConfigMap", Some("shop"), "a")]);
    let needed = now(&manifests, Vec::new(), None);
    assert_eq!(
        texts(&needed.permissions),
        [
            "create configmaps/a in namespace shop",
            "patch configmaps/a in namespace shop",
            "create secrets in namespace shop",
            "patch secrets/web in namespace shop",
        ]
    );
    let create = right(Verb::Create, "ConfigMap", Some("shop"), Some("a"));
    let path = "/api/v1/namespaces/shop/configmaps/a".to_owned();
    assert_eq!(needed.unless_present, BTreeMap::from([(create, path)]));
    let parent_alone = now(&Desired::default(), Vec::new(), None);
    assert_eq!(
        texts(&parent_alone.permissions),
        [
            "create secrets in namespace shop",
            "patch secrets/web in namespace shop",
        ]
    );
}

#[test]
fn a_later_run_needs_what_its_changes_need() {
    let member = |name| live("ConfigMap", Some("shop"), name);
    let manifests = manifests(vec![desired("ConfigMap", Some("shop"), "a")]);
    let parent = parent_of(&["ConfigMap"]);

    let patched = now(&manifests, vec![member("a")], Some(&parent));
    assert_eq!(
        texts(&patched.permissions),
        [
            "patch configmaps/a in namespace shop",
            "patch secrets/web in namespace shop",
        ]
    );

    let pruned = now(&manifests, vec![member("a"), member("b")], Some(&parent));
    assert_eq!(
        texts(&pruned.permissions),
        [
            "get configmaps/b in namespace shop",
            "patch configmaps/a in namespace shop",
            "delete configmaps/b in namespace shop",
            "patch secrets/web in namespace shop",
        ]
    );

    let mut migrated = member("a");
    migrated.client_side_apply = true;
    let migrated = now(&manifests, vec![migrated], Some(&parent));
    assert!(texts(&migrated.permissions).contains(&"get configmaps/a in namespace shop".to_owned()));
}

#[test]
fn the_parent_is_patched_where_a_member_or_its_record_changes() {
    let patch = right(Verb::Patch, "Secret", Some("shop"), Some("web"));
    let manifests = manifests(vec![desired("ConfigMap", Some("shop"), "a")]);
    let with_manifest = Desired {
        parent: Some(desired("Secret", Some("shop"), "web")),
        ..Desired::default()
    };
    let member = || vec![live("ConfigMap", Some("shop"), "a")];
    let nothing = Desired::default();
    let wide = parent_of(&["ConfigMap"]);
    for (case, manifests, members, parent, is_patched) in [
        ("nothing", &nothing, Vec::new(), &parent_of(&[]), false),
        ("a changed member", &manifests, member(), &wide, true),
        ("a pruned member", &nothing, member(), &wide, true),
        (
            "its own manifest",
            &with_manifest,
            Vec::new(),
            &parent_of(&[]),
            true,
        ),
    ] {
        let needed = now(manifests, members, Some(parent));
        assert_eq!(needed.permissions.contains(&patch), is_patched, "{case}");
    }
}

#[test]
fn a_parent_with_a_manifest_is_created_by_its_name() {
    let manifests = Desired {
        parent: Some(desired("Secret", Some("shop"), "web")),
        ..Desired::default()
    };
    assert_eq!(
        texts(&now(&manifests, Vec::new(), None).permissions),
        [
            "create secrets/web in namespace shop",
            "patch secrets/web in namespace shop"
        ]
    );
}

#[test]
fn a_run_that_writes_nothing_needs_nothing() {
    let needed = now(&Desired::default(), Vec::new(), Some(&parent_of(&[])));
    assert_eq!(needed, NeededPermissions::default());
}

#[test]
fn permissions_that_the_run_itself_may_grant_are_omitted() {
    let mut widget = desired("Widget.example.com", Some("shop"), "w");
    let mut promised = (*widget.resource).clone();
    promised.origin = Origin::NotYetServed;
    widget.resource = Arc::new(promised);
    let is_asked = |manifests: &Desired| {
        let needed = now(manifests, Vec::new(), None);
        needed.permissions.iter().any(|right| right.resource == "widgets")
    };
    assert!(is_asked(&manifests(vec![widget.clone()])));
    assert!(!is_asked(&manifests(vec![
        widget,
        desired(CLUSTER_ROLE, None, "r")
    ])));

    let manifests = manifests(vec![desired("Namespace", None, "new")]);
    let needed = now(&manifests, Vec::new(), None);
    assert_eq!(needed.created_namespaces, BTreeSet::from(["new".to_owned()]));
    let members = vec![live("Namespace", None, "new")];
    assert!(now(&manifests, members, None).created_namespaces.is_empty());
}
