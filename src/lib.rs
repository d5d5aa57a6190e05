//! `ApplySets` (KEP-3659) for people who apply manifests from scripts.
//!
//! One way through: `manifest` → `read` → `plan` → `execute` → `event` → `report`. Each stage
//! takes the value that the stage before it made. `commands` puts the stages together;
//! ARCHITECTURE.md describes the rest.

pub mod cli;
pub mod cluster;
pub mod commands;
pub mod compare;
pub mod error;
pub mod event;
pub mod execute;
pub mod find_program;
pub mod import;
pub mod manifest;
pub mod model;
pub mod plan;
pub mod read;
pub mod regular_file;
pub mod report;
pub mod session;
pub mod settings;
pub mod verify;
pub mod wait;
