//! TLS of servers, agents, clients and the command line.
//!
//! - [`dialer`] and [`client`] connect to servers, [`server`] accepts connections.
//! - [`identity`] names a caller by its certificate, [`tokens`] by a secret that it sends.
//!
//! Files are read again when they change ([`Reloading`](doorward_files::Reloading)). The last valid ones stay in force.
//!
//! Cryptography is that of ring, through rustls: TLS 1.2 and 1.3, with their safe suites.

#[cfg(feature = "tls")]
mod alerting;
#[cfg(feature = "tls")]
mod causes;
#[cfg(feature = "tls")]
pub mod client;
pub mod dialer;
#[cfg(feature = "flags")]
pub mod flags;
pub mod http_port;
#[cfg(feature = "identity")]
pub mod identity;
#[cfg(feature = "tls")]
mod own;
#[cfg(feature = "tls")]
pub mod pem;
#[cfg(feature = "server")]
mod revocation;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod tokens;

use std::io;
#[cfg(feature = "tls")]
use std::path::Path;
use std::path::PathBuf;
#[cfg(feature = "tls")]
use std::sync::Arc;

#[cfg(feature = "tls")]
pub use doorward_files::described;
#[cfg(feature = "tls")]
use rustls::crypto::CryptoProvider;
use thiserror::Error;

/// A file that cannot be used for TLS.
#[derive(Debug, Error)]
pub enum TlsError {
    /// It cannot be read.
    #[error("cannot read {path:?}")]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// It does not hold what it should.
    #[error("{path:?}: {problem}")]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// The problem and its remedy.
        problem: String,
    },
}

#[cfg(feature = "tls")]
impl TlsError {
    fn read(path: &Path, source: io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }

    fn content(path: impl Into<PathBuf>, problem: impl ToString) -> Self {
        Self::Content {
            path: path.into(),
            problem: problem.to_string(),
        }
    }
}

/// Returns the cryptography. It is named everywhere, since other crates of a program may install another one.
#[cfg(feature = "tls")]
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
