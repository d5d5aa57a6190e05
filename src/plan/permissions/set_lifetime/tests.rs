use std::collections::BTreeSet;

use k8s_openapi::api::authorization::v1::SubjectRulesReviewStatus;
use serde_json::{Value, json};

use super::*;
use crate::manifest::desired::DesiredObject;
use crate::model::applyset::ParentIdentity;
use crate::model::object::Object;
use crate::model::permission::rules_allow;
use crate::plan::fixtures::{desired, live, resource, set};
use crate::plan::permissions::tests::{manifests, right, texts};
use crate::plan::permissions::{Grant, RbacSubject, comment_on_secrets, name_for_set, objects_that_grant};

const ROLE: &str = "Role.rbac.authorization.k8s.io";
const CLUSTER_ROLE: &str = "ClusterRole.rbac.authorization.k8s.io";
const ROLE_BINDING: &str = "RoleBinding.rbac.authorization.k8s.io";
const CRD: &str = "CustomResourceDefinition.apiextensions.k8s.io";

fn with(mut object: DesiredObject, fields: &Value) -> DesiredObject {
    let mut value = object.object.value();
    for (field, manifests) in fields.as_object().expect("a mapping") {
        value[field] = manifests.clone();
    }
    object.object = Object::from(&value);
    object
}

/// The permissions for the life of the set of fixtures.
fn ever(manifests: &Desired, past: &Past, served: Vec<Resource>) -> BTreeSet<Permission> {
    let parent = resource("Secret", Scope::Namespaced);
    needed_for_every_run(
        &set(),
        &parent,
        manifests,
        past,
        &Discovery::from_resources(served),
    )
}

#[test]
fn a_set_needs_its_parent_by_name_and_its_kinds_where_they_live() {
    let manifests = manifests(vec![
        desired("ConfigMap", Some("other"), "a"),
        desired("PriorityClass.scheduling.k8s.io", None, "high"),
    ]);
    assert_eq!(
        texts(&ever(&manifests, &Past::default(), Vec::new())),
        [
            "get priorityclasss.scheduling.k8s.io/high",
            "list priorityclasss.scheduling.k8s.io",
            "create priorityclasss.scheduling.k8s.io/high",
            "patch priorityclasss.scheduling.k8s.io/high",
            "delete priorityclasss.scheduling.k8s.io/high",
            "get configmaps in namespace other",
            "list configmaps in namespace other",
            "create configmaps in namespace other",
            "patch configmaps in namespace other",
            "delete configmaps in namespace other",
            "get namespaces/other in namespace other",
            "list configmaps in namespace shop",
            "get namespaces/shop in namespace shop",
            "get secrets/web in namespace shop",
            "create secrets in namespace shop",
            "patch secrets/web in namespace shop",
            "delete secrets/web in namespace shop",
        ]
    );
}

#[test]
fn a_comparison_only_gets_and_lists() {
    let manifests = manifests(vec![
        desired("ConfigMap", Some("shop"), "a"),
        desired("Secret", Some("shop"), "b"),
        with(desired(ROLE, Some("shop"), "r"), &json!({"rules": [{}]})),
    ]);
    let parent = resource("Secret", Scope::Namespaced);
    let discovery = Discovery::from_resources(Vec::new());
    let needed = needed_to_compare(&set(), &parent, &manifests, &Past::default(), &discovery);
    let verbs: BTreeSet<Verb> = needed.iter().map(|permission| permission.verb).collect();
    assert_eq!(verbs, BTreeSet::from([Verb::Get, Verb::List]));
    let all = ever(&manifests, &Past::default(), Vec::new());
    assert!(needed.is_subset(&all));
    // Secrets have a rule of their own, and a comment.
    let subject = RbacSubject::User("jane".to_owned());
    let objects = objects_that_grant("n", &needed, std::slice::from_ref(&subject), "shop");
    let on_secrets = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]});
    let rules = objects[0]["rules"].as_array().expect("rules");
    assert!(rules.contains(&on_secrets), "{rules:?}");
    let comments: Vec<_> = objects.iter().map(comment_on_secrets).collect();
    assert!(
        matches!(comments[..], [Some(comment), None] if comment.contains("all Secrets")),
        "{comments:?}"
    );
}

