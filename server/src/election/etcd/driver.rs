//! Drives a candidate ([`doorward_session::candidate`]), which makes all decisions: passes events to it, and executes
//! its actions.

use std::pin::pin;
use std::sync::Arc;

use doorward_engine::templates::Templates;
use doorward_etcd::follow::{Follow, Followed, RangeView};
use doorward_etcd::layout::NodeKeys;
use doorward_session::candidate::report::ElectionReport;
use doorward_session::candidate::standing::Standing;
use doorward_session::candidate::state::CandidateState;
use doorward_session::candidate::store::{EtcdRequest, OpId};
use doorward_session::candidate::{self, CandidateAction};
use doorward_session::time::Time;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{debug, info, warn};

use super::asker::{Asker, EtcdAnswer};
use super::etcd_health::EtcdHealthReporter;
use super::values;
use crate::clock;
use crate::election::TreePlace;
use crate::election::templates_gate::GatedTemplates;

/// Inputs of a candidate from its server, and its outputs.
pub(super) struct Channels {
    pub(super) keys: NodeKeys,
    pub(super) follow: Follow,
    pub(super) able: watch::Receiver<bool>,
    pub(super) place: Arc<dyn Fn() -> TreePlace + Send + Sync>,
    pub(super) changes: mpsc::Receiver<GatedTemplates>,
    pub(super) standings: watch::Sender<Standing>,
    pub(super) states: watch::Sender<CandidateState>,
    pub(super) contacts: EtcdHealthReporter,
}

pub(super) struct Driver {
    candidate: candidate::Candidate,
    channels: Channels,
    /// The keys of the node.
    nodes: watch::Receiver<Followed>,
    /// The last state of the keys that the candidate got.
    view: Option<Arc<RangeView>>,
    /// The templates in force.
    in_force: Arc<Templates>,
    /// Templates that the candidate has not let through yet.
    next: Option<GatedTemplates>,
    /// The next request to etcd.
    asking: Option<EtcdRequest>,
    /// The number of the request under way.
    asked: Option<OpId>,
    /// Problem of the last request that failed.
    problem: String,
}

enum Event {
    Stopped,
    Followed,
    Answered(EtcdAnswer),
    Able,
    Change(GatedTemplates),
    Timeout,
}

impl Driver {
    pub(super) fn new(
        config: candidate::CandidateConfig,
        in_force: Templates,
        channels: Channels,
    ) -> Self {
        let mut driver = Self {
            candidate: candidate::Candidate::new(config, clock::machine_now()),
            nodes: channels.follow.receiver(),
            channels,
            view: None,
            in_force: Arc::new(in_force),
            next: None,
            asking: None,
            asked: None,
            problem: String::new(),
        };
        driver.look();
        driver
    }

    /// Runs until it is stopped and has given back its lease and keys.
    pub(super) async fn run(mut self, mut asker: Asker, mut stopped: oneshot::Receiver<()>) {
        let mut is_stopped = false;
        while self.candidate.state(clock::machine_now()) != CandidateState::Over {
            let asking = self.asking.take();
            self.asked = asking.as_ref().map(|asking| asking.id);
            let mut answering = pin!(asker.answer(asking, Arc::clone(&self.in_force)));
            // Until etcd answers, or another request replaces this one.
            loop {
                let timeout = self.candidate.poll_timeout().map(clock::instant_of);
                let takes_changes = self.next.is_none();
                let event = tokio::select! {
                    biased;
                    _ = &mut stopped, if !is_stopped => Event::Stopped,
                    Ok(()) = self.nodes.changed() => Event::Followed,
                    answer = &mut answering => Event::Answered(answer),
                    Ok(()) = self.channels.able.changed() => Event::Able,
                    Some(change) = self.channels.changes.recv(), if takes_changes => {
                        Event::Change(change)
                    }
                    () = sleep_until(timeout) => Event::Timeout,
                };
                is_stopped |= matches!(event, Event::Stopped);
                let is_answered = matches!(event, Event::Answered(_));
                self.handle(event);
                self.publish();
                if is_answered || self.asking.is_some() || is_stopped && self.is_over() {
                    break;
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.candidate.state(clock::machine_now()) == CandidateState::Over
    }

    /// Passes an event to the candidate, after the state of the keys: the loss of the candidate's own key counts first.
    fn handle(&mut self, event: Event) {
        self.look();
        let now = clock::machine_now();
        match event {
            Event::Followed => {}
            Event::Stopped => self.candidate.handle_resign(now),
            Event::Able => self.hand_in_able(now),
            Event::Timeout => self.candidate.handle_timeout(now),
            Event::Answered(EtcdAnswer { answer, problem }) => {
                if let Some(problem) = problem {
                    self.problem = problem;
                }
                if let Some(id) = self.asked.take() {
                    self.candidate
                        .handle_answer(id, answer, clock::chance(), now);
                }
            }
            Event::Change(change) => {
                let next = values::next(&change.prepared);
                self.next = Some(change);
                self.candidate.handle_templates(next, now);
            }
        }
        self.drain();
    }

    /// Passes all state to the candidate that can be read without waiting.
    fn look(&mut self) {
        let followed = self.nodes.borrow_and_update().clone();
        if let Some(view) = followed.view
            && !self.view.as_ref().is_some_and(|it| Arc::ptr_eq(it, &view))
        {
            let translated = values::view(&self.channels.keys, &view);
            self.view = Some(view);
            self.candidate
                .handle_view(Arc::new(translated), clock::machine_now());
            self.drain();
        }
        let heard_at = clock::machine_time(followed.heard_at);
        self.candidate
            .handle_contact(heard_at, followed.problem.is_some(), clock::machine_now());
        self.drain();
        self.hand_in_able(clock::machine_now());
        self.drain();
        let place = values::place((self.channels.place)());
        self.candidate.handle_place(place, clock::machine_now());
        self.drain();
    }

    fn hand_in_able(&mut self, now: Time) {
        let able = *self.channels.able.borrow_and_update();
        self.candidate.handle_able(able, now);
    }

    /// Executes the actions of the candidate.
    fn drain(&mut self) {
        while let Some(action) = self.candidate.poll_action() {
            match action {
                CandidateAction::Ask(asking) => self.asking = Some(asking),
                CandidateAction::ApplyTemplates => self.apply(),
                CandidateAction::Report(report) => self.log(report),
            }
        }
    }

    fn apply(&mut self) {
        if let Some(next) = self.next.take() {
            self.in_force = Arc::new(next.prepared.templates().clone());
            next.apply();
        }
        self.candidate.handle_applied(clock::machine_now());
    }

    /// Publishes the standing and the state.
    fn publish(&self) {
        let now = clock::machine_now();
        set(&self.channels.standings, self.candidate.standing(now));
        set(&self.channels.states, self.candidate.state(now));
    }

    /// Logs a report of the candidate.
    fn log(&mut self, report: ElectionReport) {
        match report {
            ElectionReport::Answers => self.channels.contacts.note(None),
            ElectionReport::Away => self.channels.contacts.note(Some(self.problem.clone())),
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

/// Sends a value if it has changed.
fn set<T: PartialEq>(seen: &watch::Sender<T>, value: T) {
    seen.send_if_modified(|seen| {
        let is_news = *seen != value;
        *seen = value;
        is_news
    });
}

async fn sleep_until(timeout: Option<doorward_clock::Instant>) {
    match timeout {
        Some(timeout) => doorward_clock::sleep_until(timeout).await,
        None => std::future::pending().await,
    }
}
