//! The objects of a YAML document: the document itself, or the items of a List.

use std::collections::VecDeque;

use kubernetes_yaml::Node;

use super::check_without_cluster::read_required;
use super::error::{LineFault, Problem};

/// Returns the objects of one document.
///
/// As in kubectl, every document with `items` is a List (`unstructured.IsList`), Lists in Lists follow the other items
/// of their List (`FlattenListVisitor`), and an item that has neither `apiVersion` nor `kind` gets both from the List.
/// But an object with a name and empty `items` is a fault: kubectl skips such an object. If we skipped it,
/// apply would prune it.
pub(super) fn flatten_lists(document: Node) -> Vec<Result<Node, LineFault>> {
    let mut objects = Vec::new();
    let mut lists = VecDeque::from([document]);
    while let Some(node) = lists.pop_front() {
        if node.get("items").is_none() {
            objects.push(Ok(node));
            continue;
        }
        match take_items(node) {
            Ok(items) => {
                for item in items {
                    if item.get("items").is_some() {
                        lists.push_back(item);
                    } else {
                        objects.push(Ok(item));
                    }
                }
            }
            Err(fault) => objects.push(Err(fault)),
        }
    }
    objects
}

/// Returns the items of a List, with the `apiVersion` and `kind` that the List implies.
fn take_items(mut list: Node) -> Result<Vec<Node>, LineFault> {
    let api_version = read_required(&list, "apiVersion")?.to_owned();
    let kind = read_required(&list, "kind")?;
    let item_kind = kind.strip_suffix("List").unwrap_or(kind).to_owned();
    // `kind: List` is always a List, even with a name.
    let is_named_object = kind != "List" && has_name(&list);
    let Some(entry) = list.take("items") else {
        return Ok(Vec::new());
    };
    let line = entry.position().line();
    let value = entry.into_value();
    if is_named_object && is_empty(&value) {
        return Err(LineFault::new(line, Problem::NamedList));
    }
    if value.is_null() {
        return Ok(Vec::new());
    }
    let mut items = value
        .into_items()
        .map_err(|other| LineFault::new(line, Problem::Items(other.description())))?;
    for item in &mut items {
        if !item.is_mapping() {
            let problem = Problem::Items(item.description());
            return Err(LineFault::new(item.position().line(), problem));
        }
        let has_no_type = item.get("apiVersion").is_none() && item.get("kind").is_none();
        if has_no_type && !item_kind.is_empty() {
            item.set_implied("apiVersion", &api_version);
            item.set_implied("kind", &item_kind);
        }
    }
    Ok(items)
}

fn is_empty(items: &Node) -> bool {
    items.is_null() || items.items().is_some_and(<[_]>::is_empty)
}

fn has_name(object: &Node) -> bool {
    object
        .get("metadata")
        .and_then(|metadata| metadata.get("name"))
        .is_some_and(|name| !name.is_null())
}
