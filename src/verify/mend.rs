//! What `--fix` writes on a parent, and why it does not.
//!
//! Only the bookkeeping of a set that is this program's is written, and only what is
//! certain: a record is widened to cover what was seen; it is narrowed, or made up where
//! it cannot be read, only after the whole cluster was looked at. No object is deleted,
//! and no member is touched.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::parent::annotations_size;
use super::record::{accounted, members, needed, served};
use super::values::{namespaces, tooling, understood};
use super::{Examined, Extent, NewNamespaces, ParentKind, Surroundings};
use crate::cluster::discovery::Discovery;
use crate::compare::ownership::{FOREIGN_PARENT_FIELD_MANAGER, PARENT_FIELD_MANAGER};
use crate::model::applyset::parent::{
    ANNOTATIONS_LIMIT, Bookkeeping, Pairs, ParentFault, Reading, RecordedKinds, read,
};
use crate::model::applyset::record::InvalidValue;
use crate::model::applyset::{
    ADDITIONAL_NAMESPACES_ANNOTATION, GROUP_KINDS_ANNOTATION, GROUP_RESOURCES_ANNOTATION, ID_LABEL,
    PART_OF_LABEL, Record, TOOLING_ANNOTATION, Tooling,
};
use crate::model::live::Presence;
use crate::model::resource::Resource;
use crate::model::set::Set;
use crate::read::ParentCandidate;
use crate::read::inspect::FoundSet;
use crate::read::recorded_kinds::{self, Entry};

/// What is written on one parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mend {
    /// The set, as it is written.
    pub set: Set,
    /// The resource of the parent.
    pub resource: Arc<Resource>,
    /// The parent as it was judged; another one is not written.
    pub resource_version: String,
    /// What it will record.
    pub record: Record,
    /// What is taken off it.
    pub removals: Vec<Removal>,
    /// What changes, a line for each key.
    pub changes: Vec<String>,
}

