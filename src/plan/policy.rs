//! The policy of a run: everything that flags allow, refuse or limit.

use std::collections::BTreeSet;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::Recreate;
use crate::model::write_settings::Hooks;

/// Everything that the user allows, refuses and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    /// Treatment of members that the manifests no longer hold.
    pub pruning: Pruning,
    /// Time of the prunes.
    #[serde(default)]
    pub prune_when: PruneWhen,
    /// Treatment of a run that keeps no member of the set.
    pub prune_all: PruneAll,
    /// Treatment of members that are as the manifests have them.
    pub unchanged: UnchangedMembers,
    /// Treatment of objects of other sets.
    pub take_ownership: TakeOwnership,
    /// Treatment of objects that exist and are not in a set.
    #[serde(default)]
    pub unowned: Unowned,
    /// Treatment of hooks among the manifests.
    #[serde(default)]
    pub hooks: Hooks,
    /// The members that are recreated if the server refuses to update them.
    #[serde(default)]
    pub recreate: Recreate,
    /// Treatment of objects that cannot be restored.
    pub data_loss: DataLoss,
    /// The most objects that one run may prune.
    pub max_prune: Option<usize>,
    /// Field managers whose part-of labels make an object a member, which may be pruned.
    pub appliers: BTreeSet<String>,
}

/// Treatment of members that the manifests no longer hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Pruning {
    /// They are deleted.
    Enabled,
    /// They are kept and stay recorded.
    Disabled,
    /// They are deleted, and so are the parent and its namespace or CRD: the set is deleted.
    WholeSet,
}

/// Time at which the members that the manifests no longer hold are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum PruneWhen {
    /// Once all manifests are applied.
    #[default]
    Applied,
    /// Once all objects of the manifests are Current.
    Ready,
}

/// Treatment of a run that keeps no member of the set: without manifests, or with those of another set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PruneAll {
    /// Probably a mistake, such as a wrong directory, a wrong set or an empty pipe.
    Refused,
    /// All members are pruned.
    Allowed,
}

/// Treatment of members that are as the manifests have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnchangedMembers {
    /// Nothing is sent for them.
    LeftAlone,
    /// They are sent like the others; the server finds that nothing changes.
    Sent,
}

/// Treatment of objects of the manifests that are members of other sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TakeOwnership {
    /// They stop the run.
    Refused,
    /// They become members of this set and leave the other.
    Allowed,
}

/// Treatment of objects of the manifests that exist and are not in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unowned {
    /// They become members.
    #[default]
    TakenIn,
    /// They become members if the user has agreed to a plan that shows them.
    Shown,
    /// They stop the run.
    Refused,
}

/// Treatment of objects that cannot be restored: storage, and containers with objects of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DataLoss {
    /// Pruning them stops the run.
    Refused,
    /// They are pruned.
    Allowed,
}

/// Treatment of a parent that another tool manages, or of an object that is not a parent yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TakeOver {
    /// It stops the run.
    Refused,
    /// It becomes the parent of this set, once the user has confirmed that.
    Allowed,
}
