//! Transitions of a session: each event, and the actions after it.

mod which_address;

use super::*;
use crate::close_reason::CloseReason;

/// A session at a virtual time, whose actions are collected as text.
struct Story {
    session: ParentSession,
    now: Time,
}

fn addresses(all: &[&str]) -> Arc<[Address]> {
    all.iter().map(|it| Address::parse(it).unwrap()).collect()
}

fn elsewhere(master: Option<&str>, epoch: Option<u64>) -> MasterInfo<'_> {
    MasterInfo {
        is_master: false,
        master,
        epoch,
    }
}

const MASTER: MasterInfo<'static> = MasterInfo {
    is_master: true,
    master: None,
    epoch: Some(5),
};

/// The largest random number gives the longest waits.
const CHANCE: f64 = 1.0;

impl Story {
    fn new(known: &[&str]) -> Self {
        let mut story = Self {
            session: ParentSession::new(addresses(known)),
            now: Time::ZERO,
        };
        story.session.handle_mastership(true, CHANCE, story.now);
        story
    }

    fn on(&self) -> ConnectionNumber {
        self.session.connection()
    }

    fn after(&mut self, seconds: f64) -> &mut Self {
        self.now = self.now + Duration::from_secs_f64(seconds);
        self
    }

    /// Writes the actions, and then the state.
    fn does(&mut self) -> String {
        let mut done = Vec::new();
        while let Some(action) = self.session.poll_action() {
            done.push(match action {
                ParentAction::Connect { to, transport, .. } => {
                    format!("connect {to} {transport:?}")
                }
                ParentAction::Discover => "discover".to_owned(),
                ParentAction::Open => "open".to_owned(),
                ParentAction::SetPace(transport) => format!("pace {transport:?}"),
                ParentAction::Send { is_hello: true } => "greet".to_owned(),
                ParentAction::Send { is_hello: false } => "send".to_owned(),
                ParentAction::Call => "call".to_owned(),
                ParentAction::Close => "close".to_owned(),
                ParentAction::Report(report) => match report {
                    ParentReport::Answers { transport, is_news } => {
                        format!("answers {transport:?}{}", news(is_news))
                    }
                    ParentReport::Polls { why, is_news, .. } => {
                        format!("polls {why:?}{}", news(is_news))
                    }
                    ParentReport::Redirected { from, to } => format!("from {from} to {to}"),
                    ParentReport::Replaced { is_news, .. } => {
                        format!("stands back{}", news(is_news))
                    }
                    ParentReport::Down {
                        failure, is_news, ..
                    } => {
                        format!("down ({failure}){}", news(is_news))
                    }
                    ParentReport::EpochForgotten { forgotten, epoch } => {
                        format!("forgot {forgotten} for {epoch}")
                    }
                },
            });
        }
        done.push(self.session.state().to_owned());
        done.join(", ")
    }

    #[track_caller]
    fn check(&mut self, expected: &str) -> &mut Self {
        assert_eq!(self.does(), expected);
        self
    }

    fn connects(&mut self) -> &mut Self {
        let on = self.on();
        self.session.handle_connected(on, self.now);
        self
    }

    fn discovers(&mut self, master: MasterInfo<'_>) -> &mut Self {
        self.discovers_with_leases(master, Duration::ZERO)
    }

    fn discovers_with_leases(&mut self, master: MasterInfo<'_>, last: Duration) -> &mut Self {
        let on = self.on();
        self.session
            .handle_discovered(on, master, last, CHANCE, self.now);
        self
    }

    fn opens(&mut self) -> &mut Self {
        let on = self.on();
        self.session.handle_opened(on, self.now);
        self
    }

    fn sends(&mut self, sequence: u64, resources: &[u64]) -> &mut Self {
        self.session
            .handle_sent(sequence, resources.iter().copied(), self.now);
        self
    }

    fn replies(&mut self, reply: &Reply<'_>) -> Disposition {
        self.replies_on(self.on(), reply)
    }

    fn replies_on(&mut self, on: ConnectionNumber, reply: &Reply<'_>) -> Disposition {
        let (session, now) = (&mut self.session, self.now);
        session.handle_reply(on, reply, Duration::ZERO, CHANCE, now)
    }

