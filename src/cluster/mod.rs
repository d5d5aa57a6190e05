//! The one door to the API server: connections, requests, and the kinds that it serves.

pub mod apiserver;
pub mod connection;
pub mod discovery;
pub mod identity;
pub mod proxy;
