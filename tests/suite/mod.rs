//! A module for each capability.

mod interoperability;
mod interruption;
mod parents;
mod places;
mod pruning;
mod record;
mod rights;
mod sources;
