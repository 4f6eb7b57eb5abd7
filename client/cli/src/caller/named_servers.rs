//! Servers that other servers name: each is asked once, a few at a time, and only so many.
//!
//! Its answer is only believed about itself, and it gets no token: its address is what it told its parent.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use crate::caller::MasterCaller;
use crate::failure::Failure;

/// Servers that are asked at the same time.
const AT_ONCE_MAX: usize = 16;

/// Servers that are asked in all.
const SERVERS_MAX: usize = 2_000;

/// Time for all of them, unless the wait for an answer is short.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks the servers of a tree, level by level.
pub(crate) struct NamedServers<'a> {
    caller: &'a MasterCaller,
    /// Names of the nodes.
    seen: BTreeSet<String>,
    until: Instant,
}

impl<'a> NamedServers<'a> {
    /// Returns the servers below the first one, which the caller asks.
    pub(crate) fn below(caller: &'a MasterCaller, first: &str) -> Self {
        Self {
            caller,
            seen: BTreeSet::from([first.to_owned()]),
            until: Instant::now() + PATIENCE.min(caller.timeout.saturating_mul(12)),
        }
    }

    /// Asks each server, given by its node, its address and the question. Returns the answers in that order, or why
    /// there is none. `node_of` finds in an answer which node gave it.
    pub(crate) async fn ask<Q, A>(
        &mut self,
        servers: impl IntoIterator<Item = (String, Option<String>, Q)>,
        ask: impl AsyncFn(MasterCaller, Q) -> Result<A, Failure>,
        node_of: fn(&A) -> &str,
    ) -> Vec<Result<A, String>> {
        let mut asking = Vec::new();
        for (node, address, question) in servers {
            let (caller, until, ask) = (self.claimed(&node, address), self.until, &ask);
            asking.push(async move {
                let answer = timeout_at(until, ask(caller?, question)).await;
                match answer.map_err(|_| "not in the time for all servers".to_owned())? {
                    Ok(answer) if node_of(&answer) == node => Ok(answer),
                    Ok(answer) => Err(format!("the node {} is at its address", node_of(&answer))),
                    Err(failure) => Err(failure.to_string()),
                }
            });
        }
        stream::iter(asking).buffered(AT_ONCE_MAX).collect().await
    }

    fn claimed(&mut self, node: &str, address: Option<String>) -> Result<MasterCaller, String> {
        let unknown = "address unknown: it is of an earlier release, or has none";
        let address = address.ok_or_else(|| unknown.to_owned())?;
        if self.seen.len() >= SERVERS_MAX {
            return Err(format!("{SERVERS_MAX} servers were asked"));
        }
        if !self.seen.insert(node.to_owned()) {
            return Err("a server of this name is elsewhere in the tree, too".to_owned());
        }
        let claimed = self.caller.claimed(&address);
        claimed.map_err(|failure| failure.to_string())
    }
}
