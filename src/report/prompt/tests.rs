use super::screen::{lines, prompt, wanted_answer};
use super::*;
use crate::model::applyset::Tooling;
use crate::model::identity::GroupKind;
use crate::plan::ReasonToKeep;
use crate::report::documents::{ContextAndServer, SetDocument};
use crate::report::style::{Colors, Device};

fn key(kind: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
    let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
    ObjectKey {
        group_kind: GroupKind::new(group, kind),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    }
}

fn question(refusals: Vec<Refusal>, outline: Option<PlanOutline>) -> Question {
    Question {
        set: Some(SetDocument {
            kind: Some("Secret".to_owned()),
            group: Some(String::new()),
            namespace: Some("platform".to_owned()),
            ..SetDocument::from_name("shop")
        }),
        place: ContextAndServer::default(),
        refusals,
        outline,
        device: Device::Terminal {
            columns: 80,
            rows: 24,
        },
        colors: Colors::Off,
    }
}

fn shown(question: &Question) -> Vec<String> {
    let lines = lines(question).into_iter().skip(1).chain([prompt(question)]);
    lines.map(|line| line.text(Colors::Off)).collect()
}

#[test]
fn what_hurts_comes_first_and_the_rest_is_folded() {
    let data = Some("shop-data");
    let claim = key("PersistentVolumeClaim", data, "pg-data");
    let namespace = key("Namespace", None, "shop-data");
    let mut removed = vec![claim.clone(), namespace.clone()];
    removed.extend(["redis", "pg"].map(|name| key("Deployment.apps", data, name)));
    removed.extend((0..20).map(|number| key("Service", data, &format!("s-{number:02}"))));
    let question = question(
        vec![
            Refusal::HoldsOthers {
                container: namespace,
                lost: vec![key("ConfigMap", data, "handmade")],
                uids: BTreeSet::new(),
                unknown: Vec::new(),
            },
            Refusal::PrunesStorage { object: claim },
        ],
        Some(PlanOutline {
            removed,
            unchanged: 24,
            ..PlanOutline::default()
        }),
    );
    assert_eq!(
        shown(&question),
        [
            "Plan: -24 PRUNE of 48 members  (24 unchanged)",
            "",
            "  ! persistentvolumeclaim/pg-data          shop-data   DATA IS LOST",
            "  ! namespace/shop-data                    also deletes 1 object not in the set:",
            "        configmap/handmade",
            "  - deployment.apps/pg, redis              shop-data",
            "  - service/s-00, s-01, s-02 and 17 more   shop-data",
            "2 of these lose data. Type the set's name to continue, Enter to stop:",
        ]
    );
}

#[test]
fn names_of_a_row_are_whole() {
    let row = |names: &[&str]| {
        let removed = names.iter().map(|name| key("ConfigMap", Some("pay"), name));
        let outline = PlanOutline {
            removed: removed.collect(),
            ..PlanOutline::default()
        };
        shown(&question(vec![deletes()], Some(outline)))[2].clone()
    };
    let [first, second, third] = [
        "billing-nightly-export-settings",
        "orders-database-migrations",
        "payments-webhook-signing-keys",
    ];
    assert_eq!(
        row(&[first, second, third]),
        format!("  - configmap/{first} and 2 more   pay")
    );
    assert_eq!(
        row(&[second, third]),
        format!("  - configmap/{second}, {third}   pay")
    );
}

