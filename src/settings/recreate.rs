//! Reads `--recreate`.

use crate::error::Error;
use crate::plan::Recreate;

/// Reads the values of `--recreate`. Returns the choice, and the kinds as typed, which are resolved by discovery later.
///
/// `marked` (objects with an annotation or label that asks for recreation) is always included, except with `never`,
/// which stands alone. If kinds are given, the caller makes the choice `Recreate::Kinds` of them. What each choice
/// recreates is decided in `plan/recreation`.
pub(super) fn read_recreate(values: &[String]) -> Result<(Recreate, Vec<String>), Error> {
    let error =
        |message: &str, hint: &str| Error::usage(format!("--recreate={}: {message}", values.join(",")), hint);
    let (words, kinds): (Vec<&String>, Vec<&String>) = values
        .iter()
        .partition(|text| ["never", "marked"].contains(&text.as_str()));
    if kinds.iter().any(|kind| kind.is_empty()) {
        return Err(error(
            "empty kind",
            "write never, marked, or kinds as in --recreate=Job,StatefulSet.apps",
        ));
    }
    let is_never = words.iter().any(|word| *word == "never");
    if is_never && values.len() > 1 {
        return Err(error(
            "never cannot be combined with other values",
            "write never alone, or omit it",
        ));
    }
    let choice = if is_never {
        Recreate::Never
    } else {
        Recreate::Marked
    };
    Ok((choice, kinds.into_iter().cloned().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Option<(Recreate, Vec<String>)> {
        let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
        read_recreate(&values).ok()
    }

    #[test]
    fn kinds_are_added_to_marks_and_never_stands_alone() {
        let kinds = |kinds: &[&str]| kinds.iter().map(|&kind| kind.to_owned()).collect::<Vec<_>>();
        let table: [(&[&str], _); 8] = [
            (&["marked"], Some((Recreate::Marked, kinds(&[])))),
            (&["never"], Some((Recreate::Never, kinds(&[])))),
            (&["Job"], Some((Recreate::Marked, kinds(&["Job"])))),
            (
                &["Job", "marked", "widgets.example.com"],
                Some((Recreate::Marked, kinds(&["Job", "widgets.example.com"]))),
            ),
            (&["never", "Job"], None),
            (&["never", "marked"], None),
            (&[""], None),
            (&["Job", ""], None),
        ];
        for (values, expected) in table {
            assert_eq!(read(values), expected, "{values:?}");
        }
    }
}
