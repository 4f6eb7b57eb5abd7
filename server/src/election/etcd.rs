//! An election in etcd. A candidate ([`doorward_session::candidate`]) makes all decisions.
//!
//! - `driver` passes events to the candidate and executes its actions;
//! - `asker` sends requests to etcd;
//! - `values` translates between etcd's keys, values and transactions and the candidate's;
//! - `history` reads how long leases may last if no term tells it;
//! - `etcd_health` tells pages, metrics and status how etcd is doing.

mod asker;
mod driver;
mod etcd_health;
mod history;
pub mod values;

use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::EtcdConnection;
use doorward_etcd::follow::{Follow, Range};
use doorward_etcd::layout::NodeKeys;
use doorward_session::candidate;
use doorward_session::time::Time;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::clock;
use crate::election::templates_gate::TemplatesGate;
use crate::election::{CandidateServer, CandidateState, Standing};
use asker::Asker;
use driver::{Channels, Driver};
pub use etcd_health::EtcdHealth;
use etcd_health::EtcdHealthReporter;
use history::History;

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

/// An election in etcd that this server takes part in.
#[derive(Debug)]
pub struct EtcdElection {
    standings: watch::Receiver<Standing>,
    states: watch::Receiver<CandidateState>,
    contact: watch::Receiver<EtcdHealth>,
    gate: TemplatesGate,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl EtcdElection {
    /// Returns the standing, and every change or confirmation of it.
    pub fn standings(&self) -> watch::Receiver<Standing> {
        self.standings.clone()
    }

    /// Returns this server's state in the election, and every change of it.
    pub fn states(&self) -> watch::Receiver<CandidateState> {
        self.states.clone()
    }

    /// Returns the gate that new templates pass. It is open for a candidate with a parent: its templates change nothing
    /// that others need to know.
    pub fn gate(&self) -> TemplatesGate {
        self.gate.clone()
    }

    /// Returns the health of etcd.
    pub fn contact(&self) -> watch::Receiver<EtcdHealth> {
        self.contact.clone()
    }

    /// See [`super::Running::resign`].
    pub async fn resign(mut self) {
        drop(self.stop.take());
        // The candidate gives up within a bounded time.
        let _ = (&mut self.task).await;
    }
}

impl Drop for EtcdElection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes part in the election.
pub fn start(config: ElectionConfig, candidate: CandidateServer) -> EtcdElection {
    let ElectionConfig {
        mut etcd,
        prefix,
        ttl,
    } = config;
    let templates = candidate.templates;
    let history = templates.as_ref().and_then(|it| it.history.clone());
    let has_history = history.is_some();
    let taking_part = candidate::CandidateConfig {
        address: candidate.address.as_str().into(),
        server: format!("{:016x}", clock::seed()).into(),
        pages: candidate.http_address.map(Into::into),
        rest: values::rest(&candidate.node),
        ttl,
        clock_tolerance: candidate.clock_tolerance,
        endpoints: u32::try_from(etcd.endpoints.len()).unwrap_or(u32::MAX),
        templates: templates
            .as_ref()
            .map(|it| values::in_force(&it.in_force, has_history)),
    };
    etcd.call_timeout = taking_part.call_timeout();
    let etcd = Arc::new(etcd);
    let keys = NodeKeys::new(&prefix, &candidate.node);
    let (standings, standings_seen) = watch::channel(Standing::Unknown);
    let (states, states_seen) = watch::channel(CandidateState::Outside);
    let tolerance = taking_part.clock_tolerance;
    let lasts = candidate::term::valid_until(Time::ZERO, ttl, tolerance).since_origin();
    let contacts = EtcdHealthReporter::new(lasts);
    let contact = contacts.subscribe();
    let (stop, stopped) = oneshot::channel();
    let (gate, changes) = TemplatesGate::guarded();
    let gate = if templates.is_some() {
        gate
    } else {
        TemplatesGate::open()
    };
    let range = Range::Prefix(keys.prefix().to_owned());
    let channels = Channels {
        keys: keys.clone(),
        follow: Follow::start(Arc::clone(&etcd), range, LOOK),
        able: candidate.able,
        place: candidate.place,
        changes,
        standings,
        states,
        contacts,
    };
    let asker = Asker {
        keys,
        connection: EtcdConnection::new(etcd),
        history: History::new(history),
    };
    let in_force = templates.map(|it| it.in_force).unwrap_or_default();
    let driver = Driver::new(taking_part, in_force, channels);
    EtcdElection {
        standings: standings_seen,
        states: states_seen,
        contact,
        gate,
        stop: Some(stop),
        task: tokio::spawn(driver.run(asker, stopped)),
    }
}
