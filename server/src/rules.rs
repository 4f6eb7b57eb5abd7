//! Rule documents that the server keeps for services, and the services that run them.
//!
//! - [`documents`]: the text of each domain that is in force;
//! - [`store`]: their place, a directory or etcd, with reads and writes;
//! - [`instances`]: clients that follow the documents.

pub mod documents;
pub mod instances;
pub mod store;
