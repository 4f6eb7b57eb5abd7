//! The gRPC services for operators and tools: the status of a server, and rule documents.

pub mod callers_service;
pub mod learning_service;
pub mod rules_service;
pub mod rules_watch;
pub mod status_service;
