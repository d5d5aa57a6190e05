//! Leaves each object once: two groups can serve one object, as the core group and `events.k8s.io` do
//! with Events.
//!
//! Members are unique from where they are read on, so everything that counts them counts objects.

use std::collections::HashMap;

use crate::model::identity::ObjectKey;
use crate::model::live::Live;

/// Leaves each object under one of its keys: one that `is_preferred`, else the first in order.
pub fn unique_by_uid<T>(
    found: &mut Vec<T>,
    live: for<'t> fn(&'t T) -> &'t Live,
    is_preferred: impl Fn(&ObjectKey) -> bool,
) {
    let rank = |one: &T| !is_preferred(&live(one).key);
    let mut chosen: HashMap<&str, usize> = HashMap::with_capacity(found.len());
    for (index, one) in found.iter().enumerate() {
        let best = chosen.entry(&live(one).uid).or_insert(index);
        let other = &found[*best];
        if (rank(one), &live(one).key) < (rank(other), &live(other).key) {
            *best = index;
        }
    }
    if chosen.len() == found.len() {
        return;
    }
    let mut is_chosen = vec![false; found.len()];
    for index in chosen.into_values() {
        is_chosen[index] = true;
    }
    let mut answers = is_chosen.into_iter();
    found.retain(|_| answers.next() == Some(true));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::identity::GroupKind;
    use crate::plan::fixtures::live;

    #[test]
    fn an_object_that_two_groups_serve_is_left_once() {
        let event = |group: &str, name: &str| {
            let mut event = live("Event", Some("shop"), name);
            event.key.group_kind = GroupKind::new(group, "Event");
            event
        };
        let [one, other] = ["", "events.k8s.io"].map(|group| event(group, "one"));
        let two = event("", "two");
        let all = [&other, &two, &one];
        let table: [(&[&Live], &str, &[&Live]); 4] = [
            (&all, "-", &[&two, &one]),
            (&all, "events.k8s.io", &[&other, &two]),
            (&[&one, &other], "events.k8s.io", &[&other]),
            (&[&two, &one], "events.k8s.io", &[&two, &one]),
        ];
        for (found, preferred, expected) in table {
            let mut found: Vec<Live> = found.iter().map(|&live| live.clone()).collect();
            unique_by_uid(&mut found, |live| live, |key| key.group_kind.group == preferred);
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{preferred}");
        }
    }
}