#[test]
fn a_whole_set_wants_its_name_and_a_harmless_change_a_yes() {
    let deletes = Refusal::DeletesSet {
        parent: key("Secret", Some("platform"), "shop"),
        objects: Vec::new(),
    };
    let outline = PlanOutline {
        removed: vec![key("Service", Some("shop"), "web")],
        ..PlanOutline::default()
    };
    assert_eq!(
        shown(&question(vec![deletes], Some(outline))),
        [
            "Plan: -1 DELETE of 1 member, and the set",
            "",
            "  - service/web   shop",
            "Type the set's name to continue, Enter to stop:",
        ]
    );
    let foreign = Refusal::OtherTooling {
        parent: key("Secret", Some("platform"), "shop"),
        found: Tooling::parse("kubectl/v1.36.0").expect("tooling"),
        ours: Tooling::this_program(),
    };
    let lines = shown(&question(vec![foreign], None));
    assert_eq!(
        lines[1].split(": managed by ").next(),
        Some("  ! secret/shop in namespace platform")
    );
    assert_eq!(
        lines.last().map(String::as_str),
        Some("Continue? Only 'yes' is accepted:")
    );
}

fn deletes() -> Refusal {
    Refusal::DeletesSet {
        parent: key("Secret", Some("platform"), "shop"),
        objects: Vec::new(),
    }
}

#[test]
fn kept_objects_are_named_and_keep_the_set() {
    let map = |name: &str| key("ConfigMap", Some("shop"), name);
    let by_annotation = || ReasonToKeep::Protected {
        keep_annotation: "helm.sh/resource-policy: keep".to_owned(),
    };
    let copied = ReasonToKeep::CopiedLabel {
        writers: vec!["kubectl-label".to_owned()],
    };
    let outline = PlanOutline {
        removed: vec![map("a")],
        kept: vec![(map("b"), by_annotation()), (map("c"), copied)],
        ..PlanOutline::default()
    };
    let lines = shown(&question(vec![deletes()], Some(outline)));
    // The object with a copied label is kept, and no member.
    let plan = "Plan: -1 DELETE of 2 members, and the set stays with what is kept  (2 kept)";
    assert_eq!(lines[0], plan);
    assert_eq!(lines[2], "  - configmap/a   shop");
    assert_eq!(
        lines[3..5],
        [
            "  = configmap/b in namespace shop: kept by helm.sh/resource-policy: keep",
            "  = configmap/c in namespace shop: its part-of label was written by",
        ]
    );
    let kept = (0..12).map(|number| (map(&number.to_string()), by_annotation()));
    let outline = PlanOutline {
        kept: kept.collect(),
        ..PlanOutline::default()
    };
    let lines = shown(&question(vec![deletes()], Some(outline)));
    assert_eq!(
        lines[0],
        "Plan: no changes, and the set stays with what is kept  (12 kept)"
    );
    assert!(lines[11].starts_with("  = configmap/9 in"), "{lines:?}");
    assert_eq!(lines[12], "  = and 2 more");
}

#[test]
fn what_does_not_occur_is_not_counted() {
    let map = || vec![key("ConfigMap", Some("shop"), "a")];
    let nothing = PlanOutline::default();
    let creates = PlanOutline {
        created: map(),
        ..PlanOutline::default()
    };
    let prunes = PlanOutline {
        removed: map(),
        unchanged: 1,
        ..creates.clone()
    };
    let empty = |objects| Refusal::EmptyManifests { objects };
    for (refusals, outline, plan, danger) in [
        (vec![deletes()], &nothing, "Plan: DELETE the set", None),
        (
            vec![empty(Vec::new())],
            &nothing,
            "Plan: no changes",
            Some("  ! no objects in the manifests: check the paths given to -f"),
        ),
        (
            vec![empty(map())],
            &prunes,
            "Plan: +1 create  -1 PRUNE of 2 members  (1 unchanged)",
            Some("  ! no objects in the manifests: all members would be pruned"),
        ),
        (Vec::new(), &creates, "Plan: +1 create", None),
    ] {
        let lines = shown(&question(refusals, Some(outline.clone())));
        assert_eq!(lines[0], plan);
        if let Some(danger) = danger {
            assert_eq!(lines[2], danger);
        }
    }
    assert_eq!(empty(Vec::new()).to_string(), "no objects in the manifests");
}

