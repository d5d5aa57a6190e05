//! `ApplySets` (KEP-3659) for people who apply manifests from scripts.
//!
//! One way through: `manifest` → `discovery` → `desired` → `observe` → `plan` →
//! `execute` → `event` → `report`. Each stage takes the value that the stage before it
//! made. `commands` puts the stages together; ARCHITECTURE.md tells the rest.

pub mod apiserver;
pub mod applyset;
pub mod changes;
pub mod cli;
pub mod commands;
pub mod connection;
pub mod desired;
pub mod diff;
pub mod discovery;
pub mod error;
pub mod event;
pub mod execute;
pub mod identity;
pub mod inspect;
pub mod inventory;
pub mod manifest;
pub mod message;
pub mod object;
pub mod observe;
pub mod options;
pub mod ownership;
pub mod plan;
pub mod programs;
pub mod protection;
pub mod proxy;
pub mod readiness;
pub mod recorded;
pub mod report;
pub mod rights;
pub mod saved_plan;
pub mod verify;
pub mod wait;
pub mod wording;