    /// An answer of the parent for one resource of a request.
    fn answers(&mut self, sequence: u64, resource: u64) -> &mut Self {
        let to = Some(sequence);
        let reply = Reply {
            answered: &[AnsweredResource { resource, to }],
            ..Reply::default()
        };
        assert_eq!(self.replies(&reply), Disposition::Keep);
        self
    }

    fn is_closed(&mut self, closed: ConnectionEnd) -> &mut Self {
        let on = self.on();
        self.session.handle_closed(on, closed, CHANCE, self.now);
        self
    }

    fn is_late(&mut self) -> &mut Self {
        self.now = self.session.poll_timeout().expect("a time");
        self.session.handle_timeout(CHANCE, self.now);
        self
    }

    /// etcd lists both servers, and perhaps names a master of an epoch.
    fn etcd_names(&mut self, master: Option<(&str, u64)>) -> &mut Self {
        let named = master.map(|(it, epoch)| (Address::parse(it).unwrap(), epoch));
        let (both, now) = (addresses(&["a:1", "b:1"]), self.now);
        self.session.handle_addresses(both, named, CHANCE, now);
        self
    }

    /// Checks that the session waits for that long.
    #[track_caller]
    fn waits(&mut self, millis: u64) -> &mut Self {
        let until = self.now + Duration::from_millis(millis);
        assert_eq!(self.session.poll_timeout(), Some(until));
        self
    }

    /// Keeps a stream open for that many seconds, on which the parent has answered.
    fn streams_for(&mut self, seconds: f64) -> &mut Self {
        self.connects().discovers(MASTER).opens().sends(1, &[7]);
        self.answers(1, 7).after(seconds);
        let _done = self.does();
        self
    }
}

fn news(is_news: bool) -> &'static str {
    if is_news { "!" } else { "" }
}

#[test]
fn a_stream_is_opened_at_the_master_with_a_first_message() {
    let mut story = Story::new(&["a:1"]);
    story.check("connect a:1 Stream, connecting");
    story.connects().check("discover, discovering");
    story.discovers(MASTER).check("open, opening");
    story.opens().check("pace Stream, greet, streaming");
    assert_eq!(story.session.answers(), None);
    story.sends(1, &[7]).answers(1, 7);
    story.check("answers Stream!, streaming");
    assert_eq!(story.session.answers(), Some(Transport::Stream));
    assert_eq!(story.session.poll_timeout(), None);
}

#[test]
fn only_a_master_asks() {
    let mut story = Story::new(&["a:1"]);
    story.streams_for(60.0);
    story.session.handle_mastership(false, CHANCE, story.now);
    story.check("close, standby");
    let on = story.on();
    story.session.handle_connected(on, story.now);
    story.is_closed(ConnectionEnd::Failed).check("standby");
    assert_eq!(story.session.poll_timeout(), None);
    story.session.handle_mastership(true, CHANCE, story.now);
    story.check("connect a:1 Stream, connecting");
}

#[test]
fn events_of_an_older_connection_are_ignored() {
    let mut story = Story::new(&["a:1"]);
    story.streams_for(60.0);
    let old = story.on();
    story.is_closed(ConnectionEnd::Failed);
    story.check("close, down (the connection ended)!, waiting");
    story.is_late().check("connect a:1 Stream, connecting");
    let now = story.now;
    story.session.handle_connected(old, now);
    let end = ConnectionEnd::Failed;
    story.session.handle_closed(old, end, CHANCE, now);
    assert_eq!(story.replies_on(old, &Reply::default()), Disposition::Drop);
    story.check("connecting");
    // It answers no request on the next connection either.
    story.connects().discovers(MASTER).opens().sends(2, &[7]);
    story.does();
    let (resource, to) = (7, None);
    let reply = Reply {
        answered: &[AnsweredResource { resource, to }],
        ..Reply::default()
    };
    assert_eq!(story.replies_on(old, &reply), Disposition::Drop);
    assert!(story.session.poll_timeout().is_some(), "it is waited for");
}

