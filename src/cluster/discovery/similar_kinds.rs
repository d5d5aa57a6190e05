//! Suggests kinds for a kind that is not served.
//!
//! Suggestions are for messages only; decisions must not depend on them.

use crate::model::identity::GroupVersionKind;
use crate::model::resource::Resource;

/// The limit of suggestions in a message.
const MAX_SUGGESTIONS: usize = 3;

/// Returns up to three served kinds that have the name of the wanted one, in another group or letter case or in the
/// plural, each as `Kind in apiVersion`; those in the same group come first.
///
/// `resources` are in order of preference; a kind is suggested once for each group.
pub(super) fn find_similar<'a>(
    wanted: &GroupVersionKind,
    resources: impl Iterator<Item = &'a Resource>,
) -> Vec<String> {
    let mut similar: Vec<&Resource> = Vec::new();
    let has_name = |name: &str| name.eq_ignore_ascii_case(&wanted.kind);
    for resource in resources.filter(|resource| has_name(&resource.kind) || has_name(&resource.plural)) {
        if !similar
            .iter()
            .any(|other| other.group == resource.group && other.kind == resource.kind)
        {
            similar.push(resource);
        }
    }
    similar.sort_by_key(|resource| resource.group != wanted.group);
    similar
        .into_iter()
        .take(MAX_SUGGESTIONS)
        .map(|resource| format!("{} in {}", resource.kind, resource.api_version()))
        .collect()
}
