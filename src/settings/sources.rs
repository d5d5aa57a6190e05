//! Reads the sources of manifests: `-f`, `-R` and `-k`.

use crate::error::Error;
use crate::manifest::{Recursion, Source};

/// Reads `-f` and `-k`. `-f` may be repeated, and each value is a list (pflag, `StringSlice`).
pub(super) fn sources(filename: &[String], kustomize: Option<&str>) -> Result<Vec<Source>, Error> {
    if let Some(directory) = kustomize {
        return Ok(vec![Source::kustomization(directory)]);
    }
    let mut sources = Vec::new();
    for list in filename {
        let entries = list_entries(list).ok_or_else(|| {
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
pub(super) fn recursion(is_recursive: bool) -> Recursion {
    if is_recursive {
        Recursion::Recursive
    } else {
        Recursion::Flat
    }
}

/// Parses one record of comma-separated values (RFC 4180): an entry in quotation marks may hold
/// commas, and doubled quotation marks. `None` if there is a quotation mark elsewhere.
fn list_entries(list: &str) -> Option<Vec<String>> {
    let mut entries = Vec::new();
    let mut rest = Some(list);
    while let Some(text) = rest {
        let (entry, behind) = match text.strip_prefix('"') {
            Some(quoted) => quoted_entry(quoted)?,
            None => match text.split_once(',') {
                Some((entry, behind)) => (entry.to_owned(), Some(behind)),
                None => (text.to_owned(), None),
            },
        };
        if !text.starts_with('"') && entry.contains('"') {
            return None;
        }
        entries.push(entry);
        rest = behind;
    }
    Some(entries)
}

/// Parses an entry after its opening quotation mark, and returns it with the text after the next
/// comma.
fn quoted_entry(text: &str) -> Option<(String, Option<&str>)> {
    let mut entry = String::new();
    let mut rest = text;
    loop {
        let (part, behind) = rest.split_once('"')?;
        entry.push_str(part);
        if behind.is_empty() {
            return Some((entry, None));
        }
        if let Some(next) = behind.strip_prefix(',') {
            return Some((entry, Some(next)));
        }
        rest = behind.strip_prefix('"')?;
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
            let read = list_entries(list);
            let read: Option<Vec<&str>> = read
                .as_ref()
                .map(|entries| entries.iter().map(String::as_str).collect());
            assert_eq!(read.as_deref(), entries, "{list}");
        }
        let expected = ["a", "b", "-"].map(Source::from_filename_flag);
        assert_eq!(
            sources(&["a,b".to_owned(), "-".to_owned()], None).expect("sources"),
            expected
        );
    }
}
