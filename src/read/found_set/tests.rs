use super::*;
use crate::cluster::discovery::{KindLookup, MissingKind};
use crate::model::applyset::{PART_OF_LABEL, Tooling};
use crate::model::live::Presence;
use crate::model::resource::Scope;

fn resource(group: &str, kind: &str, scope: Scope) -> Resource {
    Resource {
        verbs: vec!["list".to_owned()],
        ..Resource::with_regular_names(group, "v1", kind, scope)
    }
}

/// Lists four kinds, and knows that `Gone.example.com` is gone.
fn discovery() -> Discovery {
    let mut discovery = Discovery::from_resources(vec![
        resource("", "ConfigMap", Scope::Namespaced),
        resource("", "Event", Scope::Namespaced),
        resource("", "Namespace", Scope::Cluster),
        resource("events.k8s.io", "Event", Scope::Namespaced),
    ]);
    discovery.set_missing_kinds(BTreeMap::from([(kind("Gone.example.com"), MissingKind::Gone)]));
    discovery
}

fn kind(text: &str) -> GroupKind {
    let (kind, group) = text.split_once('.').unwrap_or((text, ""));
    GroupKind::new(group, kind)
}

/// A set whose parent lives in `home`, with this record.
fn set(kinds: &[&str], namespaces: &[&str]) -> FoundSet {
    let identity = ParentIdentity {
        group_kind: kind("Secret"),
        namespace: Some("home".to_owned()),
        name: "web".to_owned(),
    };
    FoundSet {
        id: ApplySetId::for_parent(&identity),
        identity,
        parent_uid: "uid-of-parent".to_owned(),
        reading: Reading::Parent(ParentAnnotations {
            tooling: Tooling::this_program(),
            kinds: RecordedKinds::GroupKinds(kinds.iter().map(|text| kind(text)).collect()),
            additional_namespaces: namespaces.iter().map(|&name| name.to_owned()).collect(),
        }),
        running: Vec::new(),
        abandoned: Vec::new(),
        last_run: None,
        expires: None,
        members: Vec::new(),
        unread: Vec::new(),
    }
}

fn live(kind_text: &str, namespace: &str, uid: &str, presence: Presence) -> Live {
    let discovery = discovery();
    let KindLookup::Found(resource) = discovery.find_preferred(&kind(kind_text)) else {
        panic!("no {kind_text}");
    };
    let metadata = serde_json::json!({
        "name": "one", "namespace": namespace, "uid": uid, "resourceVersion": "1",
        "labels": {PART_OF_LABEL: set(&[], &[]).id.as_str()},
        "managedFields": [{
            "manager": "applyset",
            "fieldsV1": {"f:metadata": {"f:labels": {(format!("f:{PART_OF_LABEL}")): {}}}},
        }],
    });
    let object = serde_json::json!({"metadata": metadata});
    Live {
        presence,
        ..Live::from_object(&object, &Arc::new(resource.clone())).expect("a whole object")
    }
}

/// Returns the set after its members were listed.
fn looked_at(mut set: FoundSet, members: &[Live], unread: &[ListTarget]) -> FoundSet {
    assign_members(slice::from_mut(&mut set), members.to_vec(), unread, &discovery());
    set
}

#[test]
fn the_status_compares_the_record_with_what_lives() {
    use Presence::{Present, Terminating};
    use RecordStatus::{Consistent, Invalid, Unfinished};
    let here = |presence| live("ConfigMap", "home", "1", presence);
    let away = |presence| live("ConfigMap", "away", "2", presence);
    let table = [
        (set(&[], &[]), vec![], Consistent),
        (set(&["ConfigMap"], &[]), vec![here(Present)], Consistent),
        (set(&["ConfigMap"], &[]), vec![], Unfinished),
        (set(&["ConfigMap"], &["away"]), vec![here(Present)], Unfinished),
        // An object that is being deleted accounts for the record, but does not need it.
        (
            set(&["ConfigMap"], &["away"]),
            vec![here(Present), away(Terminating)],
            Consistent,
        ),
        (
            set(&["ConfigMap"], &[]),
            vec![here(Present), away(Terminating)],
            Consistent,
        ),
        // Members outside the record would be forgotten.
        (
            set(&["ConfigMap"], &[]),
            vec![here(Present), away(Present)],
            Invalid,
        ),
        (set(&["Namespace"], &[]), vec![here(Present)], Invalid),
    ];
    for (index, (set, members, status)) in table.into_iter().enumerate() {
        let set = looked_at(set, &members, &[]);
        assert_eq!(set.status(&discovery()), status, "case {index}");
        let is_invalid = status == Invalid;
        assert_eq!(
            !set.describe_record_inconsistencies(&discovery()).is_empty(),
            is_invalid,
            "case {index}"
        );
        assert_eq!(
            set.determine_visible_part_of_scope(&discovery()),
            Visibility::Whole,
            "case {index}"
        );
    }
}

