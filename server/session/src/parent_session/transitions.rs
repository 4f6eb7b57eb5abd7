//! Transitions of a session, and its reports.

use std::time::Duration;

use super::{
    BACKOFF, BACKOFF_REPLACED, ConnectionNumber, LastReport, MasterInfo, OVERLOADED_MAX,
    ParentAction, ParentFailure, ParentReport, ParentSession, PollReason, SessionState, Transport,
    stream_health,
};
use crate::address::Address;
use crate::backoff;
use crate::close_reason::{CloseReason, ConnectionEnd};
use crate::parent_session::CONNECT_TIMEOUT;
use crate::time::Time;

impl ParentSession {
    /// Connects to the server that the finder names.
    pub(super) fn connect_next(&mut self, chance: f64, now: Time) {
        let Some(target) = self.finder.target() else {
            return self.fail(ParentFailure::NoAddress, chance, now);
        };
        self.become_connecting(target, now);
    }

    pub(super) fn become_connecting(&mut self, to: Address, now: Time) {
        if self.address.as_ref() != Some(&to) {
            // Facts about streams are about one server only.
            self.streams.try_again();
        }
        let transport = match self.streams.polled(now) {
            Some(_) => Transport::Calls,
            None => Transport::Stream,
        };
        self.address = Some(to.clone());
        self.connection = ConnectionNumber(self.connection.0 + 1);
        self.state = SessionState::Connecting {
            transport,
            until: now + CONNECT_TIMEOUT,
        };
        let connection = self.connection;
        self.actions.push_back(ParentAction::Connect {
            connection,
            to,
            transport,
        });
    }

    /// Leaves the connection, if there is one.
    pub(super) fn close(&mut self, now: Time) {
        if let SessionState::Streaming { since, .. } = self.state
            && now.since(since) >= stream_health::WORKS_AFTER
        {
            // The stream lasted, so streams work here.
            self.last_poll_reason = None;
            self.replaced.succeed();
            self.streams = stream_health::StreamHealth::default();
        }
        let is_connected = !matches!(
            self.state,
            SessionState::Standby | SessionState::Waiting { .. }
        );
        if is_connected {
            // Later events of the connection, and actions queued for it, are void.
            self.connection = ConnectionNumber(self.connection.0 + 1);
            self.actions
                .retain(|action| matches!(action, ParentAction::Close | ParentAction::Report(_)));
            self.actions.push_back(ParentAction::Close);
        }
    }

    /// Handles the end of a connection: polls, waits, or tries the next server.
    pub(super) fn on_connection_end(&mut self, failure: ParentFailure, chance: f64, now: Time) {
        let stream = match self.state {
            SessionState::Opening { .. } => Some((now, false)),
            SessionState::Streaming {
                since,
                has_answered,
                ..
            } => Some((since, has_answered)),
            _ => None,
        };
        self.close(now);
        let ParentFailure::Closed(closed) = failure else {
            // The server swallowed a request while connected, so it did not die.
            return self.note_unreliable_stream(stream, failure, chance, now);
        };
        match (closed, stream) {
            (ConnectionEnd::Unimplemented, Some(_)) => {
                self.start_polling(PollReason::NoStreams, failure, now)
            }
            (ConnectionEnd::ByParent(CloseReason::AnotherProcess), Some(_)) => {
                self.start_polling(PollReason::AnotherProcess, failure, now);
            }
            (ConnectionEnd::ByParent(closing), Some(_)) if closing.is_replacement() => {
                self.wait_after_replacement(chance, now);
            }
            // Another server may have capacity to answer, and a long wait would cost the lease.
            (ConnectionEnd::Overloaded(_), _) if self.finder.others() > 0 => {
                self.fail(failure, chance, now);
            }
            (ConnectionEnd::Overloaded(retry_in), _) => {
                let retry_in = retry_in.min(OVERLOADED_MAX);
                let until = now + backoff::come_back(retry_in, chance);
                self.report_down(failure);
                self.state = SessionState::Waiting { until };
            }
            (ConnectionEnd::Unreachable, _) => {
                self.streams.note_unreachable();
                self.fail(failure, chance, now);
            }
            // The parent itself named the reason, so no proxy broke the stream.
            (
                ConnectionEnd::ByParent(
                    CloseReason::Cycle
                    | CloseReason::Stopping
                    | CloseReason::NotMaster
                    | CloseReason::TooMany
                    | CloseReason::TooManyOfAddress
                    | CloseReason::AnotherIdentity,
                ),
                _,
            ) => self.fail(failure, chance, now),
            (
                ConnectionEnd::ByParent(_)
                | ConnectionEnd::Unimplemented
                | ConnectionEnd::TakesNoMore
                | ConnectionEnd::Failed,
                _,
            ) => self.note_unreliable_stream(stream, failure, chance, now),
        }
    }

