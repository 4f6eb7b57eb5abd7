//! Whatever comes from outside is read without a crash, and changes nothing that must hold: fuzz
//! targets for every message, document, key and trace that the programs read.
//!
//! Each file below has one target. It is handed bytes, and asserts what holds for whatever they say.
//! `__fuzz__/TARGET/corpus` has real inputs, and those that once crashed it: all of them are tried
//! first, and then what [`mutate`] makes of them. [`runner`] says how many, and how a failure is kept.

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
