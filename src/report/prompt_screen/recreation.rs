//! Recreations, and the changes that may turn out to be some: only the server knows, once a change is sent.

use super::{Danger, LISTED, name, wrapped};
use crate::model::identity::ObjectKey;
use crate::plan::loses_data;
use crate::report::paint::{Color, Line, fitted};

/// Returns the loss by the recreation of this object.
pub(super) fn danger(key: &ObjectKey) -> Option<Danger> {
    loses_data(&key.group_kind).then(|| Danger {
        object: Some(key.clone()),
        sign: "  ± ",
        text: "RECREATE: its data will be lost".to_owned(),
        details: Vec::new(),
    })
}

/// Returns the lines that name these objects, those whose data would be lost first. None of these is left
/// out, however many there are.
pub(super) fn lines(recreatable: &[ObjectKey], columns: usize) -> Vec<Line> {
    let Some(first) = recreatable.first() else {
        return Vec::new();
    };
    let is_lossy = |key: &&ObjectKey| loses_data(&key.group_kind);
    let (lossy, others): (Vec<&ObjectKey>, Vec<&ObjectKey>) = recreatable.iter().partition(is_lossy);
    let is_one_place = recreatable.iter().all(|key| key.namespace == first.namespace);
    let place = |key: &ObjectKey| if is_one_place { name(key) } else { key.to_string() };
    let room = LISTED.saturating_sub(lossy.len());
    let more = others.len().saturating_sub(room);
    let lossy = lossy
        .into_iter()
        .map(|key| format!("{} (its data would be lost)", place(key)));
    let others = others.into_iter().take(room).map(place);
    let more = (more > 0).then(|| format!("{more} more"));
    let names: Vec<String> = lossy.chain(others).chain(more).collect();
    let text = format!(
        "{} of the changes may delete and create again: {}",
        recreatable.len(),
        names.join(", ")
    );
    let lines = wrapped(&text, columns).into_iter();
    lines
        .map(|line| Line::new(Color::Danger, fitted(&line, columns)))
        .collect()
}
