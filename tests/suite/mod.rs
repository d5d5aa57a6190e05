//! A module for each capability.

mod concurrency;
mod copied_labels;
mod copies;
mod data_loss;
mod deletion;
mod dry_run;
mod failures;
mod inspection;
mod interoperability;
mod interruption;
mod limits;
mod migration;
mod neighbour;
mod one_run;
mod output;
mod overlap;
mod parents;
mod places;
mod protection;
mod pruning;
mod record;
mod refusals;
mod rights;
mod sources;
mod vanished;
mod wrong_input;
