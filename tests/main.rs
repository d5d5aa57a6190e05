//! Tests of the real program against a real API server, all in one binary that shares
//! one throw-away control plane.
//!
//! A test belongs here if only a server can decide it: they assert on the state of the
//! cluster and on exit codes. Rules of single stages are tested beside their code.

mod changes_property;
#[cfg(target_os = "linux")]
mod compatibility;
mod documentation;
mod faults;
mod hostile;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
mod integrations;
mod kubernetes_tables;
mod layers;
mod model;
mod packaging;
mod quick;
#[cfg(target_os = "linux")]
mod release;
mod suite;
mod supply_chain;
mod support;
mod terminal;
