//! Metrics of mastership, and of etcd or the state directory.

use std::fmt;

use crate::metrics::families::{Families, flag, float};
use crate::status::ServerState;

pub(super) fn write(state: &ServerState, families: &mut Families<'_>) -> fmt::Result {
    let (epoch, masterships, master_for) = state.node().look(|node, now| {
        let master_for = node.valid_until().map(|until| until.since(now));
        (node.mastership(now).epoch(), node.masterships(), master_for)
    });
    let help = "How often the node had another master, or none, as this server saw it";
    families.counter("mastership_changes", help, masterships)?;
    if let Some(problem) = state.state_directory.borrow().clone() {
        let help = "1 if the state directory can be written; 0: leases do not grow";
        families.gauge("state_directory_up", help, flag(problem.is_none()))?;
    }
    let Some(contact) = state.etcd.borrow().clone() else {
        return Ok(());
    };
    let help = "1 if etcd answers the election";
    families.gauge("etcd_up", help, flag(contact.problem.is_none()))?;
    let epoch = epoch.and_then(|it| usize::try_from(it).ok());
    let help = "The epoch of the node's master; 0: none is known";
    families.gauge("mastership_epoch", help, float(epoch.unwrap_or(0)))?;
    let help =
        "How long this server is the master if nothing more is heard from etcd; 0: it is not";
    let left = master_for.map_or(0.0, |left| left.as_secs_f64());
    families.gauge("mastership_remaining_seconds", help, left)
}
