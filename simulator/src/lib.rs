//! Simulator: the production engine and client state on a virtual clock and network.
//!
//! A [`scenario::Scenario`] describes a tree of nodes, clients with their demand, a network and
//! faults. [`world`] plays it; the production engine and client state make every decision.
//! [`checker`] watches, and knows only requests, grants and what clients could use. The outcome is a
//! [`recording::Recording`], which [`report`] renders. [`fuzz`] makes random scenarios.
//!
//! The same scenario with the same seed gives the same recording on every machine.

#![cfg_attr(test, allow(clippy::too_many_lines, reason = "tables of cases"))]

pub mod chance;
pub mod checker;
pub mod fuzz;
pub mod library;
mod local_clock;
mod numbered;
pub mod recording;
pub mod report;
pub mod scenario;
pub mod world;
