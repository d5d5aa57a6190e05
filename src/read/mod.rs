//! Reads from the cluster what a plan needs to know: the parent, the members, which
//! namespaces exist, and whether the user may write what was planned.
//!
//! It reads and remembers; it judges nothing. Where to look is told by
//! `plan::places`, what the findings mean by `plan`. A list that could not be read
//! to its end is an error, never a shorter list.

mod contents;
mod crawl;
mod definitions;
mod existing;
mod holders;
pub mod inspect;
mod list;
mod live;
mod members;
mod namespaces;
mod objects;
mod parent;
mod rights;
mod served;
mod unserved;
mod watch;

pub use contents::{ContentsError, contents};
pub use crawl::{Look, Looking, ParentCandidate, crawl, is_applied_without_a_set, parent_candidate, visible};
pub use existing::existing;
pub use holders::owners_of_holders;
pub use list::{ListError, Selector};
pub(crate) use list::{METADATA_LIST, WHOLE_OBJECTS};
pub use members::{members, throughout};
pub use namespaces::{namespace_names, namespaces};
pub use objects::{metadata, object, objects};
pub(crate) use parent::METADATA;
pub use parent::{
    DefinitionLabels, WholeParent, custom_parent_kinds, definition, definition_labels, parent, parents,
    whole_parent,
};
pub use rights::missing_rights;
pub use unserved::{
    KindWait, Unlistable, UnsettledError, await_defined, await_everything, await_named, definition_states,
    settle, unseen_kinds,
};
pub use watch::{changes, objects_at_version};

pub use crate::model::contents::{Contents, Held};
pub use crate::model::holders::{Holders, Owners};
pub use crate::model::list_targets::{Place, Places, Reach};
pub use crate::model::namespace::NamespaceState;
