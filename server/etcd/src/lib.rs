//! Doorward's keys in etcd, and connections to it.
//!
//! - [`connection`]: calls that end in time, at whichever endpoint works;
//! - [`credentials`]: TLS and passwords from files that operators replace;
//! - [`follow`]: a range of keys as it is now, and whenever it changes;
//! - [`layout`]: under which keys masters, servers and documents stand;
//! - [`directory`]: where the servers of a node are, and which of them is the master;
//! - [`address`]: a node in etcd, as one text;
//! - [`place`]: the place of a document, in etcd or in a file;
//! - [`documents`]: documents in etcd, with every version of them.
//!
//! etcd's client never reconnects: a stream that ended has ended, a call to a frozen member
//! hangs, and an endpoint that failed is asked again and again. So every call here has a timeout of
//! its own, one endpoint is used at a time and left as soon as it fails, and what is watched is also
//! looked at from time to time.

pub mod address;
pub mod config;
pub mod connection;
pub mod credentials;
pub mod directory;
pub mod documents;
pub mod error;
#[cfg(feature = "flags")]
pub mod flags;
pub mod follow;
pub mod layout;
pub mod place;

pub use address::{Etcd, EtcdNode, NodeAddress};
pub use config::EtcdConfig;
pub use connection::EtcdConnection;
pub use credentials::{Tls, User};
pub use error::Error;
pub use place::DocumentPlace;
