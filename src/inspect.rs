//! What can be said of a set from its parent's record and its live members.
//!
//! Pure. `list` and `view` show it; nothing is read or mended here.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::applyset::parent::{Bookkeeping, Reading, RecordedKinds};
use crate::applyset::{ApplySetId, ParentIdentity, Record};
use crate::discovery::{Discovery, KindLookup, Origin, Resource, Scope};
use crate::identity::GroupKind;
use crate::observe::{Live, ParentObject, Place, Places, Presence, Reach};
use crate::readiness::{Readiness, State, readiness};

/// A set as it was found in the cluster.
#[derive(Debug, Clone)]
pub struct FoundSet {
    /// The id that follows from the parent's identity.
    pub id: ApplySetId,
    /// The parent.
    pub identity: ParentIdentity,
    /// Its bookkeeping.
    pub reading: Reading,
    /// Objects that carry the id, by namespace, kind and name.
    pub members: Vec<Live>,
    /// Collections that may hold members, and that could not be read.
    pub unread: Vec<Place>,
}

/// What there is to say of one member besides its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberState {
    /// How far it has come.
    pub readiness: Readiness,
    /// `metadata.creationTimestamp`.
    pub created: Option<String>,
}

impl MemberState {
    /// Judges a member by the whole object.
    pub fn of(object: &Value, live: &Live) -> Self {
        let mut readiness = readiness(object, &live.key.group_kind);
        // A namespace tells in its conditions what it waits for.
        if readiness.state == State::Terminating && !live.waits_for.is_empty() {
            readiness.reason = format!("it is being deleted, and waits: {}", live.waits_for.join("; "));
        }
        let created = object.pointer("/metadata/creationTimestamp");
        Self {
            readiness,
            created: created.and_then(Value::as_str).map(str::to_owned),
        }
    }
}

/// In what state a set is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The record is exactly what the members need.
    Consistent,
    /// The record is wider than that: a run was interrupted, or something failed.
    Unfinished,
    /// Something is wrong with the bookkeeping, or could not be looked at.
    InDoubt,
}

/// How many of the places that may hold members were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// All: the members are those that were found.
    Whole,
    /// Some: there may be more members.
    Part,
    /// None: nothing is known of the members.
    Nothing,
}

/// What the server says of an entry of the recorded kinds.
enum Entry<'a> {
    /// It serves it.
    Served(&'a Resource),
    /// It does not.
    Absent,
    /// It could not tell, for this reason.
    Unknowable(String),
}

impl FoundSet {
    /// A set whose members are not known yet.
    pub fn new(identity: ParentIdentity, parent: &ParentObject) -> Self {
        Self {
            id: ApplySetId::of(&identity),
            identity,
            reading: parent.reading.clone(),
            members: Vec::new(),
            unread: Vec::new(),
        }
    }

    /// The recorded kinds as `Kind.group`, served or not; `None` where the record cannot
    /// be read. An entry of the deprecated `resource.group` form stays as it is where its
    /// kind cannot be found out.
    pub fn group_kinds(&self, discovery: &Discovery) -> Option<Vec<String>> {
        let bookkeeping = self.bookkeeping()?;
        Some(entries(bookkeeping, discovery).into_keys().collect())
    }

    /// The namespaces that members live or may live in, the parent's own included where
    /// a member does; `None` where the record cannot be read.
    pub fn namespaces(&self) -> Option<BTreeSet<String>> {
        let recorded = self.bookkeeping()?.additional_namespaces.iter().cloned();
        let lived_in = self.members.iter().filter_map(|live| live.key.namespace.clone());
        Some(recorded.chain(lived_in).collect())
    }

    /// How much of it was seen.
    pub fn sight(&self, discovery: &Discovery) -> Sight {
        let Some(bookkeeping) = self.bookkeeping() else {
            return Sight::Nothing;
        };
        let is_unknowable = |entry: &Entry| matches!(entry, Entry::Unknowable(_));
        let has_unknowable = entries(bookkeeping, discovery).values().any(is_unknowable);
        if self.unread.is_empty() && !has_unknowable {
            return Sight::Whole;
        }
        let collections = places(slice::from_ref(self), discovery).lists(Reach::Namespace);
        if self.members.is_empty() && self.unread.len() == collections.len() {
            Sight::Nothing
        } else {
            Sight::Part
        }
    }

    /// In what state it is.
    pub fn status(&self, discovery: &Discovery) -> Status {
        let Some(bookkeeping) = self.bookkeeping() else {
            return Status::InDoubt;
        };
        if !self.unread.is_empty() || !self.doubts(discovery).is_empty() {
            return Status::InDoubt;
        }
        // Members on their way out account for the record until they are gone.
        if self.lived_in(|_| true).covers(&record(bookkeeping, discovery)) {
            Status::Consistent
        } else {
            Status::Unfinished
        }
    }

