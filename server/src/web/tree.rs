//! The whole tree for pages: this server asks those above it, up to the first one, and all below that one. So a browser
//! needs a way to one server only.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_proto::admin::v1::{GetStatusRequest, GetStatusResponse};
use doorward_proto::tree::{Place, TreeWalk};
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use crate::web::others::Others;

/// Leases of each server.
const LEASES: u32 = 20;

/// Largest number of servers.
const PLACES_MAX: usize = 1_000;

/// Largest number of levels above this server.
const ABOVE_MAX: usize = 16;

/// Servers that are asked at the same time.
const AT_ONCE_MAX: usize = 16;

/// Longest wait for all of them.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the question to each server, about a resource. Without an id: about none.
pub(super) fn request(resource_id: String) -> GetStatusRequest {
    GetStatusRequest {
        without_resources: resource_id.is_empty(),
        resource_id,
        leases_max: LEASES,
        ..GetStatusRequest::default()
    }
}

/// A walk through the tree.
pub(super) struct Walk<'a> {
    pub(super) others: &'a Others,
    pub(super) request: &'a GetStatusRequest,
    pub(super) until: Instant,
}

impl Walk<'_> {
    /// Returns all servers, each before those below it. `own`: the answer of this one.
    pub(super) async fn all(&self, own: GetStatusResponse) -> Vec<Place> {
        let (first, mut known) = self.climb(own).await;
        let mut walk = TreeWalk::new(first, PLACES_MAX);
        loop {
            let questions = walk.questions();
            if questions.is_empty() {
                // Servers on the way up that their parents do not list, such as this one after its start.
                return walk.end(known.into_values());
            }
            let asked = questions.into_iter().map(|child| {
                let status = known.remove(&child.node);
                async move {
                    match status {
                        Some(status) => Ok(status),
                        None => self.ask_child(&child).await,
                    }
                }
            });
            let asked: Vec<_> = asked.collect();
            let answers = stream::iter(asked).buffered(AT_ONCE_MAX);
            walk.take(answers.collect::<Vec<_>>().await);
        }
    }

    /// Returns the status of the first server above this one that answers, or its own, and those found on the way.
    async fn climb(
        &self,
        own: GetStatusResponse,
    ) -> (GetStatusResponse, BTreeMap<String, GetStatusResponse>) {
        let mut known = BTreeMap::new();
        // A candidate knows no leases.
        let mut highest = self.of_master(own).await;
        for _ in 0..ABOVE_MAX {
            let Some(parent) = &highest.parent else {
                break;
            };
            let Ok(above) = self.ask(&parent.address).await else {
                break;
            };
            let above = self.of_master(above).await;
            if above.node == highest.node || known.contains_key(&above.node) {
                break;
            }
            let below = std::mem::replace(&mut highest, above);
            known.insert(below.node.clone(), below);
        }
        (highest, known)
    }

    /// Returns the status of the master of a node, if a candidate names it.
    async fn of_master(&self, status: GetStatusResponse) -> GetStatusResponse {
        let (request, until) = (self.request, self.until);
        let master = self.others.master_of(&status, request, until).await;
        master.unwrap_or(status)
    }

    async fn ask_child(&self, child: &Place) -> Result<GetStatusResponse, String> {
        let known = child.known.as_ref();
        let has_leases = known.is_some_and(|it| it.leases_remaining_ms.is_some());
        match &child.address {
            _ if child.is_gone() && !has_leases => Err("it is gone".to_owned()),
            Some(address) => self.ask(address).await,
            None => Err("it has not said where it is".to_owned()),
        }
    }

    async fn ask(&self, address: &str) -> Result<GetStatusResponse, String> {
        self.others.status(address, self.request, self.until).await
    }
}
