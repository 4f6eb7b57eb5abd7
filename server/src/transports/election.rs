//! The election of the node's master, in etcd.
//!
//! The servers of a node elect one that decides; the others send callers to it. A node with a single server needs no
//! election. The replica's candidate ([`doorward_session::candidate`]) makes all decisions.
//!
//! - `transport` passes events to the replica, and its requests to etcd, and shows how etcd is doing;
//! - `asker` sends requests to etcd;
//! - `values` translates between etcd's keys, values and transactions and the candidate's;
//! - `history` reads how long leases may last if no term tells it, and `marks` the marks of the last master.

mod asker;
mod history;
mod marks;
mod transport;
pub mod values;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::node::mastership::Mastership;
use doorward_engine::templates::Templates;
use doorward_etcd::EtcdConnection;
use doorward_etcd::follow::{Followed, Range};
use doorward_etcd::layout::{DocumentKeys, NodeKeys};
use doorward_replica::templates_in_force;
use doorward_session::candidate::CandidateConfig;
pub use doorward_session::candidate::state::CandidateState;
use doorward_session::candidate::term::valid_until;
use doorward_session::time::Time;
use doorward_session::time::tolerance::Tolerance;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use crate::clock;
use crate::status::{EtcdHealth, ServerState};
use asker::Asker;
use history::History;
use marks::MarksReader;
use transport::{EtcdTransport, NOT_ASKED, answer_beside};

/// Configuration of an election in etcd.
#[derive(Clone, Debug)]
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
    stop: oneshot::Sender<()>,
    task: AbortOnDropHandle<()>,
}

impl EtcdElection {
    /// Takes part with the server of `state`. `in_force` are its templates; absent below the root, where the parent
    /// tells how leases are granted and how long they last. `in_etcd` are the keys of all their versions, and whether
    /// this server could decide if it was the master: a root needs templates for that. Absent: it always could.
    pub fn start(
        config: ElectionConfig,
        http_address: Option<SocketAddr>,
        clock_tolerance: Tolerance,
        in_force: Option<&Templates>,
        in_etcd: Option<(DocumentKeys, watch::Receiver<bool>)>,
        state: &Arc<ServerState>,
    ) -> Self {
        let (mut etcd, ttl) = (config.etcd, config.ttl);
        let (history, able) = in_etcd.unzip();
        let candidate = CandidateConfig {
            address: state.address().into(),
            server: format!("{:016x}", clock::seed()).into(),
            pages: http_address.map(|address| address.to_string().into()),
            node: state.node_name().into(),
            version: env!("CARGO_PKG_VERSION").into(),
            ttl,
            clock_tolerance,
            endpoints: u32::try_from(etcd.endpoints.len()).unwrap_or(u32::MAX),
            templates: in_force.map(|templates| templates_in_force(templates, history.is_some())),
        };
        etcd.call_timeout = candidate.call_timeout();
        let etcd = Arc::new(etcd);
        let keys = NodeKeys::new(&config.prefix, state.node_name());
        let lasts = valid_until(Time::ZERO, ttl, clock_tolerance).since_origin();
        let range = Range::Prefix(keys.prefix().to_owned());
        let node = Arc::clone(state.node());
        let asker = |history| Asker {
            keys: keys.clone(),
            connection: EtcdConnection::new(Arc::clone(&etcd)),
            history: History::new(history),
            marks: MarksReader::default(),
            clock: node.clock(),
        };
        state.etcd.send_replace(Some(EtcdHealth {
            since: clock::wall(),
            problem: Some(NOT_ASKED.to_owned()),
            term: lasts,
        }));
        let (beside, requests) = mpsc::unbounded_channel();
        tokio::spawn(answer_beside(asker(None), requests, Arc::clone(&node)));
        let asker = asker(history.filter(|_| in_force.is_some()));
        let transport = EtcdTransport {
            keys,
            followed: Followed::start(etcd, range, LOOK),
            able: able.unwrap_or_else(|| watch::channel(true).1),
            state: Arc::clone(state),
            tasks: node.take_part(candidate),
            node,
            view: None,
            request: None,
            beside,
            problem: String::new(),
        };
        let (stop, stopped) = oneshot::channel();
        Self {
            stop,
            task: AbortOnDropHandle::new(tokio::spawn(transport.run(asker, stopped))),
        }
    }

    /// Gives up the mastership, so that another candidate gets it at once, and leaves the election. This server grants
    /// nothing from then on. Bounded in time.
    pub async fn resign(self) {
        drop(self.stop);
        // The candidate gives up within a bounded time.
        let _ = self.task.await;
    }

    /// Waits until the election stops by itself. Cancel safe.
    pub async fn stopped(&mut self) {
        let _ = (&mut self.task).await;
    }
}

/// Logs each new master. Runs until the server ends: spawn it.
pub async fn announce(
    state: Arc<ServerState>,
    mut masterships: watch::Receiver<(u64, Mastership)>,
) {
    while masterships.changed().await.is_ok() {
        match &masterships.borrow_and_update().1 {
            Mastership::Master { epoch } => info!(epoch, "this server is the master"),
            Mastership::Elsewhere {
                master_address,
                epoch,
            } => info!(master_address, epoch, "another server is the master"),
            Mastership::Unknown if *state.is_stopping.borrow() => {}
            Mastership::Unknown => warn!("no master is known"),
        }
    }
}
