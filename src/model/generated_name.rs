//! Names that tools generate: a stem, and a suffix that changes with the content or with each creation.

/// The letters that the API server chooses from for the suffix of `generateName` (`apimachinery/pkg/util/rand`).
const RANDOM_LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";
/// The length of that suffix (`randomLength` in `apiserver/pkg/storage/names`).
const RANDOM_LENGTH: usize = 5;

/// The letters of the hash of the content that kustomize and kubectl append (`kubectl/pkg/util/hash`, `encodeHash`).
const HASH_LETTERS: &str = "2456789bcdfghkmt";
/// The length of that hash.
const HASH_LENGTH: usize = 10;

/// Returns the name without the hash of the content that kustomize and `kubectl create --append-hash` append; `None` if
/// the name does not end with such a hash.
pub fn strip_content_hash(name: &str) -> Option<&str> {
    strip_suffix(name, HASH_LENGTH, HASH_LETTERS)
}

/// Returns the name without a hash of the content or a suffix of `generateName`; `None` if the name ends with neither.
pub fn strip_generated_suffix(name: &str) -> Option<&str> {
    strip_content_hash(name).or_else(|| strip_suffix(name, RANDOM_LENGTH, RANDOM_LETTERS))
}

/// Returns the name without a hyphen and `length` of these letters at its end.
fn strip_suffix<'n>(name: &'n str, length: usize, letters: &str) -> Option<&'n str> {
    let (stem, suffix) = name.rsplit_once('-')?;
    let is_generated = suffix.len() == length && suffix.chars().all(|letter| letters.contains(letter));
    (is_generated && !stem.is_empty()).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stem_is_what_stays_when_the_content_changes() {
        for (name, of_content, of_either) in [
            ("app-5m2k8t4h9b", Some("app"), Some("app")),
            ("app-web-x8b2k", None, Some("app-web")),
            // Letters that neither uses.
            ("app-5m2k8t4h9a", None, None),
            ("app-other", None, None),
            // Of another length.
            ("app-5m2k8t4h9", None, None),
            ("-5m2k8t4h9b", None, None),
            ("app", None, None),
        ] {
            assert_eq!(strip_content_hash(name), of_content, "{name}");
            assert_eq!(strip_generated_suffix(name), of_either, "{name}");
        }
    }
}
