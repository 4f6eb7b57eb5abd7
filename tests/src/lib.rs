//! Doorward end to end: what the tests in `tests/` share. They start the programs as anybody would.

pub mod attacker;
pub mod besieged;
pub mod candidates;
pub mod certificates;
pub mod crowd;
pub mod etcd;
pub mod figures;
pub mod honest;
pub mod ports;
pub mod probe;
pub mod processes;
pub mod proxy;
