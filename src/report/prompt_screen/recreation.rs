//! The changes that may turn out to be recreations: only the server knows, once a change is sent.

use crate::model::identity::ObjectKey;
use crate::model::text::first_listed;
use crate::report::paint::{Color, Line, fit, wrap};
use crate::report::plan_view::{Effect, loses_data};

/// Limit of objects that are named.
const NAMED: usize = 10;

/// Returns the lines that name these objects, those whose data would be lost first. None of these is left
/// out, however many there are.
pub(super) fn lines(recreatable: &[ObjectKey], columns: usize) -> Vec<Line> {
    let Some(first) = recreatable.first() else {
        return Vec::new();
    };
    let is_one_place = recreatable.iter().all(|key| key.namespace == first.namespace);
    let (mut lossy, mut others) = (Vec::new(), Vec::new());
    for key in recreatable {
        let name = if is_one_place {
            key.object_name()
        } else {
            key.to_string()
        };
        if loses_data(Effect::Recreated, key) {
            lossy.push(format!("{name} (its data would be lost)"));
        } else {
            others.push(name);
        }
    }
    let most = NAMED.max(lossy.len());
    let names = first_listed(most, lossy.into_iter().chain(others));
    let count = recreatable.len();
    let text = format!("{count} of the changes may delete and create again: {names}");
    wrap(&text, columns)
        .iter()
        .map(|line| Line::new(Color::Danger, fit(line, columns)))
        .collect()
}
