//! Reads an invalid record leniently: the valid entries of its lists count, the other entries do not.
//!
//! A record that is read this way lacks entries. Therefore a repair only adds to it, unless the whole cluster was
//! listed.

use std::collections::BTreeSet;

use super::Extent;
use crate::model::applyset::parent::{Pairs, ParentAnnotations, RecordedKinds};
use crate::model::applyset::record::{
    InvalidValue, parse_group_kinds, parse_group_resources, parse_namespaces,
};
use crate::model::applyset::{
    ADDITIONAL_NAMESPACES_ANNOTATION, GROUP_KINDS_ANNOTATION, GROUP_RESOURCES_ANNOTATION, TOOLING_ANNOTATION,
    Tooling,
};
use crate::read::LiveParent;

/// The valid part of the annotations of a parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LenientRecord {
    /// The record with the valid entries. Without a valid tooling annotation, the tooling is this program.
    pub(super) record: ParentAnnotations,
    /// `Whole` if every entry of the lists is valid.
    pub(super) extent: Extent,
}

/// Reads the annotations; `None` if the parent has no list of kinds, or a list in a later format.
pub(super) fn read_leniently(parent: &LiveParent) -> Option<LenientRecord> {
    let annotations = &parent.object.annotations;
    let lists = [
        GROUP_KINDS_ANNOTATION,
        GROUP_RESOURCES_ANNOTATION,
        ADDITIONAL_NAMESPACES_ANNOTATION,
    ];
    for key in lists {
        // The prefix of a later format is the same in all lists, so one parser recognizes it.
        if let Some(value) = annotations.get(key)
            && let Err(InvalidValue::LaterFormat(_)) = parse_group_kinds(value)
        {
            return None;
        }
    }
    let mut extent = Extent::Whole;
    let kinds = if let Some(value) = annotations.get(GROUP_KINDS_ANNOTATION) {
        RecordedKinds::GroupKinds(parse_valid_entries(value, parse_group_kinds, &mut extent))
    } else {
        let value = annotations.get(GROUP_RESOURCES_ANNOTATION)?;
        RecordedKinds::GroupResources(parse_valid_entries(value, parse_group_resources, &mut extent))
    };

    Some(LenientRecord {
        record: ParentAnnotations {
            tooling: read_tooling(annotations).unwrap_or_else(Tooling::this_program),
            kinds,
            additional_namespaces: read_additional_namespaces(parent, &mut extent),
        },
        extent,
    })
}

/// Reads the valid recorded namespaces, without the parent's own, which is not an additional one.
fn read_additional_namespaces(parent: &LiveParent, extent: &mut Extent) -> BTreeSet<String> {
    let value = parent.object.annotations.get(ADDITIONAL_NAMESPACES_ANNOTATION);
    let mut namespaces = parse_valid_entries(value.map_or("", String::as_str), parse_namespaces, extent);
    if let Some(parent_namespace) = &parent.live.key.namespace {
        namespaces.remove(parent_namespace);
    }
    namespaces
}

/// Reads the valid recorded namespaces, even if the list of kinds is missing or in a later format.
pub(super) fn read_valid_additional_namespaces(parent: &LiveParent) -> BTreeSet<String> {
    read_additional_namespaces(parent, &mut Extent::Whole)
}

/// Reads the tool that manages the set; `None` if the annotation is missing or invalid.
pub(super) fn read_tooling(annotations: &Pairs) -> Option<Tooling> {
    Tooling::parse(annotations.get(TOOLING_ANNOTATION)?).ok()
}

/// Parses the valid entries of a list. Blanks and empty entries are ignored; `extent` becomes `Part` if another entry
/// is invalid.
fn parse_valid_entries<T: Ord, E>(
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
            let lenient = read_leniently(&candidate(&[
                (GROUP_KINDS_ANNOTATION, kinds),
                (ADDITIONAL_NAMESPACES_ANNOTATION, namespaces),
            ]));
            let lenient = lenient.expect("kinds are recorded");
            let RecordedKinds::GroupKinds(kinds) = lenient.record.kinds else {
                panic!("{expected}");
            };
            let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
            let namespaces = lenient.record.additional_namespaces.into_iter();
            let namespaces: Vec<String> = namespaces.collect();
            assert_eq!(format!("{}|{}", kinds.join(" "), namespaces.join(" ")), expected);
            assert_eq!(lenient.extent, extent, "{expected}");
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
