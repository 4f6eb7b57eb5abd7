//! A candidate's part in an election in etcd: every decision, and the arithmetic of terms.
//!
//! A candidate holds one lease in etcd, under which it is registered as a server of its node. The key of the
//! master is created in a transaction, by whoever finds that there is none, under the same lease; nobody queues
//! for it, so nobody is handed it after its own lease is gone.
//!
//! The driver executes what [`Candidate::poll_action`] says, asks etcd for one thing at a time, and follows the
//! keys of the node. A question that comes while another one is under way takes its place: the driver gives the
//! former up, and an answer to it that comes all the same is passed over ([`store::OpId`]).

pub mod clock_error;
pub mod report;
pub mod standing;
pub mod state;
pub mod store;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use smol_str::SmolStr;

use crate::time::Time;
use clock_error::ClockError;
use report::Report;
use standing::Standing;
use state::State;
use store::{Asking, OpAnswer, OpId, View};

/// What a candidate is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where others reach it.
    pub address: SmolStr,
    /// Which process it is: another one each time a server starts.
    pub server: SmolStr,
    /// Where its pages are, if they are anywhere.
    pub pages: Option<SmolStr>,
    /// What else it says of itself, as the driver writes it.
    pub rest: SmolStr,
    /// How long the master's lease lasts without being renewed. Whole seconds, at least 2.
    pub ttl: Duration,
    /// By how much its clock may be wrong.
    pub clock_error: ClockError,
    /// How many endpoints etcd has: one that fails is no problem yet, the others are tried at once.
    pub endpoints: u32,
    /// By which templates it would decide. Absent: it has a parent, which tells how long leases last.
    pub templates: Option<InForce>,
}

/// The templates in force, as far as an election goes by them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Which lease lengths they give: the same text for the same ones.
    pub digest: SmolStr,
    /// The longest lease by them.
    pub longest: Duration,
    /// Whether etcd has those that there were before.
    pub has_history: bool,
}

/// Templates that are to be in force, beside those that are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextTemplates {
    /// Which lease lengths they give.
    pub digest: SmolStr,
    /// The longest lease by them.
    pub longest: Duration,
    /// How long the longest lease is by those in force for which these give a shorter one.
    pub outlasts: Duration,
    /// The same, as far as a master that has begun is to learn for longer because of it.
    pub learning_outlasts: Duration,
}

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
    actions: VecDeque<Action>,
}

impl Config {
    /// How long a question to etcd may take: it must be over well before the next renewal is due.
    pub fn call_timeout(&self) -> Duration {
        let (least, most) = (Duration::from_millis(250), Duration::from_millis(1_500));
        (self.ttl / 6).clamp(least, most)
    }
}

/// What happened. After each, take all actions, then read the next timeout.
impl Candidate {
    /// One that knows nothing of etcd yet, is not able to be the master, and wants to take part at once.
    pub fn new(config: Config, _now: Time) -> Self {
        Self {
            config,
            actions: VecDeque::new(),
        }
    }

    /// The keys of the node are so. A key of its own that is gone ends its mastership at once.
    pub fn handle_view(&mut self, _view: Arc<View>, _now: Time) {}

    /// Whether the keys cannot be followed now, and when etcd was last heard to be in the state that was handed
    /// in: who was the master then may not be for longer than a TTL after that.
    pub fn handle_contact(&mut self, _heard_at: Time, _is_away: bool, _now: Time) {}

    /// Whether it could decide if it was the master: it has templates, if it needs them.
    pub fn handle_able(&mut self, _able: bool, _now: Time) {}

    /// Its place in the tree is this, as the driver writes it.
    pub fn handle_place(&mut self, _place: SmolStr, _now: Time) {}

    /// Templates are to be in force, as soon as etcd knows of the leases they may leave behind. Not before
    /// those that were handed in before are ([`Candidate::has_templates_waiting`]).
    pub fn handle_templates(&mut self, _next: NextTemplates, _now: Time) {}

    /// The templates that were handed in are in force since now: [`Action::ApplyTemplates`].
    pub fn handle_applied(&mut self, _now: Time) {}

    /// What came of a question. `chance` spreads attempts of many over time.
    pub fn handle_answer(&mut self, _id: OpId, _answer: OpAnswer, _chance: f64, _now: Time) {}

    /// It is [`Candidate::poll_timeout`], or later. Harmless at any other time.
    pub fn handle_timeout(&mut self, _chance: f64, _now: Time) {}

    /// It is to take part no more, and gives back what it has in etcd. Its server decides nothing any more.
    /// Bounded in time; then its state is [`State::Over`].
    pub fn handle_resign(&mut self, _now: Time) {}
}

/// What is to be done, and what to show.
impl Candidate {
    /// The next thing to do. None: nothing before something happens.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`Candidate::handle_timeout`], at the latest.
    pub fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// Who is the master at that time.
    pub fn standing(&self, _now: Time) -> Standing {
        Standing::Unknown
    }

    /// What it does at that time.
    pub fn state(&self, _now: Time) -> State {
        State::Outside
    }

    /// Whether templates that were handed in are not in force yet.
    pub fn has_templates_waiting(&self) -> bool {
        false
    }
    /// What it is.
    pub fn config(&self) -> &Config {
        &self.config
    }
}
