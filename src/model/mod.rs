//! The values that all stages share. No I/O.

pub mod applyset;
pub mod container_owners;
pub mod contents;
pub mod dependency_ranks;
pub mod depends_on;
pub mod digest;
pub mod field_conflict;
pub mod generated_name;
pub mod history_annotation;
pub mod identity;
pub mod keep_annotations;
pub mod list_targets;
pub mod live;
pub mod message;
pub mod namespace;
pub mod object;
pub mod parent_object;
pub mod permission;
pub mod pointer;
pub mod prune_order;
pub mod recreatable_kind;
pub mod recreate_annotation;
pub mod resource;
pub mod set;
pub mod text;
pub mod write_settings;
