//! A candidate's part in an election in etcd: every decision, and the arithmetic of terms.
//!
//! A candidate holds one lease in etcd, under which it is registered as a server of its node. The key of the
//! master is created in a transaction, by whoever finds that there is none, under the same lease; nobody queues
//! for it, so nobody is handed it after its own lease is gone.
//!
//! The driver executes what [`Candidate::poll_action`] says, asks etcd for one thing at a time, and follows the
//! keys of the node. A question that comes while another one is under way takes its place: the driver gives the
//! former up, and an answer to it that comes all the same is passed over ([`store::OpId`]).
//!
//! `term`, `past` and `lengths` are arithmetic; `store` is etcd, and `claim` what is written there; `phase` is
//! what a candidate has, `step` what it asks, `answers` what follows, `resigning` the end.

mod answers;
mod claim;
pub mod clock_error;
mod config;
pub mod lengths;
pub mod past;
mod phase;
pub mod report;
mod resigning;
pub mod standing;
pub mod state;
mod step;
pub mod store;
pub mod term;

use std::collections::VecDeque;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::backoff::Backoff;
use crate::planted::{self, Bug};
use crate::time::Time;
use claim::Claim;
pub use config::{Config, InForce, NextTemplates};
use lengths::Lengths;
use past::Past;
use phase::Phase;
use report::{Loss, Report};
use standing::Standing;
use state::State;
use step::{Awaited, Stage, Step, Templates};
use store::{Asking, Key, OpAnswer, OpId, View};

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask etcd. The answer goes to [`Candidate::handle_answer`]. Whatever was asked before is given up.
    Ask(Asking),
    /// Bring the templates that were handed in into force, then say so: [`Candidate::handle_applied`].
    ApplyTemplates,
    /// Tell people.
    Report(Report),
}

/// A candidate.
#[derive(Debug)]
pub struct Candidate {
    config: Config,
    claim: Claim,
    place: SmolStr,
    is_able: bool,
    /// The keys of the node.
    view: Option<Arc<View>>,
    contact: Contact,
    past: Past,
    /// By which templates leases are granted. None: the parent tells how long they last.
    lengths: Option<Lengths>,
    templates: Templates,
    phase: Phase,
    step: Step,
    /// Something has changed since the step began.
    has_changed: bool,
    /// Until when this server may decide at most, by the last mastership that was confirmed.
    decides_until: Option<Time>,
    /// Questions without an answer, since all was answered.
    backoff: Backoff,
    /// How many questions there were.
    asked: u64,
    /// Whether it was told that etcd answers.
    told_to_answer: bool,
    actions: VecDeque<Action>,
    /// The last time that it was handed.
    now: Time,
}

/// How the keys of the node are followed.
#[derive(Clone, Copy, Debug)]
struct Contact {
    heard_at: Time,
    is_away: bool,
}

/// What happened. After each, take all actions, then read the next timeout.
impl Candidate {
    /// One that knows nothing of etcd yet, is not able to be the master, and takes part at once: its first
    /// actions are there.
    pub fn new(config: Config, now: Time) -> Self {
        let templates = config.templates.as_ref();
        let mut candidate = Self {
            claim: Claim {
                address: config.address.clone(),
                server: config.server.clone(),
            },
            place: SmolStr::default(),
            is_able: false,
            view: None,
            contact: Contact {
                heard_at: now,
                is_away: false,
            },
            past: Past::default(),
            lengths: templates.map(|in_force| Lengths::new(in_force, config.clock_error)),
            templates: Templates::Settled,
            phase: Phase::Outside,
            step: Step::Idle { again_at: now },
            has_changed: false,
            decides_until: None,
            backoff: Backoff::default(),
            asked: 0,
            told_to_answer: false,
            actions: VecDeque::new(),
            now,
            config,
        };
        candidate.go_on(Stage::Begin, now);
        candidate
    }

    /// The keys of the node are so. A key of its own that is gone ends its mastership at once.
    pub fn handle_view(&mut self, view: Arc<View>, now: Time) {
        self.pass_time(now);
        // Who was master, and when that was heard of, stays true whatever becomes of the keys.
        let ttl = self.config.ttl;
        match claim::term_in_view(&view, ttl) {
            Some((term, seen)) => self.past.note_term(&term, ttl, seen),
            None => self.past.note_no_term(ttl, now),
        }
        if let Some(epoch) = self.claim.epoch_of_another(&view) {
            self.past.note_epoch(epoch);
        }
        for epoch in self.claim.told_epochs(&view) {
            self.past.note_told_epoch(epoch, ttl, now);
        }
        let is_news = self
            .view
            .as_ref()
            .is_none_or(|known| known.entries != view.entries);
        self.view = Some(view);
        if self.is_own_key_gone() {
            self.lose(Loss::KeyDeleted);
            // What is under way was for that mastership, or does no good any more: it is given up.
            self.go_on(Stage::Begin, now);
        } else if is_news {
            self.poke(now);
        }
    }

    /// Whether the keys cannot be followed now, and when etcd was last heard to be in the state that was handed
    /// in: who was the master then may not be for longer than a TTL after that.
    pub fn handle_contact(&mut self, heard_at: Time, is_away: bool, now: Time) {
        self.pass_time(now);
        let is_news = self.contact.is_away != is_away;
        self.contact = Contact { heard_at, is_away };
        if is_news {
            self.poke(now);
        }
    }

    /// Whether it could decide if it was the master: it has templates, if it needs them.
    pub fn handle_able(&mut self, able: bool, now: Time) {
        self.pass_time(now);
        if self.is_able != able {
            self.is_able = able;
            self.poke(now);
        }
    }

