//! The one door to the API server: how it is reached, as whom, what is sent, and which kinds
//! it serves.

pub mod apiserver;
pub mod connection;
pub mod discovery;
pub mod proxy;
