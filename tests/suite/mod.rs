//! A module for each capability.

mod concurrency;
mod copied_labels;
mod dry_run;
mod failures;
mod inspection;
mod interoperability;
mod interruption;
mod output;
mod parents;
mod places;
mod pruning;
mod record;
mod refusals;
mod rights;
mod sources;
mod wrong_input;
