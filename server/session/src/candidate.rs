//! A candidate in an election in etcd: every decision, and the arithmetic of terms.
//!
//! A candidate holds one lease in etcd, and registers under it as a server of its node. If there is no key of the
//! master, a candidate creates it in a transaction under the same lease. There is no queue, so no candidate gets
//! the key after its own lease has ended.
//!
//! The driver executes the actions of [`Candidate::poll_action`], sends etcd one request at a time, and follows the
//! keys of the node. A new request replaces the one in flight: the driver abandons that one, and a late answer to
//! it is ignored ([`store::OpId`]).
//!
//! `term`, `term_history` and `older_leases` are arithmetic. `store` models etcd, `records` its values, and
//! `transactions` its transactions.
//! `phase` is the candidate's state in etcd, `lease_span` a key that outlasts all leases, and `marks` those of resources.
//! `step` chooses the next request, `answers` handles answers, and `resigning` ends the candidacy.

mod answers;
mod candidate_config;
mod lease_span;
pub mod marks;
pub mod older_leases;
mod phase;
pub mod records;
pub mod report;
mod resigning;
pub mod standing;
pub mod state;
mod step;
pub mod store;
pub mod term;
pub mod term_history;
mod transactions;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::time::Time;
pub use candidate_config::{ActiveTemplates, CandidateConfig, NextTemplates};
use lease_span::LeaseSpan;
use marks::MarkChain;
use older_leases::OlderLeases;
use phase::{Phase, Presence};
use report::{ElectionReport, LossReason};
use standing::Standing;
use state::CandidateState;
use step::{Awaited, Stage, Step};
use store::{EtcdKey, EtcdRequest, OpAnswer, OpId, Registration, TermRecord, TreePlace, View};
use term_history::TermHistory;

/// A task for the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum CandidateAction {
    /// Send this to etcd. The answer goes to [`Candidate::handle_answer`]. Abandon the request before it.
    Ask(EtcdRequest),
    /// Send this to etcd beside the other requests, after the one before of its kind is answered. The answer goes to
    /// [`Candidate::handle_answer`].
    AskBeside(EtcdRequest),
    /// The marks of the last [`Candidate::write_marks`] are in etcd.
    MarksWritten,
    /// Bring the new templates into force, then call [`Candidate::handle_applied`], before any other event.
    ApplyTemplates,
    /// Log this, and show it.
    Report(ElectionReport),
}

/// A candidate.
#[derive(Debug)]
pub struct Candidate {
    config: CandidateConfig,
    place: TreePlace,
    is_able: bool,
    /// Keys of the node.
    view: Option<Arc<View>>,
    /// Time when etcd last confirmed the view.
    seen_at: Time,
    /// Whether the keys cannot be followed now.
    is_away: bool,
    terms: TermHistory,
    /// Lengths of leases by present and former templates. None: the node has a parent, which decides that.
    lengths: Option<OlderLeases>,
    /// New templates, which wait until etcd has confirmed their lease lengths, or this server decides nothing.
    next_templates: Option<NextTemplates>,
    phase: Phase,
    step: Step,
    /// Whether something has changed since the step began.
    has_changed: bool,
    /// Marks of resources. None: it has not won a root's key.
    marks: Option<MarkChain>,
    /// Whether the next mastership keeps no marks, because etcd refused them.
    are_marks_refused: bool,
    /// The lease span that it renews, in this mastership or the last.
    span: Option<LeaseSpan>,
    /// Latest time until which this server may decide, by its last confirmed mastership.
    decides_until: Option<Time>,
    /// Time that etcd took for the last answer.
    last_round_trip: Duration,
    /// Failed requests in a row.
    backoff: Backoff,
    /// Number of requests so far.
    asked: u64,
    /// Whether the last report said that etcd answers.
    reported_to_answer: bool,
    actions: VecDeque<CandidateAction>,
    /// The time of the last call.
    now: Time,
}

/// After each event, take all actions, then read the next timeout.
impl Candidate {
    /// Returns a candidate that takes part at once: its first actions are queued. It has read nothing from etcd yet,
    /// and cannot be the master yet ([`Candidate::handle_able`]).
    pub fn new(config: CandidateConfig, place: TreePlace, now: Time) -> Self {
        let templates = config.templates.as_ref();
        let mut candidate = Self {
            place,
            is_able: false,
            view: None,
            seen_at: now,
            is_away: false,
            terms: TermHistory::default(),
            lengths: templates.map(|in_force| OlderLeases::new(in_force, config.clock_tolerance)),
            next_templates: None,
            phase: Phase::Outside,
            step: Step::Idle { again_at: now },
            has_changed: false,
            marks: None,
            are_marks_refused: false,
            span: None,
            decides_until: None,
            last_round_trip: Duration::ZERO,
            backoff: Backoff::default(),
            asked: 0,
            reported_to_answer: false,
            actions: VecDeque::new(),
            now,
            config,
        };
        candidate.go_on(Stage::Begin, now);
        candidate
    }