#[test]
fn a_recorded_kind_that_is_gone_is_unfinished_and_warned_of() {
    let member = live("ConfigMap", "home", "1", Presence::Present);
    let set = looked_at(set(&["ConfigMap", "Gone.example.com"], &[]), &[member], &[]);
    assert_eq!(set.status(&discovery()), RecordStatus::Unfinished);
    assert_eq!(set.describe_record_inconsistencies(&discovery()).len(), 1);
}

#[test]
fn recorded_kinds_are_shown_as_recorded() {
    let recorded = set(&["ConfigMap", "Gone.example.com"], &[]);
    let kinds = recorded.recorded_kind_names(&discovery()).expect("a record");
    assert_eq!(kinds, ["ConfigMap", "Gone.example.com"]);
    let mut faulty = recorded;
    faulty.reading = Reading::Faulty(Vec::new());
    assert_eq!(faulty.recorded_kind_names(&discovery()), None);
    assert_eq!(faulty.recorded_and_member_namespaces(), None);
    assert_eq!(
        faulty.determine_visible_part_of_scope(&discovery()),
        Visibility::Nothing
    );
    assert_eq!(faulty.status(&discovery()), RecordStatus::Invalid);
}

#[test]
fn what_could_not_be_read_is_known_to_be_unknown() {
    let place = |kind_text: &str, namespace: Option<&str>| ListTarget {
        resource: live(kind_text, "home", "1", Presence::Present).resource,
        namespace: namespace.map(str::to_owned),
    };
    let [config_maps, events] = ["ConfigMap", "Event"].map(|kind| place(kind, Some("home")));
    let member = live("ConfigMap", "home", "1", Presence::Present);
    let recorded = || set(&["ConfigMap", "Event"], &[]);

    let nothing = looked_at(recorded(), &[], &[config_maps, events.clone()]);
    assert_eq!(
        nothing.determine_visible_part_of_scope(&discovery()),
        Visibility::Nothing
    );
    let part = looked_at(recorded(), slice::from_ref(&member), slice::from_ref(&events));
    assert_eq!(
        part.determine_visible_part_of_scope(&discovery()),
        Visibility::Part
    );
    assert_eq!(part.status(&discovery()), RecordStatus::Unknown);
    // Collections of other sets do not matter.
    let others = [place("Event", Some("away")), place("Namespace", None)];
    let whole = looked_at(set(&["ConfigMap"], &[]), &[member], &others);
    assert_eq!(
        whole.determine_visible_part_of_scope(&discovery()),
        Visibility::Whole
    );
    assert_eq!(whole.status(&discovery()), RecordStatus::Consistent);
}

#[test]
fn copies_of_the_label_do_not_widen_the_record_and_account_for_it() {
    let copy = |kind| Live {
        part_of_writers: vec!["endpoint-controller".to_owned()],
        ..live(kind, "home", "2", Presence::Present)
    };
    let member = live("ConfigMap", "home", "1", Presence::Present);
    for kinds in [&["ConfigMap"][..], &["ConfigMap", "Event"]] {
        let set = looked_at(set(kinds, &[]), &[member.clone(), copy("Event")], &[]);
        assert_eq!(set.status(&discovery()), RecordStatus::Consistent, "{kinds:?}");
    }
}

#[test]
fn a_first_run_that_recorded_nothing_is_unfinished() {
    let mut begun = set(&[], &[]);
    begun.reading = Reading::Unfinished(Tooling::this_program());
    assert_eq!(begun.status(&discovery()), RecordStatus::Unfinished);
}

#[test]
fn an_object_that_two_groups_serve_is_one_member() {
    let names = ["Event", "Event.events.k8s.io"];
    let members = names.map(|kind| live(kind, "home", "1", Presence::Present));
    for kinds in [&names[..1], &names[1..]] {
        let set = looked_at(set(kinds, &[]), &members, &[]);
        assert_eq!(set.members.len(), 1);
        assert_eq!(set.status(&discovery()), RecordStatus::Consistent);
    }
    assert_eq!(looked_at(set(&names, &[]), &members, &[]).members.len(), 1);
}
