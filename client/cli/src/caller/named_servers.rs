//! Servers that other servers name: each is asked once, a few at a time, and only so many.
//!
//! Its answer is only believed about itself, and it gets no token: its address is what it told its parent.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
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
    turns: Arc<Semaphore>,
    until: Instant,
}

impl<'a> NamedServers<'a> {
    /// Returns the servers below the first one, which the caller asks.
    pub(crate) fn below(caller: &'a MasterCaller, first: &str) -> Self {
        Self {
            caller,
            seen: BTreeSet::from([first.to_owned()]),
            turns: Arc::new(Semaphore::new(AT_ONCE_MAX)),
            until: Instant::now() + PATIENCE.min(caller.timeout.saturating_mul(12)),
        }
    }

    /// Asks each server, given by its node, its address and the question. Returns the answers in that order, or why
    /// there is none. `node_of` finds in an answer which node gave it.
    pub(crate) async fn ask<Q, A, F>(
        &mut self,
        servers: impl IntoIterator<Item = (String, Option<String>, Q)>,
        ask: impl Fn(MasterCaller, Q) -> F,
        node_of: fn(&A) -> &str,
    ) -> Vec<Result<A, String>>
    where
        A: Send + 'static,
        F: Future<Output = Result<A, Failure>> + Send + 'static,
    {
        let mut asking = Vec::new();
        for (node, address, question) in servers {
            let asked = self.claimed(&node, address);
            let asked = asked.map(|caller| ask(caller, question));
            let (turns, until) = (Arc::clone(&self.turns), self.until);
            asking.push(tokio::spawn(async move {
                let asked = asked?;
                let _turn = turns.acquire().await;
                let answer = timeout_at(until, asked).await;
                match answer.map_err(|_| "not in the time for all servers".to_owned())? {
                    Ok(answer) if node_of(&answer) == node => Ok(answer),
                    Ok(answer) => Err(format!("the node {} is at its address", node_of(&answer))),
                    Err(failure) => Err(failure.to_string()),
                }
            }));
        }
        let mut answers = Vec::new();
        for answer in asking {
            let answer = answer.await.map_err(|error| error.to_string());
            answers.push(answer.flatten());
        }
        answers
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
