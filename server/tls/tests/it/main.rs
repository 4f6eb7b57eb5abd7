//! Files of TLS, and handshakes that use them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, helpers included"
)]

mod files;
mod kinds;
mod revocation;
mod tokens;
