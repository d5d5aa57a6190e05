//! Lines, rows and tables that fit into a terminal.

pub(super) mod columns;
pub(super) mod paint;
pub(super) mod rows;
