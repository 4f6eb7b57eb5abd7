//! Carries events to the replica's candidate, and its requests to etcd.

use std::pin::pin;
use std::sync::Arc;

use doorward_etcd::follow::{Followed, RangeView};
use doorward_etcd::layout::NodeKeys;
use doorward_replica::ToEtcd;
use doorward_session::candidate::Candidate;
use doorward_session::candidate::report::ElectionReport;
use doorward_session::candidate::state::CandidateState;
use doorward_session::candidate::store::EtcdRequest;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{debug, info, warn};

use super::asker::Asker;
use super::values;
use crate::clock;
use crate::replica_handle::ReplicaHandle;
use crate::status::{EtcdHealth, ServerState};

/// Problem of etcd before its first answer or failure.
pub(super) const NOT_ASKED: &str = "etcd was not asked yet";

/// Sends the requests that the replica has beside its other ones, one at a time, until their sender is gone.
pub(super) async fn answer_beside(
    mut asker: Asker,
    mut requests: mpsc::UnboundedReceiver<EtcdRequest>,
    node: Arc<ReplicaHandle>,
) {
    while let Some(request) = requests.recv().await {
        let id = request.id;
        let templates = node.read(|node, _| node.active_templates().clone());
        let (answer, problem) = asker.answer(Some(request), &templates).await;
        if let Some(problem) = problem {
            debug!(problem, "etcd does not take marks; trying on");
        }
        node.input(|replica, now| replica.handle_etcd_answer(id, answer, now));
    }
}

/// The connection of the replica to etcd.
pub(super) struct EtcdTransport {
    pub(super) node: Arc<ReplicaHandle>,
    pub(super) tasks: mpsc::UnboundedReceiver<ToEtcd>,
    pub(super) keys: NodeKeys,
    pub(super) followed: watch::Receiver<Followed>,
    pub(super) able: watch::Receiver<bool>,
    pub(super) state: Arc<ServerState>,
    /// The last state of the keys that the replica got.
    pub(super) view: Option<Arc<RangeView>>,
    /// The next request to etcd.
    pub(super) request: Option<EtcdRequest>,
    /// Requests beside that.
    pub(super) beside: mpsc::UnboundedSender<EtcdRequest>,
    /// Problem of the last request that failed.
    pub(super) problem: String,
}

impl EtcdTransport {
    /// Runs until it is stopped and has given back its lease and keys.
    pub(super) async fn run(mut self, mut asker: Asker, mut stopped: oneshot::Receiver<()>) {
        let mut nodes = self.followed.clone();
        let mut is_stopped = false;
        while !self.is_over() {
            let request = self.request.take();
            let asked = request.as_ref().map(|request| request.id);
            let templates = self.node.read(|node, _| node.active_templates().clone());
            let mut answering = pin!(asker.answer(request, &templates));
            // Until etcd answers, or another request replaces this one.
            while self.request.is_none() && !self.is_over() {
                // The loss of the candidate's own key counts before any other event.
                self.look(&nodes.borrow_and_update().clone());
                tokio::select! {
                    biased;
                    _ = &mut stopped, if !is_stopped => {
                        is_stopped = true;
                        self.node
                            .input(|replica, now| replica.change_candidate(Candidate::handle_resign, now));
                    }
                    Ok(()) = nodes.changed() => {}
                    Some(task) = self.tasks.recv() => self.execute(task),
                    (answer, problem) = &mut answering => {
                        self.look(&nodes.borrow_and_update().clone());
                        if let Some(problem) = problem {
                            self.problem = problem;
                        }
                        if let Some(id) = asked {
                            self.node
                                .input(|replica, now| replica.handle_etcd_answer(id, answer, now));
                        }
                        break;
                    }
                    Ok(()) = self.able.changed() => {}
                }
            }
        }
        // The last reports.
        while let Ok(task) = self.tasks.try_recv() {
            self.execute(task);
        }
    }

