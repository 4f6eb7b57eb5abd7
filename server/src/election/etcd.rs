//! An election in etcd. The replica's candidate ([`doorward_session::candidate`]) makes all decisions.
//!
//! - `transport` passes events to the replica, and its requests to etcd;
//! - `asker` sends requests to etcd;
//! - `values` translates between etcd's keys, values and transactions and the candidate's;
//! - `history` reads how long leases may last if no term tells it;
//! - `etcd_health` tells pages, metrics and status how etcd is doing.

mod asker;
mod etcd_health;
mod history;
mod transport;
pub mod values;

use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::EtcdConnection;
use doorward_etcd::follow::{Follow, Range};
use doorward_etcd::layout::NodeKeys;
use doorward_replica::templates_in_force;
use doorward_session::candidate::CandidateConfig;
use doorward_session::candidate::term::valid_until;
use doorward_session::time::Time;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::clock;
use crate::election::CandidateServer;
use crate::status::ServerState;
use asker::Asker;
pub use etcd_health::EtcdHealth;
use etcd_health::EtcdHealthReporter;
use history::History;
use transport::EtcdTransport;

/// Configuration of an election in etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionConfig {
    /// Endpoints and credentials of etcd.
    pub etcd: doorward_etcd::EtcdConfig,
    /// Prefix of the keys of all nodes.
    pub prefix: String,
    /// Time that the master's lease lasts without a renewal, which is about the time without a master after a crash.
    /// Whole seconds, at least 2.
    pub ttl: Duration,
}

/// Interval between two reads of the node's keys while no change is reported.
const LOOK: Duration = Duration::from_secs(2);

/// An election in etcd that this server takes part in, until the server resigns or this is dropped.
#[derive(Debug)]
pub struct EtcdElection {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl EtcdElection {
    /// Gives up the mastership, so that another candidate gets it at once, and leaves the election. This server grants
    /// nothing from then on. Bounded in time.
    pub async fn resign(mut self) {
        drop(self.stop.take());
        // The candidate gives up within a bounded time.
        let _ = (&mut self.task).await;
    }

    /// Waits until the election stops by itself. Cancel safe.
    pub async fn stopped(&mut self) {
        let _ = (&mut self.task).await;
    }
}

impl Drop for EtcdElection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes part in the election.
pub fn start(
    config: ElectionConfig,
    candidate: CandidateServer,
    state: &Arc<ServerState>,
) -> EtcdElection {
    let ElectionConfig {
        mut etcd,
        prefix,
        ttl,
    } = config;
    let templates = candidate.templates;
    let history = templates.as_ref().and_then(|it| it.history.clone());
    let has_history = history.is_some();
    let taking_part = CandidateConfig {
        address: candidate.address.as_str().into(),
        server: format!("{:016x}", clock::seed()).into(),
        pages: candidate.http_address.map(Into::into),
        rest: values::rest(&candidate.node),
        ttl,
        clock_tolerance: candidate.clock_tolerance,
        endpoints: u32::try_from(etcd.endpoints.len()).unwrap_or(u32::MAX),
        templates: templates.map(|it| templates_in_force(&it.in_force, has_history)),
    };
    etcd.call_timeout = taking_part.call_timeout();
    let etcd = Arc::new(etcd);
    let keys = NodeKeys::new(&prefix, &candidate.node);
    let lasts = valid_until(Time::ZERO, ttl, taking_part.clock_tolerance).since_origin();
    let range = Range::Prefix(keys.prefix().to_owned());
    let node = Arc::clone(state.node());
    let asker = Asker {
        keys: keys.clone(),
        connection: EtcdConnection::new(Arc::clone(&etcd)),
        history: History::new(history),
        clock: node.clock(),
    };
    let transport = EtcdTransport {
        keys,
        follow: Follow::start(etcd, range, LOOK),
        able: candidate.able,
        place: candidate.place,
        health: EtcdHealthReporter::new(lasts, Arc::clone(state)),
        tasks: node.take_part(taking_part),
        node,
        view: None,
        request: None,
        problem: String::new(),
    };
    let (stop, stopped) = oneshot::channel();
    EtcdElection {
        stop: Some(stop),
        task: tokio::spawn(transport.run(asker, stopped)),
    }
}
