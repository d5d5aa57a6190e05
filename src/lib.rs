//! ApplySets for people who apply manifests from scripts (KEP-3659).

pub mod apiserver;
pub mod applyset;
pub mod discovery;
pub mod identity;
pub mod manifest;