#[test]
fn a_confirmed_change_that_loses_data_wants_the_name_of_the_set() {
    let [database, parent] = ["StatefulSet.apps", "Secret"].map(|kind| key(kind, Some("shop"), "db"));
    let storage = |object| Refusal::PrunesStorage { object };
    let record = |object| Refusal::PrunesParent { object };
    for (object, loss, text) in [
        (database.clone(), storage(database), "DATA IS LOST"),
        (parent.clone(), record(parent), "whose members become orphans"),
    ] {
        let outline = PlanOutline {
            removed: vec![object],
            losses: vec![loss],
            ..PlanOutline::default()
        };
        let question = question(Vec::new(), Some(outline));
        assert!(!wanted_answer(&question).accepts("yes"));
        assert!(wanted_answer(&question).accepts("shop"));
        let lines = shown(&question);
        assert!(lines[2].contains(text), "{lines:?}");
        assert_eq!(
            lines.last().map(String::as_str),
            Some("1 of these loses data. Type the set's name to continue, Enter to stop:")
        );
    }
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    let long = "x".repeat(70);
    let refusals = vec![Refusal::HoldsOthers {
        container: key("Namespace", None, &long),
        lost: (0..30)
            .map(|number| key("ConfigMap", Some("shop"), &format!("{long}{number}")))
            .collect(),
        uids: BTreeSet::new(),
        unknown: vec!["pods".to_owned()],
    }];
    let outline = PlanOutline {
        removed: vec![
            key("Namespace", None, &long),
            key("ConfigMap", Some("shop"), &long),
        ],
        ..PlanOutline::default()
    };
    for line in shown(&question(refusals, Some(outline))) {
        assert!(line.chars().count() <= 110, "{line}");
    }
}

#[test]
fn hidden_objects_are_counted_by_kind() {
    let namespaces = (0..20).map(|number| format!("n-{number:02}"));
    let outline = PlanOutline {
        created: namespaces
            .map(|name| key("ConfigMap", Some(&name), "a"))
            .collect(),
        ..PlanOutline::default()
    };
    let lines = shown(&question(Vec::new(), Some(outline)));
    assert_eq!(lines[lines.len() - 2], "    … and more objects of 1 kind");
}

#[test]
fn objects_that_join_or_leave_a_set_are_listed() {
    let outline = PlanOutline {
        relabeled: Some(
            ["web", "db"]
                .map(|name| key("Service", Some("shop"), name))
                .into(),
        ),
        ..PlanOutline::default()
    };
    let parent = || key("Secret", Some("platform"), "shop");
    let joins = question(
        vec![Refusal::NotAParent { parent: parent() }],
        Some(outline.clone()),
    );
    assert_eq!(
        shown(&joins),
        [
            "Plan: 2 objects join the set",
            "",
            "  ! secret/shop in namespace platform: exists and is not the parent of a set",
            "  ~ service/db, web   shop",
            "Continue? Only 'yes' is accepted:",
        ]
    );
    let forgets = Refusal::DisbandsSet {
        parent: parent(),
        members: 1,
        copies: vec![key("Service", Some("shop"), "db")],
    };
    assert_eq!(
        shown(&question(vec![forgets], Some(outline))),
        [
            "",
            "  ! 1 object leaves the set, but stays in the cluster",
            "        the label is also removed from 1 object that is not a member: service/db",
            "        in namespace shop",
            "  ~ service/db, web   shop",
            "Continue? Only 'yes' is accepted:",
        ]
    );
}

