//! Which permissions a run needs for what it is about to write, which a set needs for all its
//! life, and the RBAC objects that grant them. Pure: `read::rights` asks whether the user has
//! them.

mod beyond;
mod ever;
mod membership;
mod now;
mod roles;

pub use ever::{Past, needed_ever};
pub use membership::{on_parent, to_record, to_relabel, to_release};
pub use now::{needed_now, needed_to_delete, needed_to_foresee};
pub use roles::{Subject, name, objects};

#[cfg(test)]
mod tests;
