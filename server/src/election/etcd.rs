//! An election in etcd: a driver of a candidate ([`doorward_session::candidate`]), which decides.
//!
//! `driver` hands in what happens and does what the candidate wants done, `asking` asks etcd, `values`
//! translates between etcd's keys, values and transactions and the candidate's; `history` reads how long leases
//! may last if no term says so, `contact` is how etcd is doing, for everyone who looks.

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
use driver::{Driver, Ways};
pub use etcd_health::EtcdHealth;
use etcd_health::EtcdHealthReporter;
use history::History;

/// How candidates meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionConfig {
    /// Where etcd is.
    pub etcd: doorward_etcd::EtcdConfig,
    /// What the keys of all nodes begin with.
    pub prefix: String,
    /// How long the master's lease lasts without being renewed: about how long the node is without
    /// a master after a crash. Whole seconds, at least 2.
    pub ttl: Duration,
}

/// How often the node's keys are read although no change of them is reported.
const LOOK: Duration = Duration::from_secs(2);

/// An election that is taken part in.
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
    /// The standing, whenever it changes or is confirmed.
    pub fn standings(&self) -> watch::Receiver<Standing> {
        self.standings.clone()
    }

    /// What this server does in the election, whenever that changes.
    pub fn states(&self) -> watch::Receiver<CandidateState> {
        self.states.clone()
    }

    /// Where new templates pass through. Those of a candidate with a parent change nothing that others
    /// need to know of.
    pub fn gate(&self) -> TemplatesGate {
        self.gate.clone()
    }

    /// How etcd is doing.
    pub fn contact(&self) -> watch::Receiver<EtcdHealth> {
        self.contact.clone()
    }

    /// See [`super::Running::resign`].
    pub async fn resign(mut self) {
        drop(self.stop.take());
        // The candidate gives up in time.
        let _ = (&mut self.task).await;
    }
}

impl Drop for EtcdElection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes part.
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
    let ways = Ways {
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
    let driver = Driver::new(taking_part, in_force, ways);
    EtcdElection {
        standings: standings_seen,
        states: states_seen,
        contact,
        gate,
        stop: Some(stop),
        task: tokio::spawn(driver.run(asker, stopped)),
    }
}