    /// Notes the end of a connection, perhaps because streams do not work there. A stream that broke after an answer is
    /// probably sound. `stream`: the beginning of the stream, if there was one, and whether it has answered.
    pub(super) fn note_unreliable_stream(
        &mut self,
        stream: Option<(Time, bool)>,
        failure: ParentFailure,
        chance: f64,
        now: Time,
    ) {
        let has_broken = failure == ParentFailure::Closed(ConnectionEnd::Failed);
        let is_polled = stream.is_some_and(|(since, has_answered)| {
            let is_sound = has_broken && has_answered;
            self.streams.note_broken(since, is_sound, now)
        });
        if is_polled {
            self.poll_parent(PollReason::StreamsBreak, failure, now);
        } else {
            self.fail(failure, chance, now);
        }
    }

    pub(super) fn start_polling(&mut self, why: PollReason, failure: ParentFailure, now: Time) {
        self.streams.poll(why, now);
        self.poll_parent(why, failure, now);
    }

    /// Waits before it opens another stream, after the parent replaced one although this server is the master. Two
    /// servers with the same node and no election would otherwise replace each other's streams at once.
    pub(super) fn wait_after_replacement(&mut self, chance: f64, now: Time) {
        let is_news = self.replaced.failures() == 0;
        self.report(ParentReport::Replaced {
            parent: self.address.clone(),
            is_news,
        });
        let until = now + self.replaced.note_failure(BACKOFF_REPLACED, 0, chance);
        self.state = SessionState::Waiting { until };
    }

    pub(super) fn handle_not_master(
        &mut self,
        master: MasterInfo<'_>,
        leases_last: Duration,
        chance: f64,
        now: Time,
    ) {
        self.close(now);
        let MasterInfo { master, epoch, .. } = master;
        match self.finder.handle_redirect(master, epoch, leases_last) {
            Ok(forgotten) => {
                self.note_forgotten(forgotten, epoch);
                self.follow_master(chance, now);
            }
            Err(lost) => self.try_next_or_wait(ParentFailure::DeadEnd(lost.why), chance, now),
        }
    }

    /// Connects to the server that the finder names now.
    pub(super) fn follow_master(&mut self, chance: f64, now: Time) {
        let from = self.address.clone();
        if let Some((from, to)) = from.zip(self.finder.target()) {
            self.report(ParentReport::Redirected { from, to });
        }
        self.connect_next(chance, now);
    }

    /// Reports the failure, and moves on to the next address.
    pub(super) fn fail(&mut self, failure: ParentFailure, chance: f64, now: Time) {
        self.finder.handle_failure();
        self.try_next_or_wait(failure, chance, now);
    }

    pub(super) fn try_next_or_wait(&mut self, failure: ParentFailure, chance: f64, now: Time) {
        self.report_down(failure);
        let others = self.finder.others();
        let until = now + self.backoff.note_failure(BACKOFF, others, chance);
        if self.backoff.failures() <= others && self.finder.target().is_some() {
            // The other addresses are tried at once.
            return self.connect_next(chance, now);
        }
        self.state = SessionState::Waiting { until };
    }

    pub(super) fn note_answered(&mut self, transport: Transport) {
        if let SessionState::Streaming { has_answered, .. }
        | SessionState::Polling { has_answered, .. } = &mut self.state
            && !std::mem::replace(has_answered, true)
        {
            self.backoff.succeed();
            self.finder.handle_answer();
            let report = LastReport::Answers(transport);
            let is_news = std::mem::replace(&mut self.last_report, report) != report;
            self.report(ParentReport::Answers { transport, is_news });
        }
    }

    pub(super) fn note_forgotten(&mut self, forgotten: Option<u64>, epoch: Option<u64>) {
        if let Some((forgotten, epoch)) = forgotten.zip(epoch) {
            self.report(ParentReport::EpochForgotten { forgotten, epoch });
        }
    }

    /// Connects to the same server again, to poll it.
    fn poll_parent(&mut self, why: PollReason, failure: ParentFailure, now: Time) {
        let is_news = self.last_poll_reason.replace(why) != Some(why);
        self.report(ParentReport::Polls {
            parent: self.address.clone(),
            why,
            failure,
            is_news,
        });
        if let Some(address) = self.address.clone() {
            self.become_connecting(address, now);
        }
    }

    /// Reports that the parent is down. The operator's repair differs for a parent that refuses and for one that is
    /// unreachable, so both are news.
    pub(super) fn report_down(&mut self, failure: ParentFailure) {
        let refuses = matches!(
            failure,
            ParentFailure::Closed(ConnectionEnd::ByParent(CloseReason::Cycle))
        );
        let report = LastReport::Down { refuses };
        let before = std::mem::replace(&mut self.last_report, report);
        let is_news = !matches!(before, LastReport::Down { .. }) || (refuses && before != report);
        self.report(ParentReport::Down {
            parent: self.address.clone(),
            failure,
            is_news,
        });
    }

    fn report(&mut self, report: ParentReport) {
        self.actions.push_back(ParentAction::Report(report));
    }
}
