//! Compares live objects with their manifests: unchanged or not, differences, field ownership and
//! status. Pure.

pub mod changes;
pub mod diff;
pub mod ownership;
pub mod status;
