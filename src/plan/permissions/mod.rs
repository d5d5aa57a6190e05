//! Permissions that a planned run needs (`planned_run`, `relabeling`), permissions that a set needs for its whole life
//! (`set_lifetime`), and the RBAC objects that grant them (`rbac_objects`).
//!
//! Pure: `session/permissions` has them checked before the first write, and `read/permissions` asks the server whether
//! the user has them.

mod object_content;
mod planned_run;
mod rbac_objects;
mod relabeling;
mod set_lifetime;

pub use planned_run::{needed_for_dry_run, needed_for_plan, needed_to_delete};
pub use rbac_objects::{RbacSubject, name, objects};
pub use relabeling::{on_parent, to_record, to_relabel, to_release};
pub use set_lifetime::{Past, needed_for_set, to_recreate};

#[cfg(test)]
mod tests;
