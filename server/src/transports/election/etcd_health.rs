//! Reports the health of etcd to pages, metrics and status.

use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use crate::clock;
use crate::status::{EtcdHealth, ServerState};

/// Reports the health of etcd: in the state of the server, and to the log once when etcd is away and once when it is
/// back.
#[derive(Debug)]
pub(super) struct EtcdHealthReporter {
    state: Arc<ServerState>,
    health: EtcdHealth,
    is_down_logged: bool,
}

impl EtcdHealthReporter {
    pub(super) fn new(term: Duration, state: Arc<ServerState>) -> Self {
        let health = EtcdHealth {
            since: clock::wall(),
            problem: Some("etcd was not asked yet".to_owned()),
            term,
        };
        state.set_etcd(health.clone());
        Self {
            state,
            health,
            is_down_logged: false,
        }
    }

    /// Notes an answer of etcd (`None`), or the reason why it cannot be asked.
    pub(super) fn note(&mut self, problem: Option<String>) {
        let is_down = problem.is_some();
        if let Some(problem) = &problem
            && !self.is_down_logged
        {
            warn!(problem, "etcd cannot be asked; trying on");
        } else if !is_down && self.is_down_logged {
            info!("etcd answers again");
        }
        self.is_down_logged = is_down;
        if self.health.problem.is_some() != is_down {
            self.health.since = clock::wall();
        }
        self.health.problem = problem;
        self.state.set_etcd(self.health.clone());
    }
}