    /// What speaks against the record, in words; collections that could not be read, and
    /// faults of the bookkeeping, are not told again.
    pub fn doubts(&self, discovery: &Discovery) -> Vec<String> {
        let Some(bookkeeping) = self.bookkeeping() else {
            return Vec::new();
        };
        let has_no_namespace =
            self.identity.namespace.is_none() && bookkeeping.additional_namespaces.is_empty();
        let mut doubts: Vec<String> = entries(bookkeeping, discovery)
            .into_iter()
            .filter_map(|(kind, entry)| match entry {
                Entry::Absent => Some(format!("the recorded kind {kind} is not served by the cluster")),
                Entry::Unknowable(reason) => Some(format!(
                    "members of the recorded kind {kind} could not be looked for: {reason}"
                )),
                Entry::Served(resource) if has_no_namespace && resource.scope == Scope::Namespaced => Some(
                    format!("the recorded kind {kind} is namespaced, and no namespace is recorded"),
                ),
                Entry::Served(_) => None,
            })
            .collect();
        let record = record(bookkeeping, discovery);
        let lived_in = self.lived_in(|live| live.presence == Presence::Present);
        if !record.covers(&lived_in) {
            let kinds = lived_in.group_kinds.difference(&record.group_kinds);
            let kinds = kinds.map(ToString::to_string);
            let namespaces = lived_in
                .additional_namespaces
                .difference(&record.additional_namespaces);
            let namespaces = namespaces.map(|namespace| format!("namespace {namespace}"));
            let places: Vec<String> = kinds.chain(namespaces).collect();
            doubts.push(format!(
                "there are members outside the record: {}",
                places.join(", ")
            ));
        }
        doubts
    }

    fn bookkeeping(&self) -> Option<&Bookkeeping> {
        match &self.reading {
            Reading::Parent(bookkeeping) => Some(bookkeeping),
            Reading::NoBookkeeping | Reading::Unfinished(_) | Reading::Faulty(_) => None,
        }
    }

    /// The record that the members need that count.
    fn lived_in(&self, counts: impl Fn(&Live) -> bool) -> Record {
        let mut lived_in = Record::default();
        for Live { key, .. } in self.members.iter().filter(|live| counts(live)) {
            lived_in.add_place(
                &key.group_kind,
                key.namespace.as_deref(),
                self.identity.namespace.as_deref(),
            );
        }
        lived_in
    }
}

/// Where the members of these sets may be.
pub fn places(sets: &[FoundSet], discovery: &Discovery) -> Places {
    let mut resources: BTreeMap<GroupKind, Arc<Resource>> = BTreeMap::new();
    let mut namespaces = BTreeSet::new();
    for set in sets {
        if let Reading::Parent(bookkeeping) = &set.reading {
            resources.extend(recorded_resources(bookkeeping, discovery));
            namespaces.extend(bookkeeping.additional_namespaces.iter().cloned());
            namespaces.extend(set.identity.namespace.clone());
        }
    }
    Places {
        resources: resources.into_values().collect(),
        namespaces,
    }
}

/// The same places in parts that can be looked at one by one: by resource, and those of
/// one resource by namespace; empty where they cannot be told apart any further.
pub fn parts(places: &Places) -> Vec<Places> {
    let of_namespace = |namespace: &String| Places {
        resources: places.resources.clone(),
        namespaces: BTreeSet::from([namespace.clone()]),
    };
    let of_resource = |resource: &Arc<Resource>| Places {
        resources: vec![Arc::clone(resource)],
        namespaces: places.namespaces.clone(),
    };
    match places.resources.as_slice() {
        [resource] if resource.scope == Scope::Cluster || places.namespaces.len() < 2 => Vec::new(),
        [_] => places.namespaces.iter().map(of_namespace).collect(),
        resources => resources.iter().map(of_resource).collect(),
    }
}

/// Gives each set its members out of those found in the places of all of them, and what
/// of its own places is among those that could not be read.
pub fn assign(sets: &mut [FoundSet], mut members: Vec<Live>, unread: &[Place], discovery: &Discovery) {
    members.sort_by(|one, other| {
        let order = |live: &Live| {
            (
                live.key.namespace.clone(),
                live.key.group_kind.clone(),
                live.key.name.clone(),
            )
        };
        order(one).cmp(&order(other))
    });
    for set in sets {
        let is_member =
            |live: &&Live| live.part_of.as_deref() == Some(set.id.as_str()) && live.key != set.identity;
        set.members = members.iter().filter(is_member).cloned().collect();
        if let Some(bookkeeping) = set.bookkeeping() {
            let kinds = record(bookkeeping, discovery).group_kinds;
            drop_second_names(&mut set.members, &kinds);
        }
        let own = places(slice::from_ref(set), discovery).lists(Reach::Namespace);
        set.unread = own.into_iter().filter(|place| unread.contains(place)).collect();
    }
}

