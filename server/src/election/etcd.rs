//! An election in etcd, by the rules of `term`.
//!
//! A candidate holds one etcd lease, under which it is registered as a server of its node. The key
//! of the master is created in a transaction, by whoever finds that there is none, under the same
//! lease; nobody queues for it, so nobody is handed it after its own lease is gone.
//!
//! `campaign` is what a candidate does, `claim` what it writes, `held` what it has, `contact` how etcd
//! is doing; `registering` is where it says that it is there, `leases` what it tells and hears of leases
//! that may be out, `history` how long they may be if nobody says so.

mod campaign;
mod claim;
mod contact;
mod held;
mod history;
mod leases;
mod registering;

use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::Connection;
use doorward_etcd::follow::{Follow, Range};
use doorward_etcd::layout::NodeKeys;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tracing::warn;

use crate::clock;
use crate::election::gate::Gate;
use crate::election::{Candidate, Standing};
use campaign::{Campaign, Ways};
use claim::Claim;
pub use contact::Contact;
use contact::Contacts;

/// How candidates meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where etcd is.
    pub etcd: doorward_etcd::Config,
    /// What the keys of all nodes begin with.
    pub prefix: String,
    /// How long the master's lease lasts without being renewed: about how long the node is without
    /// a master after a crash. Whole seconds, at least 2.
    pub ttl: Duration,
}

/// A call of etcd must be over well before the next renewal is due.
const CALL_TIMEOUT: (Duration, Duration) =
    (Duration::from_millis(250), Duration::from_millis(1_500));

/// How often the node's keys are read although nothing is told of them.
const LOOK: Duration = Duration::from_secs(2);

/// How long a resignation may take, all attempts together.
const RESIGN_TIMEOUT: Duration = Duration::from_secs(1);

/// An election that is taken part in.
#[derive(Debug)]
pub struct Running {
    standings: watch::Receiver<Standing>,
    contact: watch::Receiver<Contact>,
    gate: Gate,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    /// The standing, whenever it changes or is confirmed.
    pub fn standings(&self) -> watch::Receiver<Standing> {
        self.standings.clone()
    }

    /// Where new templates pass through. Those of a candidate with a parent change nothing that others
    /// need to know of.
    pub fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// How etcd is doing.
    pub fn contact(&self) -> watch::Receiver<Contact> {
        self.contact.clone()
    }

    /// See [`super::Running::resign`].
    pub async fn resign(mut self) {
        drop(self.stop.take());
        let resigned = tokio::time::timeout(RESIGN_TIMEOUT, &mut self.task).await;
        if resigned.is_err() {
            warn!("etcd does not answer: the mastership ends when its lease does");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes part.
pub fn start(mut config: Config, candidate: Candidate) -> Running {
    config.etcd.call_timeout = (config.ttl / 6).clamp(CALL_TIMEOUT.0, CALL_TIMEOUT.1);
    let etcd = Arc::new(config.etcd);
    let claim = Claim {
        keys: NodeKeys::new(&config.prefix, &candidate.node),
        address: candidate.address.clone(),
        server: format!("{:016x}", clock::seed()),
    };
    let range = Range::Prefix(claim.keys.prefix().to_owned());
    let follow = Follow::start(Arc::clone(&etcd), range, LOOK);
    let (standings, standings_told) = watch::channel(Standing::UNKNOWN);
    let contacts = Contacts::new();
    let contact = contacts.subscribe();
    let (stop, stopped) = oneshot::channel();
    let (gate, changes) = Gate::guarded();
    let gate = if candidate.templates.is_some() {
        gate
    } else {
        Gate::open()
    };
    let campaign = Campaign::new(
        config.ttl,
        claim,
        Connection::new(etcd),
        follow,
        candidate,
        Ways {
            changes,
            standings,
            contacts,
        },
    );
    Running {
        standings: standings_told,
        contact,
        gate,
        stop: Some(stop),
        task: tokio::spawn(campaign.run(stopped)),
    }
}
