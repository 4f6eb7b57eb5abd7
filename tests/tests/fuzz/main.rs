//! Fuzz targets for every message, document, key and trace that the programs read: no input crashes them or breaks an
//! invariant.
//!
//! Each file below has one target. It gets bytes, and asserts the invariants. `__fuzz__/TARGET/corpus` has real inputs,
//! and inputs that once caused a crash. They run first, and then mutations of them by [`mutate`]. [`runner`] decides
//! the number of inputs, and keeps failing ones.

mod chance;
mod conversation;
mod mutate;
mod runner;

mod addresses;
mod answers_to_clients;
mod answers_to_servers;
mod demand_curves;
mod etcd_values;
mod globs;
mod requests;
mod scenarios;
mod spans;
mod status_requests;
mod templates;
mod traces;
