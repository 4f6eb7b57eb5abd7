//! The whole tree for pages: this server asks those above it, up to the first one, and all below that one. So a browser
//! needs a way to one server only.
//!
//! A tree is made at most once a second for each resource, however many browsers look on. An answer is believed about
//! the server itself only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use doorward_proto::admin::v1::admin_client::AdminClient;
use doorward_proto::admin::v1::{GetStatusRequest, GetStatusResponse};
use doorward_proto::tree::{Place, sort};
use doorward_session::visible;
use doorward_tls::dialer::Dialer;
use futures_util::{StreamExt, stream};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tonic::transport::Endpoint;

use crate::rpc::MESSAGE_BYTES_MAX;
use crate::status::{Query, ServerState};

/// Time for which a tree is shown again.
const FRESH: Duration = Duration::from_secs(1);

/// Largest number of servers.
const PLACES_MAX: usize = 1_000;

/// Largest number of levels above this server.
const ABOVE_MAX: usize = 16;

/// Servers that are asked at the same time.
const AT_ONCE_MAX: usize = 16;

/// Longest wait for one of them.
const PATIENCE: Duration = Duration::from_secs(2);

/// Trees that were made lately.
#[derive(Debug, Default)]
pub(super) struct Trees {
    made: Mutex<Vec<Made>>,
}

/// A tree, and when and for which request it was made.
type Made = (GetStatusRequest, Instant, Arc<[Place]>);

impl Trees {
    /// Returns the servers of the tree. The request asks each of them for one resource, or for none.
    pub(super) async fn look(
        &self,
        state: &Arc<ServerState>,
        request: GetStatusRequest,
        query: Query,
    ) -> Arc<[Place]> {
        let mut made = self.made.lock().await;
        made.retain(|(_, at, _)| at.elapsed() < FRESH);
        if let Some((.., places)) = made.iter().find(|(asked, ..)| *asked == request) {
            return Arc::clone(places);
        }
        let own = state.look(move |state| state.answer(&query)).await;
        let security = state.security();
        let walk = Walk {
            dialer: security.map_or_else(Dialer::default, |it| it.dialer().clone()),
            request,
        };
        let places: Arc<[Place]> = walk.all(own).await.into();
        made.push((walk.request, Instant::now(), Arc::clone(&places)));
        places
    }
}

/// A walk through the tree.
struct Walk {
    dialer: Dialer,
    request: GetStatusRequest,
}

impl Walk {
    /// Returns all servers, each before those below it.
    async fn all(&self, own: GetStatusResponse) -> Vec<Place> {
        let (first, mut known) = self.climb(own).await;
        let mut seen = BTreeSet::from([first.node.clone()]);
        let mut places = vec![Place::first(first)];
        let mut level_from = 0;
        while let Some(level @ [_, ..]) = places.get(level_from..) {
            let left = PLACES_MAX.saturating_sub(places.len());
            let children = level.iter().flat_map(Place::children).take(left);
            let mut children: Vec<Place> = children.collect();
            // One that has moved below another parent is found there.
            children.sort_by_key(Place::is_gone);
            let asked = children.into_iter().map(|child| {
                let is_new = seen.insert(child.node.clone());
                let status = known.remove(&child.node);
                async move {
                    match (status, is_new) {
                        (Some(status), true) => Place {
                            status: Some(status),
                            ..child
                        },
                        (_, true) => self.answered(child).await,
                        (_, false) => Place {
                            problem: Some("it is shown elsewhere in the tree".to_owned()),
                            ..child
                        },
                    }
                }
            });
            let asked: Vec<_> = asked.collect();
            level_from = places.len();
            let answered = stream::iter(asked).buffered(AT_ONCE_MAX);
            places.extend(answered.collect::<Vec<_>>().await);
        }
        sort(&mut places);
        places
    }

    /// Returns the status of the first server above this one that answers, or its own, and those found on the way.
    async fn climb(
        &self,
        own: GetStatusResponse,
    ) -> (GetStatusResponse, BTreeMap<String, GetStatusResponse>) {
        let mut known = BTreeMap::new();
        let mut highest = own;
        // A candidate knows no leases.
        if let Some(master) = highest
            .master_address
            .as_ref()
            .filter(|_| !highest.is_master)
            && let Ok(master) = self.ask(master).await
            && master.node == highest.node
        {
            highest = master;
        }
        for _ in 0..ABOVE_MAX {
            let Some(parent) = &highest.parent else {
                break;
            };
            let Ok(above) = self.ask(&parent.address).await else {
                break;
            };
            if above.node == highest.node || known.contains_key(&above.node) {
                break;
            }
            let below = std::mem::replace(&mut highest, above);
            known.insert(below.node.clone(), below);
        }
        (highest, known)
    }

    /// Asks a child server.
    async fn answered(&self, child: Place) -> Place {
        let answer = match &child.address {
            Some(address) => self.ask(address).await,
            None => Err("it has not said where it is".to_owned()),
        };
        let answer = answer.and_then(|status| match status.node == child.node {
            true => Ok(status),
            false => Err(format!("{} answers there", visible::line(&status.node))),
        });
        match answer {
            Ok(status) => Place {
                status: Some(status),
                ..child
            },
            Err(problem) => Place {
                problem: Some(problem),
                ..child
            },
        }
    }

    async fn ask(&self, address: &str) -> Result<GetStatusResponse, String> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"));
        let endpoint = endpoint.map_err(|error| error.to_string())?;
        let channel = self.dialer.channel(&endpoint.connect_timeout(PATIENCE));
        let mut client = AdminClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        match timeout(PATIENCE, client.get_status(self.request.clone())).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(visible::line(status.message()).into_owned()),
            Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
        }
    }
}
