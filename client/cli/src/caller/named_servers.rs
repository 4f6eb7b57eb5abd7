//! Servers that other servers name: a few are asked at a time.
//!
//! Such a server gets no token: its address is what it told its parent.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use crate::caller::MasterCaller;
use crate::failure::Result;

/// Servers that are asked at the same time.
const AT_ONCE_MAX: usize = 16;

/// Time for all of them, unless the wait for an answer is short.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks the servers of a tree, level by level.
pub(crate) struct NamedServers<'a> {
    caller: &'a MasterCaller,
    until: Instant,
}

impl<'a> NamedServers<'a> {
    /// Returns the servers below the one that the caller asks.
    pub(crate) fn below(caller: &'a MasterCaller) -> Self {
        Self {
            caller,
            until: Instant::now() + PATIENCE.min(caller.timeout.saturating_mul(12)),
        }
    }

    /// Asks each server, given by its address and the question. Returns the answers in that order, or why there is none.
    pub(crate) async fn ask<Q, A>(
        &self,
        servers: impl IntoIterator<Item = (Option<String>, Q)>,
        ask: impl AsyncFn(MasterCaller, Q) -> Result<A>,
    ) -> Vec<Result<A, String>> {
        let ask = &ask;
        let asking = servers.into_iter().map(|(address, question)| async move {
            let unknown = "address unknown: it is of an earlier release, or has none";
            let caller = self.caller.claimed(&address.ok_or(unknown)?);
            let caller = caller.map_err(|failure| failure.to_string())?;
            let answer = timeout_at(self.until, ask(caller, question)).await;
            let answer = answer.map_err(|_| "not in the time for all servers".to_owned())?;
            answer.map_err(|failure| failure.to_string())
        });
        let asking: Vec<_> = asking.collect();
        stream::iter(asking).buffered(AT_ONCE_MAX).collect().await
    }
}