#[test]
fn what_left_the_manifests_can_still_be_pruned() {
    let past = Past {
        places: ListTargets {
            resources: vec![
                resource("Service", Scope::Namespaced),
                resource(CRD, Scope::Cluster),
            ],
            namespaces: BTreeSet::from(["old".to_owned()]),
        },
        members: vec![
            live("Service", Some("old"), "s"),
            live(CRD, None, "widgets.example.com"),
        ],
        undiscovered: BTreeSet::new(),
    };
    let permissions = texts(&ever(&manifests(Vec::new()), &past, Vec::new()));
    for expected in [
        "list services in namespace old",
        "list services in namespace shop",
        "delete services in namespace old",
        "list customresourcedefinitions.apiextensions.k8s.io",
        "delete customresourcedefinitions.apiextensions.k8s.io/widgets.example.com",
        "list widgets.example.com",
    ] {
        assert!(
            permissions.contains(&expected.to_owned()),
            "{expected}: {permissions:#?}"
        );
    }
    assert!(!permissions.contains(&"delete services in namespace shop".to_owned()));
}

#[test]
fn what_is_gone_is_seen_by_definitions_and_api_services() {
    let cluster_wide = [
        "get customresourcedefinitions.apiextensions.k8s.io",
        "list apiservices.apiregistration.k8s.io",
        "list customresourcedefinitions.apiextensions.k8s.io",
    ];
    let undiscovered = Past {
        undiscovered: BTreeSet::from([GroupKind::new("example.com", "Gone")]),
        ..Past::default()
    };
    let table = [
        ("ConfigMap", &Past::default(), false),
        ("Widget.example.com", &Past::default(), true),
        ("ConfigMap", &undiscovered, true),
    ];
    for (kind, past, expected) in table {
        let permissions = texts(&ever(
            &manifests(vec![desired(kind, Some("shop"), "a")]),
            past,
            Vec::new(),
        ));
        for right in cluster_wide {
            assert_eq!(
                permissions.contains(&right.to_owned()),
                expected,
                "{kind}: {right}"
            );
        }
    }
}

#[test]
fn a_custom_parent_is_never_made_up_and_its_definition_is_read() {
    let mut custom = set();
    custom.parent.group_kind = GroupKind::new("example.com", "WidgetSet");
    let parent = resource("WidgetSet.example.com", Scope::Namespaced);
    let manifests = manifests(Vec::new());
    let permissions = needed_for_every_run(
        &custom,
        &parent,
        &manifests,
        &Past::default(),
        &Discovery::from_resources(Vec::new()),
    );
    assert_eq!(
        texts(&permissions),
        [
            "get customresourcedefinitions.apiextensions.k8s.io/widgetsets.example.com",
            "get namespaces/shop in namespace shop",
            "get widgetsets.example.com/web in namespace shop",
            "patch widgetsets.example.com/web in namespace shop",
            "delete widgetsets.example.com/web in namespace shop",
        ]
    );
}

#[test]
fn objects_that_grant_power_need_permissions() {
    let rules = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    let to = |kind: &str| json!({"roleRef": {"kind": kind, "name": "view"}});
    let role = || desired(ROLE, Some("shop"), "r");
    let role_binding = || desired(ROLE_BINDING, Some("shop"), "b");
    let table = [
        (
            with(role(), &rules),
            "escalate roles.rbac.authorization.k8s.io/r in namespace shop",
        ),
        (with(role(), &json!({"rules": []})), ""),
        (role(), ""),
        (
            with(desired(CLUSTER_ROLE, None, "c"), &json!({"aggregationRule": {}})),
            "escalate clusterroles.rbac.authorization.k8s.io/c",
        ),
        (
            with(role_binding(), &to("ClusterRole")),
            "bind clusterroles.rbac.authorization.k8s.io/view in namespace shop",
        ),
        (
            with(role_binding(), &to("Role")),
            "bind roles.rbac.authorization.k8s.io/view in namespace shop",
        ),
        (desired("ConfigMap", Some("shop"), "a"), ""),
    ];
    for (object, expected) in table {
        let case = object.object.value().to_string();
        let needed = object_content::needed_for_content(&object);
        assert_eq!(texts(&needed).join(", "), expected, "{case}");
    }
}

