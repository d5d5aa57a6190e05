//! Reads the sources of manifests: `-f`, `-R` and `-k`.

use crate::error::Error;
use crate::manifest::{Recursion, Source};

/// Reads `-f` and `-k`, of which clap accepts only one. `-f` may be repeated, and as in kubectl, each value is a
/// comma-separated list (pflag, `StringSlice`).
pub(super) fn read_sources(filename: &[String], kustomize: Option<&str>) -> Result<Vec<Source>, Error> {
    if let Some(directory) = kustomize {
        return Ok(vec![Source::kustomization(directory)]);
    }
    let mut sources = Vec::new();
    for list in filename {
        let entries = parse_comma_separated_list(list).ok_or_else(|| {
            Error::usage(
                format!("-f {list:?}: misplaced quotation mark"),
                "write a name with a comma as -f '\"a,b.yaml\"': commas separate sources",
            )
        })?;
        sources.extend(entries.iter().map(|entry| Source::from_filename_flag(entry)));
    }
    Ok(sources)
}

/// Reads `-R`.
pub(super) fn read_recursion(is_recursive: bool) -> Recursion {
    if is_recursive {
        Recursion::Recursive
    } else {
        Recursion::Flat
    }
}

/// Parses one line of comma-separated values (RFC 4180). An entry in quotation marks may contain commas, and quotation
/// marks that are doubled. Returns `None` if a quotation mark is in any other place.
fn parse_comma_separated_list(list: &str) -> Option<Vec<String>> {
    let mut entries = Vec::new();
    let mut remainder = Some(list);
    while let Some(text) = remainder {
        let (entry, after) = match text.strip_prefix('"') {
            Some(quoted) => parse_quoted_entry(quoted)?,
            None => match text.split_once(',') {
                Some((entry, after)) => (entry.to_owned(), Some(after)),
                None => (text.to_owned(), None),
            },
        };
        let is_quoted = text.starts_with('"');
        if !is_quoted && entry.contains('"') {
            return None;
        }
        entries.push(entry);
        remainder = after;
    }
    Some(entries)
}

/// Parses an entry after its opening quotation mark. Returns the entry, and the text after the comma that follows it;
/// `None` for the text if the entry is the last one.
fn parse_quoted_entry(text: &str) -> Option<(String, Option<&str>)> {
    let mut entry = String::new();
    let mut remainder = text;
    loop {
        let (part, after_mark) = remainder.split_once('"')?;
        entry.push_str(part);
        if after_mark.is_empty() {
            return Some((entry, None));
        }
        if let Some(next) = after_mark.strip_prefix(',') {
            return Some((entry, Some(next)));
        }
        remainder = after_mark.strip_prefix('"')?;
        entry.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_sources_is_split_as_kubectl_splits_it() {
        let table: [(&str, Option<&[&str]>); 9] = [
            ("a.yaml", Some(&["a.yaml"])),
            ("a,b", Some(&["a", "b"])),
            ("a,b,-", Some(&["a", "b", "-"])),
            ("", Some(&[""])),
            ("\"a,b\",c", Some(&["a,b", "c"])),
            ("\"a\"\"b\"", Some(&["a\"b"])),
            ("\"a", None),
            ("\"a\"b", None),
            ("a\"b", None),
        ];
        for (list, entries) in table {
            let parsed = parse_comma_separated_list(list);
            let parsed: Option<Vec<&str>> = parsed
                .as_ref()
                .map(|entries| entries.iter().map(String::as_str).collect());
            assert_eq!(parsed.as_deref(), entries, "{list}");
        }
        let expected = ["a", "b", "-"].map(Source::from_filename_flag);
        assert_eq!(
            read_sources(&["a,b".to_owned(), "-".to_owned()], None).expect("sources"),
            expected
        );
    }
}
