//! How a session goes from one state to the next, and what it says of it.

use std::time::Duration;

use super::{
    Action, BACKOFF, BACKOFF_ELECTION, Connection, Mastership, ParentSession, Polled, Report,
    State, Told, Trouble, Way, streams,
};
use crate::address::Address;
use crate::backoff;
use crate::closing::{Closed, Closing};
use crate::master_finder::Lost;
use crate::parent_session::CONNECT_TIMEOUT;
use crate::planted::{self, Bug};
use crate::time::Time;

impl ParentSession {
    /// Connects to whoever's turn it is.
    pub(super) fn begin(&mut self, chance: f64, now: Time) {
        let Some(target) = self.finder.target() else {
            return self.fail(Trouble::NoAddress, chance, now);
        };
        self.become_connecting(target.address, now);
    }

    pub(super) fn become_connecting(&mut self, to: Address, now: Time) {
        if self.address.as_ref() != Some(&to) {
            // That streams did not work at one server says nothing of another.
            self.streams.try_again();
        }
        let way = match self.streams.polled(now) {
            Some(_) => Way::Calls,
            None => Way::Stream,
        };
        self.address = Some(to.clone());
        self.connection = Connection(self.connection.0 + 1);
        self.state = State::Connecting {
            way,
            until: now + CONNECT_TIMEOUT,
        };
        let connection = self.connection;
        self.actions.push_back(Action::Connect {
            connection,
            to,
            way,
        });
    }

    pub(super) fn become_waiting(&mut self, why: Trouble, until: Time) {
        self.state = State::Waiting { until, why };
    }

    /// What was there of a connection is gone.
    pub(super) fn close(&mut self, now: Time) {
        if let State::Streaming { since, .. } = self.state
            && now.since(since) >= streams::WORKS_AFTER
        {
            // It has shown that streams work here, however it ends.
            self.polls_told = None;
            self.replaced.succeed();
            self.streams = streams::Streams::default();
        }
        let is_connected = !matches!(self.state, State::Standby | State::Waiting { .. });
        if is_connected {
            // What it still does is for nobody, and what was to be done on it is not to be.
            self.connection = Connection(self.connection.0 + 1);
            self.actions
                .retain(|action| matches!(action, Action::Close | Action::Report(_)));
            if !planted::is(Bug::LossNotTold) {
                self.actions.push_back(Action::Close);
            }
        }
    }

    /// The connection ended: what to do instead.
    pub(super) fn end(&mut self, trouble: Trouble, chance: f64, now: Time) {
        let stream = match self.state {
            State::Opening { .. } => Some((now, false)),
            State::Streaming {
                since,
                has_answered,
                ..
            } => Some((since, has_answered)),
            _ => None,
        };
        self.close(now);
        let Trouble::Closed(closed) = trouble else {
            // What is swallowed while the connection stands is no death of the server.
            return self.distrust(stream, false, trouble, chance, now);
        };
        match (closed, stream) {
            (Closed::Unimplemented, Some(_)) if !planted::is(Bug::StreamsInsistedOn) => {
                self.poll(Polled::NoStreams, trouble, now)
            }
            (Closed::Said(Closing::AnotherProcess), Some(_)) => {
                self.poll(Polled::AnotherProcess, trouble, now);
            }
            (Closed::Said(closing), Some(_)) if closing.is_replacement() => {
                self.stand_back(trouble, chance, now);
            }
            // Another one may have time; and who waits for long has no lease any more.
            (Closed::Overloaded(_), _) if self.finder.others() > 0 => {
                self.fail(trouble, chance, now);
            }
            (Closed::Overloaded(retry_in), _) => {
                let told = retry_in.min(BACKOFF.cap);
                let until = now + backoff::come_back(told, chance);
                self.report_down(&trouble);
                self.become_waiting(trouble, until);
            }
            (Closed::Unreachable, _) => {
                self.streams.note_unreachable();
                self.fail(trouble, chance, now);
            }
            // It says so itself: that is nothing that a proxy would do.
            (
                Closed::Said(
                    Closing::Cycle
                    | Closing::Stopping
                    | Closing::NotMaster
                    | Closing::TooMany
                    | Closing::TooManyOfAddress,
                ),
                _,
            ) => self.fail(trouble, chance, now),
            (Closed::Failed, _) => {
                let has_answered = stream.is_some_and(|(_, has_answered)| has_answered);
                self.distrust(stream, has_answered, trouble, chance, now);
            }
            (Closed::Said(_) | Closed::Unimplemented | Closed::TakesNoMore, _) => {
                self.distrust(stream, false, trouble, chance, now);
            }
        }
    }

