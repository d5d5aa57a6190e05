//! Lines, rows and tables that fit into a terminal.

pub(super) mod align_columns;
pub(super) mod paint;
pub(super) mod plan_rows;
