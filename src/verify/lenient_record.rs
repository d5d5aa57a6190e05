//! Lenient reading of an invalid record, as far as it makes sense.
//!
//! The result is used only to widen a record, or together with a search of the whole cluster.

use std::collections::BTreeSet;

use super::Extent;
use crate::model::applyset::parent::{ApplySetRecord, Pairs, RecordedKinds};
use crate::model::applyset::record::{
    InvalidValue, parse_group_kinds, parse_group_resources, parse_namespaces,
};
use crate::model::applyset::{
    ADDITIONAL_NAMESPACES_ANNOTATION, GROUP_KINDS_ANNOTATION, GROUP_RESOURCES_ANNOTATION, TOOLING_ANNOTATION,
    Tooling,
};
use crate::read::ParentCandidate;

/// The part of the annotations that makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LenientRecord {
    /// The record; its tooling is this program's if none is named.
    pub(super) record: ApplySetRecord,
    /// The whole record if every entry made sense.
    pub(super) extent: Extent,
}

/// Reads the annotations; `None` if no kinds are recorded, or in a later format.
pub(super) fn read_leniently(parent: &ParentCandidate) -> Option<LenientRecord> {
    let annotations = &parent.object.annotations;
    let lists = [
        GROUP_KINDS_ANNOTATION,
        GROUP_RESOURCES_ANNOTATION,
        ADDITIONAL_NAMESPACES_ANNOTATION,
    ];
    for key in lists {
        if let Some(value) = annotations.get(key)
            && let Err(InvalidValue::LaterFormat(_)) = parse_group_kinds(value)
        {
            return None;
        }
    }
    let mut extent = Extent::Whole;
    let kinds = if let Some(value) = annotations.get(GROUP_KINDS_ANNOTATION) {
        RecordedKinds::GroupKinds(entries(value, parse_group_kinds, &mut extent))
    } else {
        let value = annotations.get(GROUP_RESOURCES_ANNOTATION)?;
        RecordedKinds::GroupResources(entries(value, parse_group_resources, &mut extent))
    };

    Some(LenientRecord {
        record: ApplySetRecord {
            tooling: tooling(annotations).unwrap_or_else(Tooling::this_program),
            kinds,
            additional_namespaces: recorded_namespaces(parent, &mut extent),
        },
        extent,
    })
}

/// Reads the recorded namespaces that make sense, without the parent's own.
fn recorded_namespaces(parent: &ParentCandidate, extent: &mut Extent) -> BTreeSet<String> {
    let value = parent.object.annotations.get(ADDITIONAL_NAMESPACES_ANNOTATION);
    let mut namespaces = entries(value.map_or("", String::as_str), parse_namespaces, extent);
    if let Some(own) = &parent.identity.namespace {
        namespaces.remove(own);
    }
    namespaces
}

/// Reads the recorded namespaces that make sense, even if the kinds cannot be read.
pub(super) fn namespaces(parent: &ParentCandidate) -> BTreeSet<String> {
    recorded_namespaces(parent, &mut Extent::Whole)
}

/// Reads the tool that manages the set.
pub(super) fn tooling(annotations: &Pairs) -> Option<Tooling> {
    Tooling::parse(annotations.get(TOOLING_ANNOTATION)?).ok()
}

/// Reads the entries of a list, ignoring blanks and empty entries. `extent` becomes a part if any other
/// entry is invalid.
fn entries<T: Ord, E>(
    value: &str,
    parse: impl Fn(&str) -> Result<BTreeSet<T>, E>,
    extent: &mut Extent,
) -> BTreeSet<T> {
    let mut entries = BTreeSet::new();
    for entry in value.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        match parse(entry) {
            Ok(parsed) => entries.extend(parsed),
            Err(_) => *extent = Extent::Part,
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::candidate;
    use super::*;

    #[test]
    fn what_makes_sense_is_read_and_the_rest_is_known_to_be_missing() {
        let table = [
            ("ConfigMap,Secret", "", "ConfigMap Secret|", Extent::Whole),
            (
                " Secret, ConfigMap ,",
                "b, a,",
                "ConfigMap Secret|a b",
                Extent::Whole,
            ),
            ("ConfigMap,a/b", "a", "ConfigMap|a", Extent::Part),
            ("ConfigMap", "A,a", "ConfigMap|a", Extent::Part),
            ("", "shop", "|", Extent::Whole),
        ];
        for (kinds, namespaces, expected, extent) in table {
            let understood = read_leniently(&candidate(&[
                (GROUP_KINDS_ANNOTATION, kinds),
                (ADDITIONAL_NAMESPACES_ANNOTATION, namespaces),
            ]));
            let understood = understood.expect("kinds are recorded");
            let RecordedKinds::GroupKinds(kinds) = understood.record.kinds else {
                panic!("{expected}");
            };
            let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
            let namespaces = understood.record.additional_namespaces.into_iter();
            let namespaces: Vec<String> = namespaces.collect();
            assert_eq!(format!("{}|{}", kinds.join(" "), namespaces.join(" ")), expected);
            assert_eq!(understood.extent, extent, "{expected}");
        }
        assert_eq!(read_leniently(&candidate(&[])), None);
        for later in [GROUP_KINDS_ANNOTATION, ADDITIONAL_NAMESPACES_ANNOTATION] {
            let kinds = (GROUP_KINDS_ANNOTATION, "ConfigMap");
            assert_eq!(
                read_leniently(&candidate(&[kinds, (later, "v2:x")])),
                None,
                "{later}"
            );
        }
    }
}
