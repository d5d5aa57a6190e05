//! The values that all stages share. Nothing here reads files or the cluster.

pub mod applyset;
pub mod built_in_kinds;
pub mod containers;
pub mod deletion_obstacles;
pub mod depends_on;
pub mod digest;
pub mod expiry;
pub mod generated_name;
pub mod history_annotation;
pub mod identity;
pub mod label_selector;
pub mod list_targets;
pub mod live;
pub mod message;
pub mod object;
pub mod permission;
pub mod pointer;
pub mod resource;
pub mod secret_value;
pub mod set;
pub mod text;
pub mod topological_ranks;
pub mod user_annotations;
pub mod write_settings;
