//! Servers in this process, and the binary as a process of its own. The tests speak to both as clients do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, helpers included"
)]

mod admin;
mod bad_input;
mod capacity;
mod children;
mod client_streams;
mod clocks;
mod cycles;
mod discovery;
mod documents;
mod door;
mod driven_child;
mod driven_client;
mod edge;
mod fake_parent;
mod family;
mod learning;
mod limits;
mod limits_documented;
mod logs;
mod looks;
mod mastership;
mod metrics_documented;
mod metrics_formats;
mod overload;
mod pages;
mod plans;
mod previous_version;
mod process;
mod processes;
mod processes_of_a_node;
mod readiness;
mod retriever;
mod rules;
mod rules_shown;
mod running;
mod security;
mod security_changes;
mod security_refusals;
mod shutdown;
mod status_pages;
mod template_file;
mod templates;
mod tree;
mod unix_sockets;
mod upstream;
mod upstream_addresses;
mod upstream_refusals;
