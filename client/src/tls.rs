//! Connections by TLS, and the proof of who the client is: a certificate or a token.
//!
//! ```no_run
//! use doorward::Client;
//! use doorward::tls::{ClientFiles, ClientTls};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let tls = ClientTls::open(ClientFiles {
//!     ca: "/etc/doorward/ca.pem".into(),
//!     identity: Some(("/etc/orders/tls.crt".into(), "/etc/orders/tls.key".into())),
//!     token: None,
//! })?;
//! let client = Client::builder().id("orders-1").address("https://quota.example.com:6970").tls(tls);
//! # Ok(())
//! # }
//! ```

pub use doorward_tls::TlsError;
pub use doorward_tls::client::{ClientFiles, ClientTls};