/// Two groups can serve one object: where it was found under a recorded kind, and under
/// another that was listed for another set, the latter says nothing.
fn drop_second_names(members: &mut Vec<Live>, kinds: &BTreeSet<GroupKind>) {
    let is_recorded = |live: &Live| kinds.contains(&live.key.group_kind);
    let recorded = members.iter().filter(|live| is_recorded(live));
    let uids: BTreeSet<String> = recorded.map(|live| live.uid.clone()).collect();
    members.retain(|live| is_recorded(live) || !uids.contains(&live.uid));
}

/// The record with its kinds as they are served; entries of the deprecated form whose
/// kind cannot be found out are not in it.
fn record(bookkeeping: &Bookkeeping, discovery: &Discovery) -> Record {
    let group_kinds = match &bookkeeping.kinds {
        RecordedKinds::GroupKinds(kinds) => kinds.clone(),
        RecordedKinds::GroupResources(_) => recorded_resources(bookkeeping, discovery).into_keys().collect(),
    };
    Record {
        group_kinds,
        additional_namespaces: bookkeeping.additional_namespaces.clone(),
    }
}

fn recorded_resources(
    bookkeeping: &Bookkeeping,
    discovery: &Discovery,
) -> BTreeMap<GroupKind, Arc<Resource>> {
    entries(bookkeeping, discovery)
        .into_values()
        .filter_map(|entry| match entry {
            Entry::Served(resource) => Some((resource.group_kind(), Arc::new(resource.clone()))),
            Entry::Absent | Entry::Unknowable(_) => None,
        })
        .collect()
}

/// The recorded kinds by the names to show.
fn entries<'a>(bookkeeping: &Bookkeeping, discovery: &'a Discovery) -> BTreeMap<String, Entry<'a>> {
    match &bookkeeping.kinds {
        RecordedKinds::GroupKinds(kinds) => kinds
            .iter()
            .map(|kind| (kind.to_string(), Entry::of(discovery.preferred(kind))))
            .collect(),
        RecordedKinds::GroupResources(resources) => resources
            .iter()
            .map(|(resource, group)| {
                let entry = Entry::of(discovery.group_resource(resource, group));
                let name = match entry {
                    Entry::Served(resource) => resource.group_kind(),
                    Entry::Absent | Entry::Unknowable(_) => GroupKind::new(group, resource),
                };
                (name.to_string(), entry)
            })
            .collect(),
    }
}