    /// Its place in the tree is this, as the driver writes it.
    pub fn handle_place(&mut self, place: SmolStr, now: Time) {
        self.pass_time(now);
        if self.place != place {
            self.place = place;
            self.poke(now);
        }
    }

    /// Templates are to be in force, as soon as etcd knows of the leases they may leave behind. Not before
    /// those that were handed in before are ([`Candidate::has_templates_waiting`]).
    pub fn handle_templates(&mut self, next: NextTemplates, now: Time) {
        self.pass_time(now);
        debug_assert!(!self.has_templates_waiting(), "one after the other");
        if self.phase.takes_part() {
            self.templates = Templates::Waiting(next);
            self.poke(now);
        }
    }

    /// The templates that were handed in are in force since now: [`Action::ApplyTemplates`].
    pub fn handle_applied(&mut self, now: Time) {
        self.pass_time(now);
        match std::mem::replace(&mut self.templates, Templates::Settled) {
            Templates::Applying(next) => self.note_applied(next, now),
            other => self.templates = other,
        }
        if let Step::Applying { then } = self.step {
            self.go_on(then, now);
        }
    }

    fn note_applied(&mut self, next: NextTemplates, now: Time) {
        let Some(lengths) = &mut self.lengths else {
            return;
        };
        let Some(held) = self.phase.held_mut() else {
            return lengths.change(next, now);
        };
        // One that decides has begun to learn, or not, by what was in force.
        let longer = if held.begins <= now {
            next.learning_outlasts
        } else {
            next.outlasts
        };
        held.longer_leases = held.longer_leases.max(longer);
        // Until now, and by a predecessor until the node became vacant.
        lengths.change(next, held.vacant_since.max(now));
    }

    /// What came of a question. `chance` spreads attempts of many over time.
    pub fn handle_answer(&mut self, id: OpId, answer: OpAnswer, chance: f64, now: Time) {
        self.pass_time(now);
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
            // Of a question that was given up.
            other => self.step = other,
        }
    }

    /// It is [`Candidate::poll_timeout`], or later. Harmless at any other time.
    pub fn handle_timeout(&mut self, now: Time) {
        self.pass_time(now);
        self.end_resignation_if_late(now);
        match &self.step {
            Step::Idle { again_at } if *again_at <= now || self.may_apply() => self.poke(now),
            _ => {}
        }
    }

    /// It is to take part no more, and gives back what it has in etcd. Its server decides nothing any more.
    /// Bounded in time; then its state is [`State::Over`].
    pub fn handle_resign(&mut self, now: Time) {
        self.pass_time(now);
        if self.phase.takes_part() {
            self.begin_to_resign(now);
        }
    }

    fn pass_time(&mut self, now: Time) {
        debug_assert!(self.now <= now, "time runs backwards: {now:?}");
        self.now = now;
    }

    /// Whether the key that made it the master is seen to be gone. A view of before says nothing.
    fn is_own_key_gone(&self) -> bool {
        let Some((held, view)) = self.phase.held().zip(self.view.as_ref()) else {
            return false;
        };
        let created = held.created.revision;
        let found = view.entries.get(&Key::Master).map(|entry| entry.created);
        let is_gone = view.revision >= created && found != Some(created);
        is_gone && !planted::is(Bug::LostKeyUnnoticed)
    }

    fn report(&mut self, report: Report) {
        self.actions.push_back(Action::Report(report));
    }

    /// etcd has answered all, or none of its endpoints has: that again and again, for problems differ.
    fn report_contact(&mut self, answers: bool) {
        if !answers {
            self.report(Report::Away);
        } else if !self.told_to_answer {
            self.report(Report::Answers);
        }
        self.told_to_answer = answers;
    }
}

/// What is to be done, and what to show.
impl Candidate {
    /// The next thing to do. None: nothing before something happens.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`Candidate::handle_timeout`], at the latest. It may be over already.
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
        // When it stands otherwise, though nothing is to be done.
        let held = self.phase.held();
        let begins = held.map(|held| held.begins);
        let ends = held.and_then(|held| held.valid_until);
        let forgets = self.contact.is_away.then(|| self.forgets_at());
        let stands = [begins, ends, forgets];
        let stands = stands.into_iter().flatten().filter(|at| *at > self.now);
        [again_at, gives_up_at]
            .into_iter()
            .flatten()
            .chain(stands)
            .min()
    }

    /// Who is the master at that time.
    pub fn standing(&self, now: Time) -> Standing {
        match (&self.phase, &self.view) {
            (Phase::Holding(_, held), _) => held.standing(now),
            (Phase::Resigning(_) | Phase::Over, _) | (_, None) => Standing::Unknown,
            // Who was master when etcd was last heard of, may not be any more.
            _ if self.contact.is_away && self.forgets_at() <= now => Standing::Unknown,
            (_, Some(view)) => {
                let highest = self.past.highest_epoch();
                standing::seen_by_follower(view, &self.config.address, highest)
            }
        }
    }

    fn forgets_at(&self) -> Time {
        self.contact.heard_at + self.config.ttl
    }

    /// What it does at that time.
    pub fn state(&self, now: Time) -> State {
        match &self.phase {
            Phase::Outside => State::Outside,
            Phase::Watching(_) if self.is_standing() => State::Standing,
            Phase::Watching(_) => State::Watching,
            Phase::Holding(_, held) => held.state(now),
            Phase::Resigning(_) => State::Resigning,
            Phase::Over => State::Over,
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

    /// Whether templates that were handed in are not in force yet.
    pub fn has_templates_waiting(&self) -> bool {
        matches!(self.templates, Templates::Waiting(_))
    }

    /// What it is.
    pub fn config(&self) -> &Config {
        &self.config
    }
}
