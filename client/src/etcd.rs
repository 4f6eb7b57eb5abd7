//! Access to etcd, for a program that configures it in code.
//!
//! ```
//! use std::sync::Arc;
//!
//! use doorward::Client;
//! use doorward::etcd::{Endpoint, Etcd, EtcdConfig};
//!
//! # fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let etcd = Etcd {
//!     config: Arc::new(EtcdConfig::new(vec![Endpoint::parse("https://etcd-0:2379")?])),
//!     prefix: "/doorward/nodes".to_owned(),
//! };
//! let builder = Client::builder().id("frontend-7").etcd(etcd).address("etcd:///eu");
//! # Ok(())
//! # }
//! ```

pub use doorward_etcd::config::{Endpoint, EndpointError};
pub use doorward_etcd::credentials::{CredentialFiles, CredentialsError};
pub use doorward_etcd::{Etcd, EtcdConfig, Tls, User};
