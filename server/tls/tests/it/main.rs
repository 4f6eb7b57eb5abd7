//! Files of TLS, and handshakes that use them.

mod files;
mod kinds;
mod revocation;
mod tokens;