#[test]
fn permissions_become_the_fewest_rules() {
    let place = Some("shop");
    let permissions = BTreeSet::from([
        right(Verb::List, "ConfigMap", place, None),
        right(Verb::Patch, "ConfigMap", place, None),
        right(Verb::Patch, "ConfigMap", place, Some("covered")),
        right(Verb::List, "Service", place, None),
        right(Verb::Patch, "Service", place, None),
        right(Verb::List, "Secret", place, None),
        right(Verb::Get, "Secret", place, Some("a")),
        right(Verb::Get, "Secret", place, Some("b")),
        right(Verb::List, "Node", None, None),
    ]);
    let subject = RbacSubject::User("jane".to_owned());
    let objects = objects_that_grant(
        "applyset:shop:web",
        &permissions,
        std::slice::from_ref(&subject),
        "shop",
    );
    let kinds: Vec<&str> = objects
        .iter()
        .filter_map(|object| object["kind"].as_str())
        .collect();
    assert_eq!(
        kinds,
        ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    );
    assert_eq!(
        objects[0]["rules"],
        json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}])
    );
    assert_eq!(
        objects[2]["metadata"],
        json!({"name": "applyset:shop:web", "namespace": "shop"})
    );
    assert_eq!(
        objects[2]["rules"],
        json!([
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]},
            {"apiGroups": [""], "resources": ["configmaps", "services"], "verbs": ["list", "patch"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a", "b"], "verbs": ["get"]},
        ])
    );
    assert_eq!(
        objects[3]["roleRef"],
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "applyset:shop:web"})
    );
    assert_eq!(
        objects[3]["subjects"],
        json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}])
    );
}

#[test]
fn the_rules_grant_exactly_the_permissions() {
    let manifests = manifests(vec![
        desired("ConfigMap", Some("shop"), "a"),
        desired("Secret", Some("other"), "b"),
        desired("Namespace", None, "other"),
        with(desired(ROLE, Some("shop"), "r"), &json!({"rules": [{}]})),
    ]);
    let permissions = ever(&manifests, &Past::default(), Vec::new());
    let subject = RbacSubject::Group("ops".to_owned());
    for object in objects_that_grant("n", &permissions, std::slice::from_ref(&subject), "shop") {
        let Some(rules) = object.get("rules") else {
            continue;
        };
        let namespace = object["metadata"]["namespace"].as_str();
        let rules: SubjectRulesReviewStatus =
            serde_json::from_value(json!({"resourceRules": rules})).expect("rules");
        for right in &permissions {
            let is_here = right.namespace.as_deref() == namespace;
            let is_given = rules_allow(&rules, right);
            assert!(is_given || !is_here, "{right} is not given");
        }
        let unwanted = right(Verb::Delete, "Secret", namespace, Some("db"));
        let is_wanted = namespace == Some("other");
        assert_eq!(rules_allow(&rules, &unwanted), is_wanted);
    }
}

#[test]
fn service_accounts_live_in_the_sets_namespace_unless_they_name_another() {
    let permissions = BTreeSet::from([right(Verb::List, "Node", None, None)]);
    for (given, expected) in [(None, "shop"), (Some("ci"), "ci")] {
        let subject = RbacSubject::ServiceAccount {
            namespace: given.map(str::to_owned),
            name: "web".to_owned(),
        };
        let objects = objects_that_grant("n", &permissions, std::slice::from_ref(&subject), "shop");
        assert_eq!(
            objects[1]["subjects"],
            json!([{"kind": "ServiceAccount", "namespace": expected, "name": "web"}])
        );
    }
}

#[test]
fn different_sets_have_roles_of_different_names() {
    let role_of = |kind: &str, group: &str, namespace: Option<&str>, set_name: &str| {
        let parent = ParentIdentity {
            group_kind: GroupKind::new(group, kind),
            namespace: namespace.map(str::to_owned),
            name: set_name.to_owned(),
        };
        [Grant::Runs, Grant::ReadOnly].map(|grant| name_for_set(&parent, grant))
    };
    let names = [
        role_of("Secret", "", Some("shop"), "web"),
        role_of("Secret", "", Some("test"), "web"),
        role_of("ConfigMap", "", Some("shop"), "web"),
        role_of("Set", "example.com", Some("shop"), "web"),
        role_of("Set", "example.com", None, "web"),
        role_of("Secret", "", Some("configmap"), "web"),
    ]
    .concat();
    assert_eq!(names[..2], ["applyset:shop:web", "applyset-read-only:shop:web"]);
    assert_eq!(names[4], "applyset:shop:configmap:web");
    assert_eq!(names[8], "applyset:set.example.com:web");
    let distinct: BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
}