#[test]
fn each_step_has_a_timeout() {
    let mut story = Story::new(&["a:1"]);
    story.does();
    for (step, (what, seconds)) in [
        ("down (no connection within 3s)!", 3),
        ("down (no answer within 2s)", 2),
        ("polls StreamsBreak!", 2),
    ]
    .into_iter()
    .enumerate()
    {
        let began = story.now;
        if step > 0 {
            story.connects().does();
        }
        if step > 1 {
            story.discovers(MASTER).does();
        }
        story.is_late();
        assert_eq!(story.now, began + Duration::from_secs(seconds));
        let done = story.does();
        assert!(done.starts_with(&format!("close, {what}")), "{done}");
        if done.ends_with("waiting") {
            story.is_late().does();
        }
    }
}

#[test]
fn a_parent_that_dies_four_seconds_after_a_stream_began_is_not_polled() {
    let mut story = Story::new(&["a:1"]);
    story.streams_for(4.0);
    story.is_closed(ConnectionEnd::Failed);
    story.check("close, down (the connection ended)!, waiting");
    story.is_late().check("connect a:1 Stream, connecting");
    story.is_closed(ConnectionEnd::Unreachable);
    story.check("close, down (the connection ended), waiting");
    story.is_late().check("connect a:1 Stream, connecting");
    story.connects().discovers(MASTER);
    story.check("discover, open, opening");
}

#[test]
fn a_parent_that_dies_before_it_has_answered_is_not_polled_either() {
    let mut story = Story::new(&["a:1"]);
    story.connects().discovers(MASTER).opens().does();
    story.is_closed(ConnectionEnd::Failed);
    story.check("close, polls StreamsBreak!, connect a:1 Calls, connecting");
    story.is_closed(ConnectionEnd::Unreachable);
    story.check("close, down (the connection ended)!, waiting");
    story.is_late().check("connect a:1 Stream, connecting");
}

#[test]
fn a_young_stream_that_swallows_a_request_leads_to_polling() {
    let mut story = Story::new(&["a:1"]);
    story.streams_for(1.0);
    story.sends(2, &[7, 8]).answers(2, 7);
    let since = story.now;
    story.is_late();
    assert_eq!(story.now, since + ANSWER_TIMEOUT);
    story.check("close, polls StreamsBreak!, connect a:1 Calls, connecting");
    // A stream that lasted is opened again.
    let mut story = Story::new(&["a:1"]);
    story.streams_for(10.0);
    story.sends(2, &[7]).is_late();
    story.check("close, down (no answer on the stream within 2s)!, waiting");
    story.is_late().check("connect a:1 Stream, connecting");
}

#[test]
fn a_polled_parent_gets_one_call_at_a_time_and_later_a_stream_again() {
    let mut story = Story::new(&["a:1"]);
    story.connects().discovers(MASTER).does();
    story.is_closed(ConnectionEnd::Unimplemented);
    story.check("close, polls NoStreams!, connect a:1 Calls, connecting");
    let polled_until = story.now + Duration::from_secs(300);
    // It does not support Discovery either.
    story.connects().is_closed(ConnectionEnd::Unimplemented);
    story.check("discover, pace Calls, call, polling");
    story.sends(1, &[7]);
    assert!(!story.session.may_ask());
    let reply = |call| Reply {
        call: Some(call),
        ..Reply::default()
    };
    use Disposition::{Drop, Keep};
    assert_eq!(story.replies(&reply(9)), Drop, "of another call");
    assert_eq!(story.replies(&reply(1)), Keep);
    assert_eq!(story.replies(&reply(1)), Drop, "it came twice");
    story.check("answers Calls!, polling");
    story.session.handle_due();
    story.check("call, polling").sends(2, &[7]);
    // A call in flight may end first.
    story.after(1.0);
    assert_eq!(story.replies(&reply(2)), Disposition::Keep);
    story.is_late();
    assert_eq!(story.now, polled_until);
    story.check("close, connect a:1 Stream, connecting");
}