    fn is_over(&self) -> bool {
        self.node.read_replica(|replica, now| {
            let candidate = replica.candidate();
            candidate.is_none_or(|it| it.state(now) == CandidateState::Over)
        })
    }

    /// Passes all state to the replica that can be read without waiting.
    fn look(&mut self, followed: &Followed) {
        let clock = self.node.clock();
        let news = followed.view.as_ref().filter(|view| {
            let known = self.view.as_ref();
            !known.is_some_and(|known| Arc::ptr_eq(known, view))
        });
        let view = news.map(|view| Arc::new(values::view(&self.keys, view, clock)));
        if let Some(news) = news {
            self.view = Some(Arc::clone(news));
        }
        let heard_at = clock.time(followed.heard_at);
        let is_away = followed.problem.is_some();
        let able = *self.able.borrow_and_update();
        self.node.input(|replica, now| {
            if let Some(view) = view {
                replica.change_candidate(|candidate, now| candidate.handle_view(view, now), now);
            }
            replica.handle_etcd_contact(heard_at, is_away, now);
            replica.change_candidate(|candidate, now| candidate.handle_able(able, now), now);
        });
    }

    fn execute(&mut self, task: ToEtcd) {
        match task {
            ToEtcd::Ask(request) => self.request = Some(request),
            // The task that takes it ends after this one.
            ToEtcd::AskBeside(request) => drop(self.beside.send(request)),
            ToEtcd::Report(report) => self.log(report),
        }
    }

    /// Shows the health of etcd, and logs when it is away and when it is back.
    fn note_health(&self, problem: Option<String>) {
        let Some(former) = self.state.etcd.borrow().clone() else {
            return;
        };
        let is_first = former.problem.as_deref() == Some(NOT_ASKED);
        let was_away = former.problem.is_some();
        match &problem {
            Some(problem) if is_first || !was_away => {
                warn!(problem, "etcd cannot be asked; trying on");
            }
            None if was_away && !is_first => info!("etcd answers again"),
            _ => {}
        }
        let since = match was_away == problem.is_some() {
            true => former.since,
            false => clock::wall(),
        };
        self.state.etcd.send_replace(Some(EtcdHealth {
            since,
            problem,
            ..former
        }));
    }

    /// Logs a report of the candidate.
    fn log(&mut self, report: ElectionReport) {
        match report {
            ElectionReport::Answers => self.note_health(None),
            ElectionReport::Away => self.note_health(Some(self.problem.clone())),
            ElectionReport::Elected { epoch, wait } if wait.is_zero() => debug!(epoch, "elected"),
            ElectionReport::Elected { epoch, wait } => info!(
                epoch,
                ?wait,
                "elected; the master before may still believe in its mastership, and is given time"
            ),
            ElectionReport::Lost { epoch, why } => {
                warn!(epoch, why = why.as_str(), "mastership lost")
            }
            ElectionReport::TooLow { epoch, highest } => warn!(
                epoch,
                highest, "etcd has gone back: another server has seen a higher epoch"
            ),
            ElectionReport::NotHighest => {
                debug!(
                    "the key of the master is of an epoch that is not the highest; giving it back"
                );
            }
            ElectionReport::KeyWithoutLease => {
                warn!("the key of the master was written by hand and is nobody's; deleting it");
            }
            ElectionReport::Mended => {
                warn!("the key of the master was written by hand; writing it again");
            }
            ElectionReport::Resigned { epoch, was_ours } => {
                info!(epoch, was_ours, "mastership resigned")
            }
            ElectionReport::NotResigned => {
                warn!(
                    problem = self.problem,
                    "the mastership could not be resigned"
                );
            }
            ElectionReport::NotRevoked => {
                debug!(problem = self.problem, "the lease runs out by itself")
            }
            ElectionReport::ResignationLate => {
                warn!("etcd does not answer: the mastership ends when its lease does");
            }
        }
    }
}