#[test]
fn changes_that_may_be_recreations_are_named() {
    let shop = Some("shop");
    let job = key("Job.batch", shop, "migrate");
    let claim = key("PersistentVolumeClaim", shop, "data");
    let outline = PlanOutline {
        with_data: BTreeSet::from([claim.clone()]),
        changed: vec![key("Service", shop, "web"), job.clone(), claim.clone()],
        recreatable: vec![job.clone(), claim],
        ..PlanOutline::default()
    };
    assert_eq!(
        shown(&question(Vec::new(), Some(outline))),
        [
            "Plan: ~3 change",
            "",
            "  ~ job.batch/migrate            shop",
            "  ~ persistentvolumeclaim/data   shop",
            "  ~ service/web                  shop",
            "2 of these objects may be deleted and created again: persistentvolumeclaim/data",
            "in namespace shop (its data would be lost), job.batch/migrate in namespace shop",
            "Type the set's name to continue, Enter to stop:",
        ]
    );
    let many = (0..12).map(|number| key("Job.batch", shop, &format!("j-{number:02}")));
    let volumes = ["a", "b"].map(|name| key("PersistentVolumeClaim", Some("data"), name));
    let recreatable: Vec<ObjectKey> = many.chain(volumes.clone()).collect();
    let outline = PlanOutline {
        with_data: volumes.into(),
        changed: recreatable.clone(),
        recreatable,
        ..PlanOutline::default()
    };
    let text = shown(&question(Vec::new(), Some(outline))).join(" ");
    for part in [
        "14 of these objects may be deleted and created again: persistentvolumeclaim/a in namespace data (its data",
        "persistentvolumeclaim/b in namespace data (its data would be lost), job.batch/j-00",
        "job.batch/j-07 in namespace shop and 4 more Type the set's name",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_joins_the_set_is_named_with_the_set_that_it_leaves() {
    let shop = Some("shop");
    let leaves = "leaves secret/blog in namespace shop and becomes a member";
    let [a, b, c] = ["a", "b", "c"].map(|name| key("ConfigMap", shop, name));
    let outline = PlanOutline {
        changed: vec![a.clone(), b.clone(), c.clone()],
        joining: vec![
            (b, leaves.to_owned()),
            (a, leaves.to_owned()),
            (c, "existed before".to_owned()),
        ],
        ..PlanOutline::default()
    };
    assert_eq!(
        shown(&question(Vec::new(), Some(outline)))[2..6],
        [
            "  ~ configmap/a, b, c   shop",
            "  ! configmap/c in namespace shop existed before",
            "  ! each of these 2 objects leaves secret/blog in namespace shop and becomes a",
            "    member: configmap/b in namespace shop, configmap/a in namespace shop",
        ]
    );
}

#[test]
fn only_the_wanted_answer_confirms() {
    let name = AnswerWanted::SetName(vec!["shop".to_owned(), "secret/shop".to_owned()]);
    for (typed, wanted, answer, is_ended) in [
        ("yes\n", &AnswerWanted::Yes, true, true),
        (" yes \n", &AnswerWanted::Yes, true, true),
        ("yes", &AnswerWanted::Yes, true, false),
        ("y\n", &AnswerWanted::Yes, false, true),
        ("Yes\n", &AnswerWanted::Yes, false, true),
        ("yes please\n", &AnswerWanted::Yes, false, true),
        ("no\n", &AnswerWanted::Yes, false, true),
        ("N\n", &AnswerWanted::Yes, false, true),
        ("\n", &AnswerWanted::Yes, false, true),
        ("", &AnswerWanted::Yes, false, false),
        ("shop\n", &name, true, true),
        ("secret/shop\n", &name, true, true),
        ("yes\n", &name, false, true),
        ("Shop\n", &name, false, true),
        ("n\n", &name, false, true),
        ("\n", &name, false, true),
        ("", &name, false, false),
    ] {
        assert_eq!(
            read_answer_and_line_end(&mut typed.as_bytes(), wanted),
            (answer, is_ended),
            "{typed:?} {wanted:?}"
        );
    }
    // A set may have the name of an answer.
    let named = AnswerWanted::SetName(vec!["no".to_owned()]);
    assert_eq!(
        read_answer_and_line_end(&mut "no\n".as_bytes(), &named),
        (true, true)
    );
}
