//! The time at which a set expires, in an annotation of its parent. `list` shows it, and `delete --expired` deletes a set
//! only after it.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use super::applyset::parent::Pairs;
use super::history_annotation::HISTORY_ANNOTATION;

/// Annotation on a parent: the time at which the set expires, RFC 3339 in UTC. An empty value means that it does not
/// expire: to leave the annotation out of a write would not remove it if another field manager owns it, too.
pub const EXPIRY_ANNOTATION: &str = "kubectl-applyset/expires";

/// The difference that two readings of the server's clock may have.
const CLOCK_TOLERANCE: Duration = Duration::from_mins(1);

/// What the writes of a run do to the time at which the set expires.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Expiry {
    /// The time stays as it is.
    #[default]
    Kept,
    /// The set does not expire any more.
    Removed,
    /// The set expires after this time. A later time that the parent has already stays unless less than half is left,
    /// so that most runs do not write the parent for it.
    After(Duration),
}

impl Expiry {
    /// Returns the value that a write at `now` gives the annotation on a parent with these annotations; `None` if the
    /// parent has no annotation and gets none.
    pub fn value_to_write(self, annotations: &Pairs, now: Timestamp) -> Option<String> {
        let current = annotations.get(EXPIRY_ANNOTATION);
        match self {
            Self::Kept => current.cloned(),
            Self::Removed => current.map(|_| String::new()),
            Self::After(time) => {
                let is_far = read_expiry(annotations).is_some_and(|expiry| {
                    let left = expiry.duration_since(now);
                    Duration::try_from(left)
                        .is_ok_and(|left| left >= time / 2 && left <= time.saturating_add(CLOCK_TOLERANCE))
                });
                if is_far {
                    current.cloned()
                } else {
                    // `settings` refuses a time that is out of range.
                    let expiry = now.checked_add(time).ok()?;
                    Some(format_expiry(expiry))
                }
            }
        }
    }

    /// Returns whether a write at `now` would change the annotation.
    pub fn is_to_be_written(self, annotations: &Pairs, now: Timestamp) -> bool {
        self.value_to_write(annotations, now).as_ref() != annotations.get(EXPIRY_ANNOTATION)
    }
}

/// Returns whether the key is one of the annotations that this program alone writes on parents.
pub fn is_own_key(key: &str) -> bool {
    [HISTORY_ANNOTATION, EXPIRY_ANNOTATION].contains(&key)
}

/// Returns the time at which the set of a parent with these annotations expires; `None` if it does not. A value that
/// is no time counts as none: a set whose time is unknown is kept.
pub fn read_expiry(annotations: &Pairs) -> Option<Timestamp> {
    annotations.get(EXPIRY_ANNOTATION)?.parse().ok()
}

/// Formats a time as the annotation has it.
pub fn format_expiry(expiry: Timestamp) -> String {
    expiry.strftime("%FT%TZ").to_string()
}

/// Returns the text of the annotation, whether it is a time or not; `None` if there is none, or if it is empty.
pub fn expiry_text(annotations: &Pairs) -> Option<String> {
    let value = annotations.get(EXPIRY_ANNOTATION)?;
    (!value.is_empty()).then(|| value.clone())
}

/// Describes the text of the annotation if it is no time; `None` if it is one.
pub fn describe_invalid_expiry(text: &str) -> Option<String> {
    let is_invalid = text.parse::<Timestamp>().is_err();
    is_invalid
        .then(|| format!("annotation {EXPIRY_ANNOTATION} {text:?} is not a time, so the set does not expire"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(value: Option<&str>) -> Pairs {
        let value = value.map(|value| (EXPIRY_ANNOTATION.to_owned(), value.to_owned()));
        value.into_iter().collect()
    }

    #[test]
    fn a_time_is_renewed_once_half_of_it_has_passed() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().expect("a time");
        let two_hours = Expiry::After(Duration::from_hours(2));
        let renewed = Some("2026-01-01T14:00:00Z");
        for (expiry, current, expected) in [
            (two_hours, None, renewed),
            (two_hours, Some(""), renewed),
            (two_hours, Some("soon"), renewed),
            (two_hours, Some("2026-01-01T11:00:00Z"), renewed),
            (two_hours, Some("2026-01-01T12:59:59Z"), renewed),
            (
                two_hours,
                Some("2026-01-01T13:00:00Z"),
                Some("2026-01-01T13:00:00Z"),
            ),
            (
                two_hours,
                Some("2026-01-01T14:00:01Z"),
                Some("2026-01-01T14:00:01Z"),
            ),
            (two_hours, Some("2026-01-01T14:02:00Z"), renewed),
            (Expiry::Removed, None, None),
            (Expiry::Removed, Some(""), Some("")),
            (Expiry::Removed, Some("2026-01-01T13:00:00Z"), Some("")),
            (Expiry::Kept, None, None),
            (Expiry::Kept, Some("soon"), Some("soon")),
        ] {
            let annotations = pairs(current);
            let written = expiry.value_to_write(&annotations, now);
            assert_eq!(written.as_deref(), expected, "{expiry:?} {current:?}");
            assert_eq!(expiry.is_to_be_written(&annotations, now), current != expected);
        }
    }

    #[test]
    fn a_value_that_is_no_time_does_not_expire() {
        for (value, is_time, is_invalid) in [
            (None, false, false),
            (Some(""), false, false),
            (Some("2026-01-01"), false, true),
            (Some("2026-01-01T12:00:00Z"), true, false),
            (Some("2026-01-01T13:00:00+02:00"), true, false),
        ] {
            let annotations = pairs(value);
            assert_eq!(read_expiry(&annotations).is_some(), is_time, "{value:?}");
            let described = expiry_text(&annotations).and_then(|text| describe_invalid_expiry(&text));
            assert_eq!(described.is_some(), is_invalid, "{value:?}");
        }
    }
}