#[test]
fn a_polled_parent_counts_as_reachable_while_nothing_is_due() {
    let mut story = Story::new(&["a:1"]);
    story.connects().discovers(MASTER);
    story.is_closed(ConnectionEnd::Unimplemented);
    story.connects().discovers(MASTER).does();
    story.session.handle_nothing_due();
    story.check("answers Calls!, polling");
    story.session.handle_nothing_due();
    story.check("polling");
}

#[test]
fn requests_in_flight_are_limited() {
    let mut story = Story::new(&["a:1"]);
    story.streams_for(0.0);
    for sequence in 0..IN_FLIGHT_MAX as u64 {
        assert!(story.session.may_ask());
        story.session.handle_due();
        story.check("send, streaming");
        story.sends(10 + sequence, &[sequence]);
    }
    story.session.handle_due();
    story.check("streaming");
    story.answers(10, 0);
    story.session.handle_due();
    story.check("send, streaming");
}

#[test]
fn each_replaced_stream_is_opened_again_after_a_longer_wait() {
    let mut story = Story::new(&["a:1"]);
    let replaced = ConnectionEnd::ByParent(CloseReason::Replaced);
    for (wait, is_news) in [(200, "!"), (400, ""), (800, "")] {
        story.streams_for(1.0).is_closed(replaced);
        story.check(&format!("close, stands back{is_news}, waiting"));
        story.waits(wait).is_late();
        story.check("connect a:1 Stream, connecting");
    }
    // After a stream that lasted, it is news again.
    story.streams_for(10.0).is_closed(replaced);
    story.check("close, stands back!, waiting");
}

#[test]
fn the_second_process_of_a_node_is_polled_and_known_as_such() {
    let mut story = Story::new(&["a:1"]);
    story.connects().discovers(MASTER).does();
    story.is_closed(ConnectionEnd::ByParent(CloseReason::AnotherProcess));
    story.check("close, polls AnotherProcess!, connect a:1 Calls, connecting");
    assert!(story.session.is_second(story.now));
    story.after(30.0);
    assert!(!story.session.is_second(story.now));
}

#[test]
fn due_requests_are_called_once_when_polling_begins() {
    let mut story = Story::new(&["a:1"]);
    story.connects().discovers(MASTER).does();
    story.is_closed(ConnectionEnd::Unimplemented).connects();
    story.discovers(MASTER);
    story.session.handle_due();
    let done = story.does();
    assert_eq!(done.matches("call").count(), 1, "{done}");
    // Until the call is answered, the parent does not count as reachable.
    story.sends(1, &[7]);
    story.session.handle_nothing_due();
    story.check("polling");
}

#[test]
fn actions_queued_for_one_connection_are_dropped_with_it() {
    let mut story = Story::new(&["a:1"]);
    story.connects().discovers(MASTER).does();
    story.opens();
    story.session.handle_mastership(false, CHANCE, story.now);
    story.check("close, standby");
}

#[test]
fn a_stream_that_lasted_shows_that_streams_work_however_it_ends() {
    let mut story = Story::new(&["a:1"]);
    for _ in 0..2 {
        story.streams_for(4.0).is_closed(ConnectionEnd::Failed);
        story.is_late();
    }
    story.streams_for(60.0);
    let reply = Reply {
        not_master: Some(elsewhere(Some("a:1"), Some(6))),
        ..Reply::default()
    };
    assert_eq!(story.replies(&reply), Disposition::Drop);
    story.does();
    // The third young stream in a row would lead to polling.
    let master = MasterInfo {
        epoch: Some(6),
        ..MASTER
    };
    story.connects().discovers(master).opens().sends(2, &[7]);
    story.answers(2, 7).after(4.0).does();
    story.is_closed(ConnectionEnd::Failed);
    story.check("close, down (the connection ended)!, waiting");
}

#[test]
fn a_parent_that_floods_is_left() {
    let mut story = Story::new(&["a:1"]);
    story.streams_for(60.0);
    for _ in 0..MESSAGES_PER_SECOND_MAX {
        assert_eq!(story.replies(&Reply::default()), Disposition::Keep);
    }
    assert_eq!(story.replies(&Reply::default()), Disposition::Drop);
    story.check("close, down (it sends more than 2000 messages a second)!, waiting");
}
