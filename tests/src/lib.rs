//! Doorward end to end: what the tests in `tests/` share. They start the programs as anybody would.

pub mod candidates;
pub mod certificates;
pub mod crowd;
pub mod etcd;
pub mod ports;
pub mod probe;
pub mod processes;
pub mod proxy;
