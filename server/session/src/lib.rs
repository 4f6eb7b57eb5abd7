//! Doorward's sessions: what a program does to find a master, to talk to its parent, to serve its child
//! servers and to be elected. No I/O: drivers execute what a session wants done.
//!
//! The server's shell drives these machines with tonic and etcd, the simulator with messages of its own, the
//! client library and the command line as far as they need them. There is no second implementation.
//!
//! Sessions see **metadata** only: sequence, epoch, incarnation, status, mastership, size. On a `Send` action
//! the driver asks the node for the body; on a reply the session says keep or drop, and the driver hands the
//! body on. So no session has a type parameter, and none knows the engine or the wire.
//!
//! # The contract
//!
//! Methods come in four kinds:
//!
//! - getters;
//! - `handle_*`: something happened, at a time;
//! - `poll_*`: what is to be done (`poll_action`), and when to call again at the latest (`poll_timeout`);
//! - `snapshot` or `state`: what to show.
//!
//! One mutation, then drain: after each `handle_*`, take actions until there is none, then read the next
//! timeout. Time never runs backwards. Chance is an argument, uniform in 0…1: the same inputs give the same
//! actions, on every machine.

pub mod address;
pub mod backoff;
pub mod candidate;
pub mod child_streams;
pub mod closing;
pub mod epoch_filter;
pub mod master_finder;
pub mod parent_session;
pub mod planted;
pub mod time;
pub mod visible;
pub mod waiting_calls;
