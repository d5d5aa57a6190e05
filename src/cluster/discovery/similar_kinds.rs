//! Suggests kinds with a similar name for a kind that is not served.
//!
//! Suggestions are for messages only; decisions must not depend on them.

use crate::model::identity::GroupVersionKind;
use crate::model::resource::Resource;

/// The limit of suggestions in a message.
const MAX_SUGGESTIONS: usize = 3;

/// Returns up to three served kinds that are similar to the wanted one, the likeliest first, each as
/// `Kind in apiVersion`: the same kind in another group or letter case, or with one or two typos.
///
/// `resources` are in order of preference; a kind is suggested once for each group.
pub(super) fn find_similar<'a>(
    wanted: &GroupVersionKind,
    resources: impl Iterator<Item = &'a Resource>,
) -> Vec<String> {
    let wanted_kind = wanted.kind.to_lowercase();
    let max_mistakes = (wanted_kind.len() / 4).clamp(1, 2);
    // The suggestion with the fewest mistakes is the likeliest, then one in the same group.
    let mut suggestions: Vec<((usize, bool), &Resource)> = Vec::new();
    for resource in resources {
        if suggestions
            .iter()
            .any(|(_, other)| other.group == resource.group && other.kind == resource.kind)
        {
            continue;
        }
        if let Some(mistakes) = count_mistakes(&wanted_kind, &resource.kind.to_lowercase(), max_mistakes) {
            suggestions.push(((mistakes, resource.group != wanted.group), resource));
        }
    }
    suggestions.sort_by_key(|(rank, _)| *rank);
    suggestions
        .into_iter()
        .take(MAX_SUGGESTIONS)
        .map(|(_, resource)| format!("{} in {}", resource.kind, resource.api_version()))
        .collect()
}

/// Returns the number of letters to insert, delete, change or swap with their neighbor to turn one word into the other
/// (optimal string alignment); `None` if that is more than `max`.
fn count_mistakes(one: &str, other: &str, max: usize) -> Option<usize> {
    // The kind of a manifest may be of any length. Without this limit, the table of the search could become very large.
    if one.len().abs_diff(other.len()) > max * char::MAX.len_utf8() {
        return None;
    }
    let mistakes = strsim::osa_distance(one, other);
    (mistakes <= max).then_some(mistakes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_counted_up_to_the_limit() {
        for (one, other, expected) in [
            ("pod", "pod", Some(0)),
            ("", "", Some(0)),
            ("deployent", "deployment", Some(1)),
            ("deploymnet", "deployment", Some(1)),
            ("ingrezz", "ingress", Some(2)),
            ("ingresses", "ingress", Some(2)),
            ("secret", "service", None),
            ("", "pod", None),
            ("päd", "pod", Some(1)),
        ] {
            assert_eq!(count_mistakes(one, other, 2), expected, "{one} {other}");
            assert_eq!(count_mistakes(other, one, 2), expected, "{other} {one}");
        }
    }
}
