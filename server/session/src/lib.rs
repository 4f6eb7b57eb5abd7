//! Doorward's sessions: state machines that find a master, talk to a parent, serve child servers and stand for
//! election. They do no I/O: drivers execute their actions.
//!
//! The server's shell drives these machines with tonic and etcd, the simulator with messages of its own. The
//! client library and the command line use the parts they need. There is no second implementation.
//!
//! Sessions see **metadata** only: sequence, epoch, incarnation, status, mastership, size. On a `Send` action
//! the driver asks the node for the body. On a reply the session says keep or drop; the driver gives a body to
//! keep to the node. So no session has a type parameter, and none knows the engine or the wire.
//!
//! # The contract
//!
//! There are four kinds of methods:
//!
//! - getters;
//! - `handle_*`: an event, with its time;
//! - `poll_*`: the next action (`poll_action`), and the latest time of the next call (`poll_timeout`);
//! - `snapshot` or `state`: status.
//!
//! One mutation, then drain: after each `handle_*`, take actions until there is none, then read the next timeout. Time
//! never runs backwards. Random numbers are arguments, uniform in 0…1: the same inputs give the same actions, on every
//! machine.

pub mod address;
pub mod backoff;
#[cfg(feature = "candidate")]
pub mod candidate;
pub mod child_streams;
pub mod close_reason;
pub mod epoch_filter;
pub mod master_finder;
pub mod parent_session;
pub mod race;
pub mod time;
pub mod visible;

pub use doorward_time::named;
