//! The changes that may turn out to be recreations: only the server knows, once a change is sent.

use crate::model::identity::ObjectKey;
use crate::model::text::first_listed;
use crate::report::paint::{Color, Line, fitted, wrapped};
use crate::report::plan_view::{Effect, loses_data};

/// Limit of objects that are named.
const NAMED: usize = 10;

/// Returns the lines that name these objects, those whose data would be lost first. None of these is left
/// out, however many there are.
pub(super) fn lines(recreatable: &[ObjectKey], columns: usize) -> Vec<Line> {
    let Some(first) = recreatable.first() else {
        return Vec::new();
    };
    let is_lossy = |key: &&ObjectKey| loses_data(Effect::Recreated, key);
    let (lossy, others): (Vec<&ObjectKey>, Vec<&ObjectKey>) = recreatable.iter().partition(is_lossy);
    let is_one_place = recreatable.iter().all(|key| key.namespace == first.namespace);
    let place = |key: &ObjectKey| {
        if is_one_place {
            key.object_name()
        } else {
            key.to_string()
        }
    };
    let most = NAMED.max(lossy.len());
    let lossy = lossy
        .into_iter()
        .map(|key| format!("{} (its data would be lost)", place(key)));
    let names = first_listed(most, lossy.chain(others.into_iter().map(place)));
    let count = recreatable.len();
    let text = format!("{count} of the changes may delete and create again: {names}");
    let lines = wrapped(&text, columns).into_iter();
    lines
        .map(|line| Line::new(Color::Danger, fitted(&line, columns)))
        .collect()
}
