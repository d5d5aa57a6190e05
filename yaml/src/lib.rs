#![doc = include_str!("../README.md")]

mod compose;
mod documents;
mod error;
mod field_path;
mod json;
mod limits;
mod node;
mod position;
mod scalar;
mod text;

pub use self::documents::{Documents, Part, documents, parts};
pub use self::error::{Error, Errors, Problem};
pub use self::limits::{Budget, MAX_ALIAS_BYTES, MAX_ALL_VALUES, MAX_DEPTH, MAX_VALUES};
pub use self::node::{Entry, Node};
pub use self::position::Position;
pub use self::text::{InvalidText, decode};