    /// Returns the registered servers of the node, as far as they are known.
    pub fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.view.iter().flat_map(|view| view.registrations())
    }

    /// Takes a new view of the node's keys. If its own master's key is gone, its mastership ends at once.
    pub fn handle_view(&mut self, view: Arc<View>, now: Time) {
        self.pass_time(now);
        // Views are in order, so etcd was restored to an older state.
        let known = self.view.as_ref();
        if known.is_some_and(|known| view.revision < known.revision) {
            self.terms.note_went_back();
        }
        // A term that was seen stays true, even if its key is deleted.
        self.note_term(transactions::term_in_view(&view, self.config.ttl), now);
        // If a view came earlier, this candidate knows better when the term was confirmed.
        if self.view.is_none() && transactions::is_settled(&view) {
            self.terms.note_settled();
        }
        if let Some(epoch) = self.config.epoch_of_another(&view) {
            self.terms.note_epoch(epoch);
        }
        for epoch in self.config.reported_epochs(&view) {
            self.terms.note_reported_epoch(epoch, self.config.ttl, now);
        }
        let known = self.view.as_ref();
        let is_news = known.is_none_or(|known| known.entries != view.entries);
        self.view = Some(view);
        if self.is_own_key_gone() {
            self.lose(LossReason::KeyDeleted);
            // The request in flight was for that mastership, or is useless now, so it is abandoned.
            self.go_on(Stage::Begin, now);
        } else if is_news {
            self.poke(now);
        }
    }

    /// Notes whether the keys can be followed now, and when etcd last confirmed the present view. The master of that
    /// view may have lost its mastership one TTL later.
    pub fn handle_contact(&mut self, seen_at: Time, is_away: bool, now: Time) {
        self.pass_time(now);
        self.seen_at = seen_at;
        if std::mem::replace(&mut self.is_away, is_away) != is_away {
            self.poke(now);
        }
    }

    /// Notes whether it can decide as the master: whether it has templates, if it needs them.
    pub fn handle_able(&mut self, able: bool, now: Time) {
        self.pass_time(now);
        if std::mem::replace(&mut self.is_able, able) != able {
            self.poke(now);
        }
    }

    /// Notes its place in the tree.
    pub fn handle_place(&mut self, place: TreePlace, now: Time) {
        self.pass_time(now);
        if std::mem::replace(&mut self.place, place) != place {
            self.poke(now);
        }
    }

    /// Takes new templates. They come into force once etcd has recorded how long leases from the present ones may last.
    /// The driver calls it only while no others are waiting ([`Candidate::has_templates_waiting`]).
    pub fn handle_templates(&mut self, next: NextTemplates, now: Time) {
        self.pass_time(now);
        debug_assert!(
            !self.has_templates_waiting(),
            "one change of templates at a time"
        );
        if self.phase.takes_part() {
            self.next_templates = Some(next);
            self.poke(now);
        }
    }

    /// Notes that the new templates are in force: [`CandidateAction::ApplyTemplates`].
    pub fn handle_applied(&mut self, now: Time) {
        let resting = Step::Idle { again_at: now };
        let step = std::mem::replace(&mut self.step, resting);
        self.pass_time(now);
        match step {
            Step::Applying { next, then } => {
                self.note_applied(next, now);
                self.go_on(then, now);
            }
            other => self.step = other,
        }
    }

    fn note_applied(&mut self, next: NextTemplates, now: Time) {
        let Some(lengths) = &mut self.lengths else {
            return;
        };
        let Some(held) = self.phase.held_mut() else {
            return lengths.change(next, now);
        };
        // A master that has begun decided at its beginning how long it learns.
        let longer = if held.begins <= now {
            next.learning_outlasts
        } else {
            next.outlasts
        };
        held.longer_leases = held.longer_leases.max(longer);
        // This server may have granted leases by them until now, and its predecessor until the node became vacant.
        lengths.change(next, held.vacant_since.map_or(now, |since| since.max(now)));
    }

    /// Takes the answer to a request. `chance` spreads the retries of many candidates over time.
    pub fn handle_answer(&mut self, id: OpId, answer: OpAnswer, chance: f64, now: Time) {
        self.pass_time(now);
        if self.take_marks_answer(id, &answer, now) {
            return;
        }
        let resting = Step::Idle { again_at: now };
        match std::mem::replace(&mut self.step, resting) {
            Step::Asked {
                id: asked,
                sent_at,
                awaited,
            } if asked == id => {
                if !self.phase.takes_part() {
                    self.take_last_answer(&awaited, &answer, now);
                } else if let Some(next) = self.take_answer(awaited, answer, sent_at, chance, now) {
                    self.go_on(next, now);
                }
            }
            // This answers an abandoned request.
            other => self.step = other,
        }
    }

    /// Handles the time of [`Candidate::poll_timeout`]. A call at any other time has no effect.
    pub fn handle_timeout(&mut self, now: Time) {
        self.pass_time(now);
        self.end_resignation_if_late(now);
        self.send_marks(now);
        match &self.step {
            Step::Idle { again_at } if *again_at <= now || self.may_apply() => self.poke(now),
            _ => {}
        }
    }

    /// Stops taking part, and gives back its lease and keys in etcd. Its server must not decide anything any more. This
    /// takes bounded time; then its state is [`CandidateState::Over`].
    pub fn handle_resign(&mut self, now: Time) {
        self.pass_time(now);
        if self.phase.takes_part() {
            self.begin_to_resign(now);
        }
    }

    /// Notes the last term in etcd, and when it was seen, or that there is none. While our own mastership is confirmed,
    /// no other server can have been the master since.
    fn note_term(&mut self, found: Option<(TermRecord, Time)>, now: Time) {
        match found {
            Some((term, seen)) => self.terms.note_term(&term, seen),
            None if self.decides_until.is_some_and(|until| now < until) => {}
            None => self.terms.note_no_term(now),
        }
    }

    /// Begins the handling of an event.
    fn pass_time(&mut self, now: Time) {
        debug_assert!(self.now <= now, "time runs backwards: {now:?}");
        debug_assert!(
            !matches!(self.step, Step::Applying { .. }),
            "templates are applied before any other event"
        );
        self.now = now;
    }

    /// Whether the view shows that the key of its mastership is gone. A view from before the key does not count.
    fn is_own_key_gone(&self) -> bool {
        let Some((held, view)) = self.phase.held().zip(self.view.as_ref()) else {
            return false;
        };
        let created = held.created.revision;
        let found = view.entries.get(&EtcdKey::Master);
        let found = found.map(|entry| entry.created);
        view.revision >= created && found != Some(created)
    }

    fn report(&mut self, report: ElectionReport) {
        self.actions.push_back(CandidateAction::Report(report));
    }

    /// Reports whether etcd answers. Each failure is reported, because the problems differ.
    fn report_contact(&mut self, answers: bool) {
        if !answers {
            self.report(ElectionReport::Away);
        } else if !self.reported_to_answer {
            self.report(ElectionReport::Answers);
        }
        self.reported_to_answer = answers;
    }

    // Actions, timeouts and status.

    /// Returns the next action, or nothing until the next event.
    pub fn poll_action(&mut self) -> Option<CandidateAction> {
        self.actions.pop_front()
    }

    /// Returns the latest time to call [`Candidate::handle_timeout`]. It may be in the past.
    pub fn poll_timeout(&self) -> Option<Time> {
        let again_at = match &self.step {
            _ if !self.phase.takes_part() => None,
            Step::Idle { again_at } if self.has_templates_waiting() => {
                let applies_at = self.decides_until.unwrap_or(self.now);
                Some(applies_at.min(*again_at))
            }
            Step::Idle { again_at } => Some(*again_at),
            Step::Asked { .. } | Step::Applying { .. } => None,
        };
        let gives_up_at = match &self.phase {
            Phase::Resigning(resignation) => Some(resignation.until),
            _ => None,
        };
        // Its standing changes at these times, although no action follows.
        let held = self.phase.held();
        let begins = held.map(|held| held.begins);
        let ends = held.and_then(|held| held.valid_until);
        let forgets = self.is_away.then(|| self.forgets_at());
        let stands = [begins, ends, forgets];
        let stands = stands.into_iter().flatten().filter(|at| *at > self.now);
        [again_at, gives_up_at, self.marks_due()]
            .into_iter()
            .flatten()
            .chain(stands)
            .min()
    }

    /// Returns the master at that time.
    pub fn standing(&self, now: Time) -> Standing {
        if let Some(held) = self.phase.held() {
            return held.standing(now);
        }
        match (&self.phase, &self.view) {
            (Phase::Resigning(_) | Phase::Over, _) | (_, None) => Standing::Unknown,
            // The view is older than a TTL, so its master may have lost the mastership.
            _ if self.is_away && self.forgets_at() <= now => Standing::Unknown,
            (_, Some(view)) => {
                let highest = self.terms.highest_epoch();
                standing::standing_of_other(view, &self.config.address, highest)
            }
        }
    }

    fn forgets_at(&self) -> Time {
        self.seen_at + self.config.ttl
    }

    /// Returns its state at that time.
    pub fn state(&self, now: Time) -> CandidateState {
        match &self.phase {
            Phase::Outside => CandidateState::Outside,
            Phase::Present(Presence {
                held: Some(held), ..
            }) => held.state(now),
            Phase::Present(_) if self.is_standing() => CandidateState::Standing,
            Phase::Present(_) => CandidateState::Watching,
            Phase::Resigning(_) => CandidateState::Resigning,
            Phase::Over => CandidateState::Over,
        }
    }

    fn is_standing(&self) -> bool {
        matches!(
            &self.step,
            Step::Asked {
                awaited: Awaited::Stood { .. } | Awaited::History { .. },
                ..
            }
        )
    }

    /// Whether new templates are not in force yet.
    pub fn has_templates_waiting(&self) -> bool {
        self.next_templates.is_some()
    }

    /// Returns its configuration.
    pub fn config(&self) -> &CandidateConfig {
        &self.config
    }
}
