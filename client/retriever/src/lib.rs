//! Draft.
pub mod files;
