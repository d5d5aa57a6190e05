//! Input that a person made to do harm, or that is broken: manifests that grow, files that
//! are none, text for terminals, parents and servers that pretend. Nothing panics, nothing
//! wrong is written or deleted, and time and memory stay bounded.

mod bytes;
mod manifests;
mod parents;
mod text;
