//! Rule documents that the server keeps for services, and the services that run them.
//!
//! - [`mod@document`]: a document, and the text of its domain that is in force;
//! - [`documents`]: all of them, as they are read;
//! - [`store`]: their place, a directory or etcd, with reads and writes;
//! - [`instances`]: clients that follow the documents.

pub mod document;
pub mod documents;
pub mod instances;
pub mod store;
