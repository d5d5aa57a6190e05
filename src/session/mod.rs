//! The session of a command: how it connects, asks the user, is interrupted and ends.
//!
//! `prepare` makes the plan of `apply`, `diff` and `delete`, and `adopt_move_disband` reads the sets of `adopt`,
//! `disband` and `move`. Code that two commands share is here or in one of the stages (`read`, `plan`, `execute`).

pub mod adopt_move_disband;
pub mod command_run;
pub mod connect;
pub mod export_members;
pub mod other_runs;
pub mod permissions;
pub mod plan_and_write;
pub mod prepare;
pub mod prompt;
pub mod set_to_show;
pub mod signals;
pub mod time_limit;
pub mod write_exported_files;
