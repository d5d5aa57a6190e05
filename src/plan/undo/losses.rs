//! What an undo cannot restore: the data of volumes, what is deleted with a namespace or a CRD, fields
//! of others, and what is not a member.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Change, UndoItem, Values};
use crate::compare::ownership::{CLIENT_SIDE_APPLY, applied_version, other_deciders};
use crate::model::contents::Contents;
use crate::model::identity::{GroupKind, ObjectKey};
use crate::plan::{DataLoss, Plan, Policy, loses_data};

/// Something that an undo cannot restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Loss {
    /// The object that the run changes.
    pub object: ObjectKey,
    /// What is lost with it, as a noun.
    pub what: String,
    /// Whether it is lost in any case.
    #[serde(default)]
    pub when: LossCase,
}

/// The case in which something is lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LossCase {
    /// The run loses it.
    #[default]
    Certain,
    /// The run loses it if the server refuses to update the object.
    IfRecreated,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let condition = match self.when {
            LossCase::Certain => "",
            LossCase::IfRecreated => " if it is recreated",
        };
        write!(
            f,
            "{}: an undo cannot restore {}{condition}",
            self.object, self.what
        )
    }
}

/// The most objects that one loss names.
const NAMED: usize = 10;

/// Returns what undoing a run could not restore. `contents` is what namespaces and CRDs hold that it
/// prunes, and `parent` the set's parent, if the run applies a manifest of it.
pub fn losses(
    plan: &Plan,
    items: &[UndoItem],
    contents: &BTreeMap<ObjectKey, Contents>,
    parent: Option<&ObjectKey>,
    policy: &Policy,
    (manager, id): (&str, &str),
) -> Vec<Loss> {
    let recorded: BTreeSet<&ObjectKey> = items.iter().map(|item| &item.key).collect();
    let mut losses = Vec::new();
    for item in items {
        let loss = |when: LossCase| {
            move |what: String| Loss {
                object: item.key.clone(),
                what,
                when,
            }
        };
        let mut certain = Vec::new();
        let mut lose = |what: String| certain.push(what);
        if item.values == Values::Omitted && item.change != Change::Create {
            lose("its values (--undo-secrets=omit)".to_owned());
        }
        if let Some(other) = item.former_set().filter(|other| *other != id) {
            lose(format!("its membership in ApplySet {other}"));
        }
        if let Some(was) = &item.was
            && let Some(version) = applied_version(&was["metadata"], manager)
            && was["apiVersion"] != version
        {
            lose(format!("the fields that only {version} has"));
        }
        if item.change == Change::Prune
            && let Some(contents) = contents.get(&item.key)
        {
            lose_contents(contents, &recorded, &mut lose);
        }
        if let Some(case) = case_of_deletion(item, policy) {
            losses.extend(lost_by_deletion(item, manager).map(loss(case)));
        }
        losses.extend(certain.into_iter().map(loss(LossCase::Certain)));
    }
    for detachment in &plan.dependents.detachments {
        losses.push(Loss {
            object: detachment.dependent.key.clone(),
            what: "its owner references".to_owned(),
            when: LossCase::Certain,
        });
    }
    losses.extend(parent.map(|parent| Loss {
        object: parent.clone(),
        what: "the content of the set's parent".to_owned(),
        when: LossCase::Certain,
    }));
    losses
}

/// Returns the case in which the run deletes an object that existed; `None` if it does not.
fn case_of_deletion(item: &UndoItem, policy: &Policy) -> Option<LossCase> {
    match item.change {
        Change::Create => None,
        Change::Prune => Some(LossCase::Certain),
        Change::Change => {
            let kind = &item.key.group_kind;
            let keeps_data = policy.data_loss == DataLoss::Refused && loses_data(kind);
            let is_chosen = item.is_chosen_for_recreation(&policy.recreate);
            (is_chosen && !keeps_data).then_some(LossCase::IfRecreated)
        }
    }
}

/// Returns what is lost if an object is deleted, and created again.
fn lost_by_deletion(item: &UndoItem, manager: &str) -> impl Iterator<Item = String> {
    let was = item.was.as_ref();
    let data = was
        .and_then(|was| data(&item.key.group_kind, was))
        .map(str::to_owned);
    let mut others = was.map_or_else(BTreeSet::new, |was| other_deciders(&was["metadata"], manager));
    // They come back as fields of ours.
    others.remove(CLIENT_SIDE_APPLY);
    let others: Vec<String> = others.into_iter().collect();
    let others = (!others.is_empty()).then(|| format!("the fields owned by {}", others.join(", ")));
    data.into_iter().chain(others)
}

/// The data that is deleted with an object.
pub(in crate::plan) fn data(kind: &GroupKind, was: &Value) -> Option<&'static str> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "PersistentVolumeClaim") => Some("the data of its volume"),
        ("", "PersistentVolume") => Some("the data of the volume"),
        ("apps", "StatefulSet") => {
            let policy = &was["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"];
            (policy == "Delete").then_some("the data of its volumes")
        }
        _ => None,
    }
}

fn lose_contents(contents: &Contents, recorded: &BTreeSet<&ObjectKey>, lose: &mut impl FnMut(String)) {
    let others = contents.objects.iter();
    let others: Vec<String> = others
        .filter(|held| !recorded.contains(&held.key) && held.owners.is_empty())
        .map(|held| held.key.to_string())
        .collect();
    if !others.is_empty() {
        let more = others.len().saturating_sub(NAMED);
        let named = others.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let rest = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        lose(format!("the other objects in it: {named}{rest}"));
    }
    let unanswering = contents.unanswering.values();
    let unknown: Vec<&str> = contents
        .unknown
        .iter()
        .chain(unanswering)
        .map(String::as_str)
        .collect();
    if !unknown.is_empty() {
        lose(format!("its {}, which could not be listed", unknown.join(", ")));
    }
}
