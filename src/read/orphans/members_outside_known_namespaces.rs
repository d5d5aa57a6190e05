//! A search of the whole cluster finds objects with a set's label outside of the namespaces that the run knows of. This
//! module decides which of them count as members.
//!
//! The id of a set is public. If the label alone made an object a member, a user of one namespace could create a
//! labeled object there. The pipeline of another team, which applies the set, would then record that namespace. It may
//! not list there, so it would fail from then on.

use std::collections::{BTreeMap, BTreeSet};

use super::SearchRules;
use crate::cluster::apiserver::ApiServer;
use crate::model::live::Live;
use crate::model::permission::{NeededPermissions, Permission, Verb};
use crate::model::text::{counted, first_names_and_more};
use crate::read::{Administrator, find_missing_permissions};

/// The objects that a search has found, divided into members and objects that do not count as members.
pub(super) struct Credible {
    pub(super) found: Vec<Live>,
    /// The labeled objects that do not count as members.
    pub(super) left_out: LabeledNonMembers,
}

/// Objects with the set's label that do not count as members.
#[derive(Debug, Default)]
pub(in crate::read) struct LabeledNonMembers {
    /// A warning for each namespace with such objects.
    pub(in crate::read) warnings: Vec<String>,
    /// The number of these objects that an applier labeled. They are probably members, but the user may not delete
    /// them.
    pub(in crate::read) likely_members: usize,
}

/// The reason why a labeled object does not count as a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Doubt {
    /// No applier of the set wrote the label.
    Writer,
    /// The user may not delete objects of this kind in this namespace.
    Permission,
}

/// Leaves out objects outside of `known_namespaces`, unless an applier wrote the label and the user may delete the
/// object.
pub(super) async fn separate_members_from_doubtful(
    server: &ApiServer,
    found: Vec<Live>,
    known_namespaces: &BTreeSet<String>,
    search: SearchRules<'_>,
) -> Credible {
    let is_known = |live: &Live| {
        live.key
            .namespace
            .as_ref()
            .is_some_and(|name| known_namespaces.contains(name))
    };
    let is_applied = |live: &Live| live.has_part_of_label_written_by(search.appliers);
    let deletion =
        |live: &Live| Permission::on_all_objects(Verb::Delete, &live.resource, live.key.namespace.as_deref());
    let elsewhere = found.iter().filter(|live| !is_known(live) && is_applied(live));
    let needed = NeededPermissions {
        permissions: elsewhere.map(deletion).collect(),
        ..NeededPermissions::default()
    };
    let missing =
        find_missing_permissions(server, Administrator::NotAsked, &needed, search.concurrency).await;
    divide_by_doubt(found, |live| {
        if is_known(live) {
            None
        } else if !is_applied(live) {
            Some(Doubt::Writer)
        } else {
            missing.contains(&deletion(live)).then_some(Doubt::Permission)
        }
    })
}

/// Divides the objects by their `doubt`; `None` makes an object a member.
fn divide_by_doubt(found: Vec<Live>, doubt: impl Fn(&Live) -> Option<Doubt>) -> Credible {
    let mut doubtful: BTreeMap<(Option<String>, Doubt), Vec<Live>> = BTreeMap::new();
    let mut credible = Vec::new();
    for live in found {
        match doubt(&live) {
            None => credible.push(live),
            Some(doubt) => doubtful
                .entry((live.key.namespace.clone(), doubt))
                .or_default()
                .push(live),
        }
    }
    let mut left_out = LabeledNonMembers::default();
    for ((_, doubt), objects) in doubtful {
        left_out.warnings.push(warning(doubt, &objects));
        if doubt == Doubt::Permission {
            left_out.likely_members += objects.len();
        }
    }
    Credible {
        found: credible,
        left_out,
    }
}

fn warning(doubt: Doubt, objects: &[Live]) -> String {
    let names = first_names_and_more(objects.iter().map(|live| &live.key));
    let writers: BTreeSet<&String> = objects.iter().flat_map(|live| &live.part_of_writers).collect();
    let reason = match doubt {
        Doubt::Writer if writers.is_empty() => "no field manager owns the label".to_owned(),
        Doubt::Writer => format!(
            "the label was written by {}, which does not apply this set",
            first_names_and_more(writers)
        ),
        Doubt::Permission => format!(
            "the label was written by {}, and you cannot delete there",
            first_names_and_more(writers)
        ),
    };
    format!(
        "{} with this set's label ignored: outside the record, and {reason}: {names}",
        counted(objects.len(), "object")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fixtures::live;

    #[test]
    fn doubtful_objects_are_left_out_with_a_warning_for_each_namespace() {
        let objects = [
            live("ConfigMap", Some("shop"), "a"),
            live("ConfigMap", Some("victim"), "b"),
            live("ConfigMap", Some("victim"), "c"),
            live("ConfigMap", Some("other"), "d"),
        ];
        let credible = divide_by_doubt(objects.to_vec(), |live| match live.key.namespace.as_deref() {
            Some("victim") => Some(Doubt::Permission),
            Some("other") => Some(Doubt::Writer),
            _ => None,
        });
        let names: Vec<&str> = credible.found.iter().map(|live| live.key.name.as_str()).collect();
        assert_eq!(names, ["a"]);
        assert_eq!(credible.left_out.likely_members, 2);
        let [other, victim] = &credible.left_out.warnings[..] else {
            panic!("{:?}", credible.left_out);
        };
        assert!(
            other.contains("does not apply this set: configmap/d in namespace other"),
            "{other}"
        );
        assert!(victim.starts_with("2 objects with this set"), "{victim}");
        assert!(victim.contains("you cannot delete there"), "{victim}");
    }
}
