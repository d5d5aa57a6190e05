//! The values that all stages share. No I/O.

pub mod applyset;
pub mod identity;
pub mod kept;
pub mod live;
pub mod message;
pub mod object;
pub mod parent_object;
pub mod permission;
pub mod resource;
pub mod set;
pub mod settings;
pub mod text;
