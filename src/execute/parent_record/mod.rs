//! The protocol of the parent: a run that writes members writes the parent before the first and after the last.
//!
//! - **Begin** (`begin`): the record becomes what it says and what the run may write, and the history gets an
//!   entry of the run with the result `running`.
//! - **End** (`end`): the entry gets its result. The record becomes exact if all was done and no other run was at
//!   work on the set since this one read the parent; otherwise it stays as wide as it is, and the next run narrows
//!   it. A run that writes no member ends without having begun.
//! - A run that only takes objects out of the set has an entry for people and for `--exclusive`. Nothing stays
//!   recorded for it. It ends by removing the parent or its record, if nothing is left.
//!
//! Each write is bound to the version that it was decided on. After a conflict the run reads the parent, decides
//! again, and writes again.
//!
//! So the record covers every member at every moment, except what a new parent needs to exist, which is written before
//! it. A run narrows or removes it only if it saw no entry of another run when it read the parent, and it lists the
//! members after that read. A run that begins later changes the version, so the write fails, and the record is not
//! narrowed. A run that ended earlier wrote its members before the list. A run that does not know the answer to one of
//! its writes does not end.
//!
//! The entry of a run that was killed stays `running`. Ten minutes after its last renewal it counts as abandoned, and the
//! next run makes it a past one. A live run renews its entry in time (`renew`), and writes nothing if it cannot.
//!
//! `interleavings` checks this for all interleavings of short runs. Tools that do not know the entries, kubectl among
//! them, are outside of it.

pub mod begin;
mod denial;
pub mod end;
mod exact_record;
#[cfg(test)]
mod interleavings;
mod members_without_label;
mod own_manifest;
pub mod remove;
pub mod renew;
pub mod repair;
pub mod requests;
pub mod run;

/// Attempts to write a parent that other clients write at the same time.
pub const ATTEMPTS: usize = 20;

/// Warning that another run works on the same set.
pub const OVERTAKEN: &str = "another run worked on this set at the same time, so the set's record was not narrowed; the next run narrows it";
