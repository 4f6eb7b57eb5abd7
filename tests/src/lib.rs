//! Common code of the end-to-end tests: they start the programs as a user would.

pub mod attacker;
pub mod besieged;
pub mod candidates;
pub mod certificates;
pub mod crowd;
pub mod etcd;
pub mod figures;
pub mod group;
pub mod honest;
pub mod http_load;
pub mod mutations;
pub mod outside;
pub mod ports;
pub mod probe;
pub mod processes;
pub mod proxy;
pub mod template_file;
