//! The ApplySet convention (KEP-3659): ids, tooling, the parent's record of group-kinds and namespaces, and their form
//! as labels and annotations.
//!
//! Nothing here knows which kinds a cluster serves.

mod id;
pub mod parent;
pub mod record;
pub mod tooling;

pub use id::ApplySetId;
pub use parent::ParentIdentity;
pub use record::Record;
pub use tooling::Tooling;

/// Label on a parent: the id of its set.
pub const ID_LABEL: &str = "applyset.kubernetes.io/id";
/// Label on a member: the id of the set that it belongs to.
pub const PART_OF_LABEL: &str = "applyset.kubernetes.io/part-of";
/// Label on a CRD whose custom resources may be parents; only its existence counts.
pub const IS_PARENT_TYPE_LABEL: &str = "applyset.kubernetes.io/is-parent-type";
/// Annotation on a parent: the tool that manages the set, as `<name>/<version>`.
pub const TOOLING_ANNOTATION: &str = "applyset.kubernetes.io/tooling";
/// Annotation on a parent: the kinds that members may have, as `Kind.group,…`.
pub const GROUP_KINDS_ANNOTATION: &str = "applyset.kubernetes.io/contains-group-kinds";
/// Annotation on a parent: the deprecated form of `contains-group-kinds`, `resource.group,…`. It is read, but never
/// written.
pub const GROUP_RESOURCES_ANNOTATION: &str = "applyset.kubernetes.io/contains-group-resources";
/// Annotation on a parent: the namespaces of members, except the parent's own.
pub const ADDITIONAL_NAMESPACES_ANNOTATION: &str = "applyset.kubernetes.io/additional-namespaces";
/// Prefix of all labels and annotations of the convention.
pub const KEY_PREFIX: &str = "applyset.kubernetes.io/";
