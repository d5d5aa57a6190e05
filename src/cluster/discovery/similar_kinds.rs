//! Suggests kinds with a similar name for a kind that is not served.
//!
//! Suggestions are for messages only; decisions must not depend on them.

use crate::model::identity::GroupVersionKind;

use crate::model::resource::Resource;

/// The most suggestions in a message.
const MOST_SUGGESTIONS: usize = 3;

/// Returns up to three served kinds that are similar to the wanted one, the likeliest first, each as
/// `Kind in apiVersion`: the same kind in another group or letter case, or with one or two typos.
///
/// `resources` are in order of preference; a kind is suggested once for each group.
pub(super) fn find_similar<'a>(
    wanted: &GroupVersionKind,
    resources: impl Iterator<Item = &'a Resource>,
) -> Vec<String> {
    let wanted_kind = wanted.kind.to_lowercase();
    let most_mistakes = (wanted_kind.len() / 4).clamp(1, 2);
    // The suggestion with the fewest mistakes is the likeliest, then one in the same group.
    let mut found: Vec<((usize, bool), &Resource)> = Vec::new();
    for resource in resources {
        let named = found
            .iter()
            .any(|(_, other)| other.group == resource.group && other.kind == resource.kind);
        if named {
            continue;
        }
        if let Some(mistakes) = count_mistakes(&wanted_kind, &resource.kind.to_lowercase(), most_mistakes) {
            found.push(((mistakes, resource.group != wanted.group), resource));
        }
    }
    found.sort_by_key(|(rank, _)| *rank);
    found
        .into_iter()
        .take(MOST_SUGGESTIONS)
        .map(|(_, resource)| format!("{} in {}", resource.kind, resource.api_version()))
        .collect()
}

/// Returns the number of letters to insert, delete, change or swap with their neighbor to turn one word into the other
/// (optimal string alignment); `None` if that is more than `most`.
fn count_mistakes(one: &str, other: &str, most: usize) -> Option<usize> {
    // The kind of a manifest may be of any length. Without this limit, the table of the search could become very large.
    if one.len().abs_diff(other.len()) > most * char::MAX.len_utf8() {
        return None;
    }
    Some(strsim::osa_distance(one, other)).filter(|&mistakes| mistakes <= most)
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
