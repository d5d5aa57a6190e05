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
pub mod recorded_kinds;
mod rights;
mod served;
mod unserved;
mod watch;

pub use contents::{Contents, ContentsError, Held, contents};
pub use crawl::{Look, Looking, ParentCandidate, crawl, is_applied_without_a_set, parent_candidate, visible};
pub use existing::existing;
pub use holders::{Holders, Owners, owners_of_holders};
pub use list::{ListError, Selector};
pub(crate) use list::{METADATA_LIST, WHOLE_OBJECTS};
pub use members::{Place, Places, Reach, members, throughout};
pub use namespaces::{NamespaceState, namespace_names, namespaces};
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
