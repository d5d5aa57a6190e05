//! Lines, rows and tables that fit into a terminal.

pub(super) mod paint;
pub(super) mod plan_rows;
pub(super) mod tables;