    /// A connection ended in a way that may mean that streams do not work there; `is_sound`: more likely it
    /// does not.
    pub(super) fn distrust(
        &mut self,
        stream: Option<(Time, bool)>,
        is_sound: bool,
        trouble: Trouble,
        chance: f64,
        now: Time,
    ) {
        let is_polled =
            stream.is_some_and(|(since, _)| self.streams.note_broken(since, is_sound, now));
        if is_polled {
            self.report_polls(Polled::StreamsBreak, trouble);
            self.begin_again(now);
        } else {
            self.fail(trouble, chance, now);
        }
    }

    /// Connects to the same server, as far as it is not known to be another one.
    pub(super) fn begin_again(&mut self, now: Time) {
        let address = self.address.clone();
        if let Some(address) = address {
            self.become_connecting(address, now);
        }
    }

    pub(super) fn poll(&mut self, why: Polled, trouble: Trouble, now: Time) {
        self.streams.poll(why, now);
        self.report_polls(why, trouble);
        self.begin_again(now);
    }

    /// The parent has a newer stream of this node, which this server is the master of: opens
    /// another one after a while. Two servers that both take themselves for the node's only one
    /// would do so in turns.
    pub(super) fn stand_back(&mut self, trouble: Trouble, chance: f64, now: Time) {
        let is_news = self.replaced.failures() == 0;
        self.actions
            .push_back(Action::Report(Report::StandsBack { is_news }));
        let wait = self.replaced.note_failure(BACKOFF, 0, chance);
        self.become_waiting(trouble, now + wait);
    }

    pub(super) fn handle_not_master(
        &mut self,
        told: Mastership<'_>,
        leases_last: Duration,
        chance: f64,
        now: Time,
    ) {
        self.close(now);
        match self
            .finder
            .handle_redirect(told.master, told.epoch, leases_last)
        {
            Ok(forgotten) => {
                self.note_forgotten(forgotten, told.epoch);
                self.redirect(chance, now);
            }
            Err(lost) => self.lose(&lost, chance, now),
        }
    }

    /// Goes to whom the finder names now.
    pub(super) fn redirect(&mut self, chance: f64, now: Time) {
        let from = self.address.clone();
        let to = self.finder.target().map(|target| target.address);
        if let Some((from, to)) = from.zip(to) {
            self.actions
                .push_back(Action::Report(Report::Redirected { from, to }));
        }
        self.begin(chance, now);
    }

    /// Whoever was asked leads nowhere: the finder has gone on to the next already.
    pub(super) fn lose(&mut self, lost: &Lost, chance: f64, now: Time) {
        let trouble = Trouble::Lost(lost.why.clone());
        self.wait_or_go_on(trouble, lost.is_election, chance, now);
    }

    /// Tells whoever looks, and waits before the next address is tried.
    pub(super) fn fail(&mut self, trouble: Trouble, chance: f64, now: Time) {
        let lost = self.finder.handle_failure();
        self.wait_or_go_on(trouble, lost.is_election, chance, now);
    }

    pub(super) fn wait_or_go_on(
        &mut self,
        trouble: Trouble,
        is_election: bool,
        chance: f64,
        now: Time,
    ) {
        self.report_down(&trouble);
        let limits = if is_election {
            BACKOFF_ELECTION
        } else {
            BACKOFF
        };
        let others = self.finder.others();
        let wait = self.backoff.note_failure(limits, others, chance);
        if self.backoff.failures() <= others && self.finder.target().is_some() {
            // The other addresses are tried at once.
            return self.begin(chance, now);
        }
        self.become_waiting(trouble, now + wait);
    }

    pub(super) fn note_answered(&mut self, way: Way) {
        if let State::Streaming { has_answered, .. } | State::Polling { has_answered, .. } =
            &mut self.state
            && !std::mem::replace(has_answered, true)
        {
            self.backoff.succeed();
            self.finder.handle_answer();
            let told = Told::Answers(way);
            let is_news = std::mem::replace(&mut self.told, told) != told;
            self.actions
                .push_back(Action::Report(Report::Answers { way, is_news }));
        }
    }

    pub(super) fn note_forgotten(&mut self, forgotten: Option<u64>, epoch: Option<u64>) {
        if let Some((forgotten, epoch)) = forgotten.zip(epoch) {
            self.actions
                .push_back(Action::Report(Report::Forgot { forgotten, epoch }));
        }
    }

    pub(super) fn report_polls(&mut self, why: Polled, trouble: Trouble) {
        let is_news = self.polls_told.replace(why) != Some(why);
        self.actions.push_back(Action::Report(Report::Polls {
            why,
            trouble,
            is_news,
        }));
    }

    /// That the parent cannot be reached and that it refuses us are different things to mend.
    pub(super) fn report_down(&mut self, trouble: &Trouble) {
        let refuses = matches!(trouble, Trouble::Closed(Closed::Said(Closing::Cycle)));
        let told = Told::Down { refuses };
        let before = std::mem::replace(&mut self.told, told);
        let is_news = !matches!(before, Told::Down { .. }) || (refuses && before != told);
        self.actions.push_back(Action::Report(Report::Down {
            trouble: trouble.clone(),
            is_news,
        }));
    }
}
