//! Reads the sources of manifests: `-f`, `-R` and `-k`.

use crate::cli::ManifestFlags;
use crate::manifest::{Recursion, Source};

/// Reads `-f` and `-k`, of which clap accepts only one. `-f` may be repeated, and as in kubectl, each value is a
/// comma-separated list. A file with a comma in its name has to be given by its directory.
pub(super) fn read_sources(filename: &[String], kustomize: Option<&str>) -> Vec<Source> {
    match kustomize {
        Some(directory) => vec![Source::kustomization(directory)],
        None => filename
            .iter()
            .flat_map(|list| list.split(','))
            .map(Source::from_filename_flag)
            .collect(),
    }
}

/// Reads `-f`, `-R` and `-k`.
pub(super) fn read_manifest_flags(flags: &ManifestFlags) -> (Vec<Source>, Recursion) {
    let recursion = if flags.recursive {
        Recursion::Recursive
    } else {
        Recursion::Flat
    };
    (
        read_sources(&flags.filename, flags.kustomize.as_deref()),
        recursion,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_sources_is_split_at_commas() {
        let filename = ["a,b".to_owned(), "-".to_owned(), String::new()];
        let expected = ["a", "b", "-", ""].map(Source::from_filename_flag);
        assert_eq!(read_sources(&filename, None), expected);
    }
}
