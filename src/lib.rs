//! A kubectl plugin for `ApplySets` (KEP-3659): applies manifests as a set, and prunes what was removed from them.
//!
//! A run passes through the stages `manifest` → `read` → `plan` → `execute` → `event` → `report`. Each stage takes the
//! result of the stage before. `commands` connects the stages; ARCHITECTURE.md describes the other modules.
//!
//! The modules are private, so that the compiler warns about unused items.

mod cli;
mod cluster;
mod commands;
mod compare;
mod error;
mod event;
mod execute;
mod exit;
mod find_program;
mod import;
mod manifest;
mod model;
mod plan;
mod read;
mod regular_file;
mod report;
mod session;
mod settings;
mod verify;
mod wait;

pub use cli::Cli;
pub use commands::completion::print_candidates_if_requested;
pub use commands::run;

/// The items that tests in `tests/` and benchmarks use directly. They are not an API for other crates.
#[doc(hidden)]
pub mod internals {
    pub use crate::cluster::apiserver::{ApiRequest, ApiServer, Content};
    pub use crate::cluster::connection::{Connection, ConnectionOptions};
    pub use crate::cluster::discovery::fetch as fetch_discovery;
    pub use crate::compare::changes::{CrdVersion, Verdict, compare};
    pub use crate::compare::ignore::{BodyPurpose, body_with_live_values, may_be_ignored};
    pub use crate::compare::prediction::predict_apply;
    pub use crate::manifest::{Recursion, Source, read_with_standard_input};
    pub use crate::model::applyset::parent::{
        Pairs, Reading, RecordedKinds, annotations, labels, read_labels_and_annotations,
    };
    pub use crate::model::applyset::{
        ADDITIONAL_NAMESPACES_ANNOTATION, ApplySetId, GROUP_KINDS_ANNOTATION, GROUP_RESOURCES_ANNOTATION,
        ID_LABEL, ParentIdentity, Record, TOOLING_ANNOTATION, Tooling,
    };
    pub use crate::model::built_in_kinds::is_built_in;
    pub use crate::model::identity::GroupKind;
    pub use crate::model::object::Object;
    pub use crate::model::pointer::Pointer;
    pub use crate::model::resource::{Resource, Scope};
    pub use crate::read::list_parents as read_parents;
}
