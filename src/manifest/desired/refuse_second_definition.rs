//! Refuses an object that two manifests define. The key has the namespace that the object gets, so this is known only
//! after discovery.

use std::collections::HashMap;

use crate::manifest::Position;
use crate::model::identity::ObjectKey;
use crate::model::message::Message;

/// Checks that no earlier manifest defines the object, and notes the position of this one.
pub(super) fn refuse_second_definition(
    earlier: &mut HashMap<ObjectKey, Position>,
    key: &ObjectKey,
    position: &Position,
) -> Result<(), Message> {
    let Some(first) = earlier.get(key) else {
        earlier.insert(key.clone(), position.clone());
        return Ok(());
    };
    let hint = if first.is_same_place(position) {
        "name this file once with -f, or write the object once on this line"
    } else {
        "remove one of the two"
    };
    Err(Message::new(format!("{key} is defined twice: first at {first}")).with_hint(hint))
}