impl<'a> Entry<'a> {
    fn of(lookup: KindLookup<'a>) -> Self {
        match lookup {
            KindLookup::Found(resource) if resource.origin == Origin::Served => Self::Served(resource),
            KindLookup::Found(_) | KindLookup::Absent => Self::Absent,
            KindLookup::GroupFailed(failure) => Self::Unknowable(failure.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::applyset::Tooling;

    fn resource(group: &str, kind: &str, scope: Scope) -> Resource {
        Resource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            scope,
            verbs: vec!["list".to_owned()],
            origin: Origin::Served,
        }
    }

    fn discovery() -> Discovery {
        Discovery::of(vec![
            resource("", "ConfigMap", Scope::Namespaced),
            resource("", "Event", Scope::Namespaced),
            resource("", "Namespace", Scope::Cluster),
            resource("events.k8s.io", "Event", Scope::Namespaced),
        ])
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
            id: ApplySetId::of(&identity),
            identity,
            reading: Reading::Parent(Bookkeeping {
                tooling: Tooling::ours(),
                kinds: RecordedKinds::GroupKinds(kinds.iter().map(|text| kind(text)).collect()),
                additional_namespaces: namespaces.iter().map(|&name| name.to_owned()).collect(),
            }),
            members: Vec::new(),
            unread: Vec::new(),
        }
    }

    fn live(kind_text: &str, namespace: &str, uid: &str, presence: Presence) -> Live {
        let discovery = discovery();
        let KindLookup::Found(resource) = discovery.preferred(&kind(kind_text)) else {
            panic!("no {kind_text}");
        };
        let metadata = serde_json::json!({
            "name": "one", "namespace": namespace, "uid": uid, "resourceVersion": "1",
            "labels": {crate::applyset::PART_OF_LABEL: set(&[], &[]).id.as_str()},
        });
        let object = serde_json::json!({"metadata": metadata});
        Live {
            presence,
            ..Live::of(&object, &Arc::new(resource.clone())).expect("a whole object")
        }
    }

    /// The set after its members were looked for.
    fn looked_at(mut set: FoundSet, members: &[Live], unread: &[Place]) -> FoundSet {
        assign(slice::from_mut(&mut set), members.to_vec(), unread, &discovery());
        set
    }

    #[test]
    fn the_status_compares_the_record_with_what_lives() {
        use Presence::{Present, Terminating};
        use Status::{Consistent, InDoubt, Unfinished};
        let here = |presence| live("ConfigMap", "home", "1", presence);
        let away = |presence| live("ConfigMap", "away", "2", presence);
        let table = [
            (set(&[], &[]), vec![], Consistent),
            (set(&["ConfigMap"], &[]), vec![here(Present)], Consistent),
            (set(&["ConfigMap"], &[]), vec![], Unfinished),
            (set(&["ConfigMap"], &["away"]), vec![here(Present)], Unfinished),
            // What is going away still accounts for the record, and no longer has to be in it.
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
            // What lives outside the record would be forgotten.
            (
                set(&["ConfigMap"], &[]),
                vec![here(Present), away(Present)],
                InDoubt,
            ),
            (set(&["Namespace"], &[]), vec![here(Present)], InDoubt),
            // A kind that is not served is recorded all the same.
            (
                set(&["ConfigMap", "Gone.example.com"], &[]),
                vec![here(Present)],
                InDoubt,
            ),
        ];
        for (index, (set, members, status)) in table.into_iter().enumerate() {
            let set = looked_at(set, &members, &[]);
            assert_eq!(set.status(&discovery()), status, "case {index}");
            let is_in_doubt = status == InDoubt;
            assert_eq!(!set.doubts(&discovery()).is_empty(), is_in_doubt, "case {index}");
            assert_eq!(set.sight(&discovery()), Sight::Whole, "case {index}");
        }
    }

    #[test]
    fn recorded_kinds_are_shown_as_recorded() {
        let recorded = set(&["ConfigMap", "Gone.example.com"], &[]);
        let kinds = recorded.group_kinds(&discovery()).expect("a record");
        assert_eq!(kinds, ["ConfigMap", "Gone.example.com"]);
        let mut faulty = recorded;
        faulty.reading = Reading::Faulty(Vec::new());
        assert_eq!(faulty.group_kinds(&discovery()), None);
        assert_eq!(faulty.namespaces(), None);
        assert_eq!(faulty.sight(&discovery()), Sight::Nothing);
        assert_eq!(faulty.status(&discovery()), Status::InDoubt);
    }

    #[test]
    fn what_could_not_be_read_is_known_to_be_unknown() {
        let place = |kind_text: &str, namespace: Option<&str>| Place {
            resource: live(kind_text, "home", "1", Presence::Present).resource,
            namespace: namespace.map(str::to_owned),
        };
        let [config_maps, events] = ["ConfigMap", "Event"].map(|kind| place(kind, Some("home")));
        let member = live("ConfigMap", "home", "1", Presence::Present);
        let recorded = || set(&["ConfigMap", "Event"], &[]);

        let nothing = looked_at(recorded(), &[], &[config_maps, events.clone()]);
        assert_eq!(nothing.sight(&discovery()), Sight::Nothing);
        let part = looked_at(recorded(), slice::from_ref(&member), slice::from_ref(&events));
        assert_eq!(part.sight(&discovery()), Sight::Part);
        assert_eq!(part.status(&discovery()), Status::InDoubt);
        // Places of other sets are of no concern.
        let others = [place("Event", Some("away")), place("Namespace", None)];
        let whole = looked_at(set(&["ConfigMap"], &[]), &[member], &others);
        assert_eq!(whole.sight(&discovery()), Sight::Whole);
        assert_eq!(whole.status(&discovery()), Status::Consistent);
    }

    #[test]
    fn an_object_that_two_groups_serve_is_one_member() {
        let names = ["Event", "Event.events.k8s.io"];
        let members = names.map(|kind| live(kind, "home", "1", Presence::Present));
        let set = looked_at(set(&["Event"], &[]), &members, &[]);
        assert_eq!(set.members.len(), 1);
        assert_eq!(set.status(&discovery()), Status::Consistent);
    }

    #[test]
    fn places_fall_apart_into_single_lists() {
        let discovery = discovery();
        let whole = places(&[set(&["ConfigMap", "Namespace"], &["away"])], &discovery);
        let mut rest = vec![whole];
        let mut single = 0;
        while let Some(next) = rest.pop() {
            let parts = parts(&next);
            if parts.is_empty() {
                assert_eq!(next.lists(Reach::Namespace).len(), 1, "{next:?}");
                single += 1;
            }
            rest.extend(parts);
        }
        assert_eq!(single, 3);
    }
}