/// A key that is taken off a parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// An annotation.
    Annotation(&'static str),
    /// A label.
    Label(&'static str),
}

/// What would be written; `None` where nothing would change, and the reason where
/// nothing may be written.
pub(super) fn mend(set: &Examined, surroundings: Surroundings<'_>) -> Result<Option<Mend>, String> {
    check_writable(set, surroundings)?;
    let record = target(set, surroundings)?;
    let parent = &set.parent;
    // The version of the program that wrote the parent last is no fault, and stays.
    let keeper = tooling(&parent.object.annotations).unwrap_or_else(Tooling::ours);
    let labels = [(ID_LABEL, set.found.id.to_string())];
    let annotations = [
        (TOOLING_ANNOTATION, keeper.to_string()),
        (GROUP_KINDS_ANNOTATION, record.group_kinds_value()),
        (ADDITIONAL_NAMESPACES_ANNOTATION, record.namespaces_value()),
    ];
    let mut changes = Vec::new();
    changes.extend(
        labels
            .iter()
            .filter_map(|(key, value)| change(&parent.labels, key, value)),
    );
    let current = &parent.object.annotations;
    changes.extend(
        annotations
            .iter()
            .filter_map(|(key, value)| change(current, key, value)),
    );
    let mut removals = Vec::new();
    if current.contains_key(GROUP_RESOURCES_ANNOTATION) {
        removals.push(Removal::Annotation(GROUP_RESOURCES_ANNOTATION));
        changes.push(format!("{GROUP_RESOURCES_ANNOTATION} is taken off"));
    }
    if parent.labels.get(PART_OF_LABEL).map(String::as_str) == Some(set.found.id.as_str()) {
        removals.push(Removal::Label(PART_OF_LABEL));
        changes.push(format!("{PART_OF_LABEL} is taken off"));
    }
    if changes.is_empty() {
        return Ok(None);
    }
    let mend = Mend {
        set: Set {
            id: set.found.id.clone(),
            parent: parent.identity.clone(),
            parent_uid: Some(parent.object.uid.clone()),
            tooling: keeper,
        },
        resource: Arc::clone(&parent.resource),
        resource_version: parent.object.resource_version.clone(),
        record,
        removals,
        changes,
    };
    let size = annotations_size(&mend.applied_to(set).parent.object.annotations);
    if size > ANNOTATIONS_LIMIT {
        return Err(format!(
            "its annotations would take {size} bytes, and the server allows {ANNOTATIONS_LIMIT}"
        ));
    }
    Ok(Some(mend))
}

impl Mend {
    /// The set as it is once this is written.
    pub(super) fn applied_to(&self, set: &Examined) -> Examined {
        let mut parent = set.parent.clone();
        let object = &mut parent.object;
        parent.labels.insert(ID_LABEL.to_owned(), self.set.id.to_string());
        for (key, value) in [
            (TOOLING_ANNOTATION, self.set.tooling.to_string()),
            (GROUP_KINDS_ANNOTATION, self.record.group_kinds_value()),
            (ADDITIONAL_NAMESPACES_ANNOTATION, self.record.namespaces_value()),
        ] {
            object.annotations.insert(key.to_owned(), value);
        }
        for removal in &self.removals {
            match removal {
                Removal::Annotation(key) => object.annotations.remove(*key),
                Removal::Label(key) => parent.labels.remove(*key),
            };
        }
        object.reading = read(&parent.identity, &parent.labels, &object.annotations);
        let mut mended = Examined::new(parent, set.kind);
        mended.found.members.clone_from(&set.found.members);
        mended.found.unread.clone_from(&set.found.unread);
        mended
    }
}

fn change(current: &Pairs, key: &str, value: &str) -> Option<String> {
    let Some(found) = current.get(key) else {
        return Some(format!("{key} {value:?} is added"));
    };
    if found == value {
        return None;
    }
    let becomes = format!("{key} {found:?} becomes {value:?}");
    if key == ID_LABEL || key == TOOLING_ANNOTATION {
        return Some(becomes);
    }
    let (lost, gained) = (beyond(found, value), beyond(value, found));
    Some(match (lost.is_empty(), gained.is_empty()) {
        (true, true) => becomes,
        (false, true) => format!("{key} loses {lost}"),
        (true, false) => format!("{key} gains {gained}"),
        (false, false) => format!("{key} loses {lost} and gains {gained}"),
    })
}

/// The entries of the one list that the other lacks.
fn beyond(one: &str, other: &str) -> String {
    let known: BTreeSet<&str> = other.split(',').collect();
    let shown = |entry: &str| {
        if entry.is_empty() || entry.contains(char::is_whitespace) {
            format!("{entry:?}")
        } else {
            entry.to_owned()
        }
    };
    let missing = one
        .split(',')
        .filter(|entry| !known.contains(entry) && !one.is_empty());
    missing.map(shown).collect::<Vec<_>>().join(", ")
}

/// Whether the parent is this program's to write, and certainly a parent.
fn check_writable(set: &Examined, surroundings: Surroundings<'_>) -> Result<(), String> {
    let parent = &set.parent;
    let annotations = &parent.object.annotations;
    if parent.object.presence == Presence::Terminating {
        return Err("the parent is being deleted".to_owned());
    }
    match set.kind {
        ParentKind::Permitted | ParentKind::Unknown => {}
        ParentKind::Unlabelled | ParentKind::Forbidden => {
            return Err("objects of its kind may not be parents".to_owned());
        }
    }
    let faults = match &parent.object.reading {
        Reading::Parent(_) => &[][..],
        Reading::Faulty(faults) => faults,
        Reading::Unfinished(_) | Reading::NoBookkeeping => {
            return Err("nothing is recorded that could be mended".to_owned());
        }
    };
    if faults.iter().any(is_later_format) {
        return Err("a part of it is written in a later format".to_owned());
    }
    match tooling(annotations) {
        Some(found) if found.is_same_program(&Tooling::ours()) => {}
        Some(found) => {
            return Err(format!(
                "the set is managed by {found}, and only its own tool writes it"
            ));
        }
        None if is_recorded_by_us_alone(parent) => {}
        None => return Err("nobody knows which tool manages the set".to_owned()),
    }
    let has_lost_its_id = faults
        .iter()
        .any(|fault| matches!(fault, ParentFault::WrongId { .. } | ParentFault::IdMissing));
    if has_lost_its_id && members(&set.found, surroundings.appliers).next().is_none() {
        return Err("no member carries the id of this parent, so it may be a copy of another one".to_owned());
    }
    Ok(())
}

/// Whether field ownership shows that the set is this program's: people edit records, and
/// other tools apply them. One that was taken over keeps the traces of its former tool, and
/// nobody knows which of the two came last.
fn is_recorded_by_us_alone(parent: &ParentCandidate) -> bool {
    parent.writers.contains(PARENT_FIELD_MANAGER)
        && !parent.writers.contains(FOREIGN_PARENT_FIELD_MANAGER)
        && parent
            .appliers
            .iter()
            .all(|applier| applier == PARENT_FIELD_MANAGER)
}

fn is_later_format(fault: &ParentFault) -> bool {
    matches!(
        fault,
        ParentFault::LaterIdFormat(_)
            | ParentFault::InvalidValue {
                fault: InvalidValue::LaterFormat(_),
                ..
            }
    )
}

/// What is to be recorded: after a look at everything exactly what is there, else what
/// is recorded and what was seen. What is added and nobody can be certain of is nothing.
fn target(set: &Examined, surroundings: Surroundings<'_>) -> Result<Record, String> {
    let incomplete = |what: &str| format!("{what}, and not everything in the cluster could be looked at");
    let understood = understood(&set.parent);
    let found = match surroundings.new_namespaces {
        NewNamespaces::Included => set.found.clone(),
        NewNamespaces::Excluded => {
            let found = within_namespaces(&set.found, &namespaces(&set.parent));
            // The namespace of a member may be what is missing from such a record.
            let is_whole = understood
                .as_ref()
                .is_some_and(|understood| understood.extent == Extent::Whole);
            if !is_whole && found.members.len() < set.found.members.len() {
                return Err(
                    "a part of the record makes no sense, and only labels say which namespaces have members; \
                     add --include-namespaces if those who wrote them may add to the set"
                        .to_owned(),
                );
            }
            found
        }
    };
    let needed = needed(&found, surroundings.appliers);
    let Some(understood) = understood else {
        return match surroundings.extent {
            Extent::Whole => Ok(needed),
            Extent::Part => Err(incomplete("which kinds there are is not recorded")),
        };
    };
    if surroundings.extent == Extent::Whole {
        let recorded = served(&understood.bookkeeping, surroundings.discovery);
        let unlisted = unlisted(&understood.bookkeeping, surroundings.discovery)?;
        let accounted = intersection(&recorded, &accounted(&found));
        return Ok(needed.union(&accounted).union(&unlisted));
    }
    if understood.extent == Extent::Part {
        return Err(incomplete("a part of the record makes no sense"));
    }
    let recorded = kept(&understood.bookkeeping, surroundings.discovery)?;
    Ok(recorded.union(&needed))
}

/// The set with those members alone that are cluster-scoped, in the parent's namespace, or in one of
/// the recorded namespaces.
fn within_namespaces(found: &FoundSet, recorded: &BTreeSet<String>) -> FoundSet {
    let mut found = found.clone();
    let home = found.identity.namespace.clone();
    found.members.retain(|live| {
        let namespace = live.key.namespace.as_ref();
        namespace.is_none_or(|namespace| home.as_ref() == Some(namespace) || recorded.contains(namespace))
    });
    found
}

/// The record with its kinds as they are served, those included that could not be asked
/// for. A kind that the server positively lacks holds nothing.
fn kept(bookkeeping: &Bookkeeping, discovery: &Discovery) -> Result<Record, String> {
    Ok(served(bookkeeping, discovery).union(&unlisted(bookkeeping, discovery)?))
}

/// What stays recorded because its objects cannot be listed: kinds, and with them every
/// namespace that may hold their objects.
fn unlisted(bookkeeping: &Bookkeeping, discovery: &Discovery) -> Result<Record, String> {
    let mut record = Record::default();
    for (name, entry) in recorded_kinds::entries(&bookkeeping.kinds, discovery) {
        let kind = match entry {
            Entry::Served(_) | Entry::Misspelled(_) | Entry::Gone => continue,
            Entry::Kept(kept) => kept.kind.clone(),
            Entry::Unlisted(_) | Entry::Unknowable(_) => match bookkeeping.kinds {
                RecordedKinds::GroupKinds(_) => Some(name.clone()),
                RecordedKinds::GroupResources(_) => None,
            },
        };
        let kind = kind.ok_or_else(|| format!("cannot tell which kind {name} is"))?;
        record.group_kinds.insert(kind);
    }
    if !record.group_kinds.is_empty() {
        record
            .additional_namespaces
            .clone_from(&bookkeeping.additional_namespaces);
    }
    Ok(record)
}

fn intersection(one: &Record, other: &Record) -> Record {
    Record {
        group_kinds: one
            .group_kinds
            .intersection(&other.group_kinds)
            .cloned()
            .collect(),
        additional_namespaces: one
            .additional_namespaces
            .intersection(&other.additional_namespaces)
            .cloned()
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{changed, examined, told, verdict, verdict_with, with_members};
    use super::super::{Mending, Rule};
    use super::*;
    use crate::compare::ownership::KUBECTL_PARENT_FIELD_MANAGER;
    use crate::model::live::Live;
    use crate::plan::fixtures::live;

    fn config_map(namespace: &str) -> Live {
        live("ConfigMap", Some(namespace), "one")
    }

    /// The record of the one mend.
    fn mended(set: &Examined, extent: Extent) -> Option<String> {
        let mends = verdict(set, extent).mends;
        let [mend] = &mends[..] else {
            return None;
        };
        let record = &mend.record;
        Some(format!(
            "{}|{}",
            record.group_kinds_value(),
            record.namespaces_value()
        ))
    }

    #[test]
    fn a_record_is_narrowed_only_where_everything_was_looked_at() {
        let set = |kinds: &[&str], namespaces: &[&str], members: &[Live]| {
            with_members(examined(kinds, namespaces), members)
        };
        let wide = set(&["ConfigMap", "Secret"], &["away"], &[config_map("shop")]);
        assert_eq!(mended(&wide, Extent::Whole).as_deref(), Some("ConfigMap|"));
        assert_eq!(mended(&wide, Extent::Part), None);
        let narrow = set(&["Secret"], &[], &[config_map("away")]);
        assert_eq!(mended(&narrow, Extent::Whole).as_deref(), Some("ConfigMap|away"));
        assert_eq!(
            mended(&narrow, Extent::Part).as_deref(),
            Some("ConfigMap,Secret|away")
        );
        let sound = set(&["ConfigMap"], &[], &[config_map("shop")]);
        assert_eq!(mended(&sound, Extent::Whole), None);
    }

    #[test]
    fn a_label_alone_adds_no_namespace() {
        let told = |set: &Examined, extent| {
            let verdict = verdict_with(set, extent, NewNamespaces::Excluded);
            let rules = verdict
                .findings
                .iter()
                .map(|finding| (finding.rule, finding.mending));
            (rules.collect::<Vec<_>>(), verdict.mends.len())
        };
        let strange = with_members(
            examined(&["ConfigMap"], &[]),
            &[config_map("shop"), config_map("victim")],
        );
        for extent in [Extent::Part, Extent::Whole] {
            let (rules, mends) = told(&strange, extent);
            assert!(
                rules.contains(&(Rule::UnrecordedMember, Mending::ByHand)),
                "{rules:?}"
            );
            assert!(
                rules.contains(&(Rule::RecordTooNarrow, Mending::ByHand)),
                "{rules:?}"
            );
            assert_eq!(mends, 0);
        }
        // Kinds within the namespaces of the record are added, and only those.
        let narrow = with_members(
            examined(&["ConfigMap"], &["away"]),
            &[
                config_map("shop"),
                live("Secret", Some("away"), "one"),
                live("Service", Some("victim"), "one"),
            ],
        );
        let verdict = verdict_with(&narrow, Extent::Whole, NewNamespaces::Excluded);
        let [mend] = &verdict.mends[..] else {
            panic!("{:?}", verdict.findings);
        };
        assert_eq!(mend.record.group_kinds_value(), "ConfigMap,Secret");
        assert_eq!(mend.record.namespaces_value(), "away");
    }

    #[test]
    fn namespaces_that_are_recorded_survive_the_loss_of_the_kinds() {
        let set = with_members(
            examined(&["ConfigMap"], &["away"]),
            &[config_map("shop"), config_map("away")],
        );
        for lost in [None, Some("a/b")] {
            let spoilt = changed(&set, &[], &[(GROUP_KINDS_ANNOTATION, lost)]);
            let mends = verdict_with(&spoilt, Extent::Whole, NewNamespaces::Excluded).mends;
            let namespaces = mends.iter().map(|mend| mend.record.namespaces_value());
            assert!(
                namespaces.clone().all(|value| value == "away"),
                "{lost:?}: {:?}",
                namespaces.collect::<Vec<_>>()
            );
            let [mend] = &verdict_with(&spoilt, Extent::Whole, NewNamespaces::Included).mends[..] else {
                panic!("no mend");
            };
            assert_eq!(mend.record.namespaces_value(), "away");
        }
    }

    #[test]
    fn changes_are_told_by_what_is_lost_and_gained() {
        let list = GROUP_KINDS_ANNOTATION;
        let table = [
            (list, Some("a,b"), "a,b", None),
            (list, Some("a,b"), "a", Some("loses b")),
            (list, Some(""), "a,b", Some("gains a, b")),
            (list, Some("a, b,"), "a,c", Some("loses \" b\", \"\" and gains c")),
            (list, Some("b,a"), "a,b", Some("\"b,a\" becomes \"a,b\"")),
            (list, None, "a", Some("\"a\" is added")),
            (ID_LABEL, Some("a,b"), "a", Some("\"a,b\" becomes \"a\"")),
        ];
        for (key, found, value, told) in table {
            let found = found.map(|found| (key.to_owned(), found.to_owned()));
            let expected = told.map(|told| format!("{key} {told}"));
            assert_eq!(change(&found.into_iter().collect(), key, value), expected);
        }
    }

    #[test]
    fn a_kind_that_is_not_served_is_dropped_and_one_that_is_misspelled_is_kept() {
        let set = with_members(
            examined(&["ConfigMap", "secrets", "Gone.example.com"], &[]),
            &[config_map("shop")],
        );
        assert_eq!(mended(&set, Extent::Part).as_deref(), Some("ConfigMap,Secret|"));
        assert_eq!(mended(&set, Extent::Whole).as_deref(), Some("ConfigMap|"));
    }

    #[test]
    fn a_kind_whose_objects_cannot_be_listed_stays_with_every_namespace() {
        let set = with_members(
            examined(&["Dormant.example.com"], &["away"]),
            &[config_map("shop")],
        );
        let unheard = with_members(examined(&["Unheard.example.com"], &[]), &[config_map("shop")]);
        for extent in [Extent::Part, Extent::Whole] {
            let kept = "ConfigMap,Dormant.example.com|away";
            assert_eq!(mended(&set, extent).as_deref(), Some(kept));
            let kept = "ConfigMap,Unheard.example.com|";
            assert_eq!(mended(&unheard, extent).as_deref(), Some(kept));
        }
    }

    #[test]
    fn what_makes_no_sense_is_only_replaced_by_what_is_certain() {
        let sound = with_members(examined(&["ConfigMap"], &[]), &[config_map("shop")]);
        let table = [
            (Some("ConfigMap,a/b"), "malformed-value", "malformed-value+"),
            (Some("ConfigMap, Secret"), "malformed-value+", "malformed-value+"),
            (None, "missing-kinds", "missing-kinds+"),
        ];
        for (value, in_part, whole) in table {
            let set = changed(&sound, &[], &[(GROUP_KINDS_ANNOTATION, value)]);
            assert!(
                told(&set, Extent::Part).contains(&in_part.to_owned()),
                "{value:?}"
            );
            assert!(told(&set, Extent::Whole).contains(&whole.to_owned()), "{value:?}");
        }
    }

    #[test]
    fn sets_of_other_tools_and_of_nobody_are_left_alone() {
        let wide = examined(&["ConfigMap"], &[]);
        for (tooling, reason) in [
            (Some("kubectl/v1.36.3"), "managed by kubectl/v1.36.3"),
            (Some("kro/v0.9.0"), "managed by kro/v0.9.0"),
            (Some("v2:x"), "later format"),
            (None, "nobody knows"),
        ] {
            let set = changed(&wide, &[], &[(TOOLING_ANNOTATION, tooling)]);
            let verdict = verdict(&set, Extent::Whole);
            assert_eq!(verdict.mends, [], "{tooling:?}");
            let told = verdict
                .findings
                .iter()
                .find(|finding| finding.hint.contains(reason));
            assert!(told.is_some(), "{:?}", verdict.findings);
        }
        let mut ours = changed(&wide, &[], &[(TOOLING_ANNOTATION, None)]);
        ours.parent.writers.insert(PARENT_FIELD_MANAGER.to_owned());
        assert_eq!(
            told(&ours, Extent::Whole),
            ["invalid-tooling+", "record-too-wide+"]
        );
        ours.parent.appliers.insert(PARENT_FIELD_MANAGER.to_owned());
        // Somebody has edited it.
        ours.parent.writers.insert("kubectl-annotate".to_owned());
        assert!(told(&ours, Extent::Whole).contains(&"invalid-tooling+".to_owned()));
        let mut taken = ours.clone();
        taken
            .parent
            .appliers
            .insert(KUBECTL_PARENT_FIELD_MANAGER.to_owned());
        let mut foreign = ours;
        foreign
            .parent
            .writers
            .insert(FOREIGN_PARENT_FIELD_MANAGER.to_owned());
        for set in [taken, foreign] {
            assert_eq!(told(&set, Extent::Whole), ["invalid-tooling", "record-too-wide"]);
        }
    }

    #[test]
    fn an_id_is_written_only_on_what_certainly_is_a_parent() {
        let copy = changed(&examined(&[], &[]), &[(ID_LABEL, Some("of-the-original"))], &[]);
        assert_eq!(told(&copy, Extent::Whole), ["wrong-id"]);
        let original = with_members(examined(&["ConfigMap"], &[]), &[config_map("shop")]);
        let original = changed(&original, &[(ID_LABEL, Some("spoilt"))], &[]);
        assert_eq!(told(&original, Extent::Whole), ["wrong-id+"]);
    }

    #[test]
    fn a_mended_parent_is_not_mended_again() {
        let set = with_members(examined(&["Secret"], &[]), &[config_map("away")]);
        let set = changed(
            &set,
            &[(PART_OF_LABEL, Some(set.found.id.as_str()))],
            &[(GROUP_RESOURCES_ANNOTATION, Some("secrets"))],
        );
        let [mend] = &verdict(&set, Extent::Whole).mends[..] else {
            panic!("no mend");
        };
        assert_eq!(mend.removals.len(), 2);
        assert_eq!(told(&mend.applied_to(&set), Extent::Whole), [""; 0]);
    }

    #[test]
    fn a_record_that_would_not_fit_is_not_written() {
        let note = "x".repeat(ANNOTATIONS_LIMIT - 300);
        let set = with_members(examined(&[], &[]), &[config_map(&"n".repeat(60))]);
        let set = changed(&set, &[], &[("note", Some(&note))]);
        assert!(told(&set, Extent::Whole).contains(&"record-too-narrow+".to_owned()));
        let note = "x".repeat(ANNOTATIONS_LIMIT - 150);
        let set = changed(&set, &[], &[("note", Some(&note))]);
        assert!(told(&set, Extent::Whole).contains(&"record-too-narrow".to_owned()));
    }
}
