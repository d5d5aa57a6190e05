//! A module for each capability.

mod interruption;
mod pruning;
mod record;
