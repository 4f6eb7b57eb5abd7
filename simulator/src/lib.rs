//! The simulator: the engine and the client state that ship, on a virtual clock and network.
//!
//! A [`scenario::Scenario`] says what there is (a tree of nodes, clients, their demand, a network,
//! faults); [`world`] plays it, and every decision in it is made by the production engine and client
//! state; [`checker`] looks on, and knows only what was asked, granted and could be used; and what
//! came of it is a [`recording::Recording`], which [`report`] renders. [`fuzz`] makes scenarios by
//! chance.
//!
//! The same scenario with the same seed gives the same recording, on every machine.

pub mod chance;
pub mod checker;
pub mod fuzz;
pub mod library;
pub mod planted;
pub mod recording;
pub mod report;
pub mod scenario;
pub mod trace_feed;
pub mod world;
