//! Transitions of a session, as a table reads: what happens, and what is wanted done.

mod whom;

use super::*;
use crate::closing::Closing;

/// A session at some second, whose actions are collected as texts.
struct Story {
    session: ParentSession,
    now: Time,
}

fn addresses(all: &[&str]) -> Arc<[Address]> {
    all.iter().map(|it| Address::parse(it).unwrap()).collect()
}

fn told(master: Option<&str>, epoch: Option<u64>) -> Mastership<'_> {
    Mastership {
        is_master: false,
        master,
        epoch,
    }
}

const MASTER: Mastership<'static> = Mastership {
    is_master: true,
    master: None,
    epoch: Some(5),
};

/// Waits are as long as they can be.
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

    fn on(&self) -> Connection {
        self.session.connection()
    }

    fn after(&mut self, seconds: f64) -> &mut Self {
        self.now = self.now + Duration::from_secs_f64(seconds);
        self
    }

    /// What is wanted done, and then the state.
    fn does(&mut self) -> String {
        let mut done = Vec::new();
        while let Some(action) = self.session.poll_action() {
            done.push(match action {
                Action::Connect { to, way, .. } => format!("connect {to} {way:?}"),
                Action::Discover => "discover".to_owned(),
                Action::Open => "open".to_owned(),
                Action::Pace(way) => format!("pace {way:?}"),
                Action::Send { greets: true } => "greet".to_owned(),
                Action::Send { greets: false } => "send".to_owned(),
                Action::Call => "call".to_owned(),
                Action::Close => "close".to_owned(),
                Action::Report(report) => match report {
                    Report::Answers { way, is_news } => format!("answers {way:?}{}", news(is_news)),
                    Report::Polls { why, is_news, .. } => format!("polls {why:?}{}", news(is_news)),
                    Report::Redirected { from, to } => format!("from {from} to {to}"),
                    Report::StandsBack { is_news } => format!("stands back{}", news(is_news)),
                    Report::Down { trouble, is_news } => {
                        format!("down ({trouble}){}", news(is_news))
                    }
                    Report::Forgot { forgotten, epoch } => {
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

    fn discovers(&mut self, told: Mastership<'_>) -> &mut Self {
        self.discovers_with_leases(told, Duration::ZERO)
    }

    fn discovers_with_leases(&mut self, told: Mastership<'_>, last: Duration) -> &mut Self {
        let on = self.on();
        self.session
            .handle_discovered(on, told, last, CHANCE, self.now);
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

    fn replies(&mut self, reply: &Reply<'_>) -> Verdict {
        let on = self.on();
        self.session
            .handle_reply(on, reply, Duration::ZERO, CHANCE, self.now)
    }

    /// The parent answers what was sent about one resource.
    fn answers(&mut self, sequence: u64, resource: u64) -> &mut Self {
        let to = Some(sequence);
        let reply = Reply {
            answered: &[Answered { resource, to }],
            ..Reply::default()
        };
        assert_eq!(self.replies(&reply), Verdict::Keep);
        self
    }

    fn is_closed(&mut self, closed: Closed) -> &mut Self {
        let on = self.on();
        self.session.handle_closed(on, closed, CHANCE, self.now);
        self
    }

    fn is_late(&mut self) -> &mut Self {
        self.now = self
            .session
            .poll_timeout()
            .expect("something is waited for");
        self.session.handle_timeout(CHANCE, self.now);
        self
    }

    /// It has a stream, of that many seconds, on which the parent answered.
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
fn a_stream_is_opened_at_the_master_and_greets() {
    let mut story = Story::new(&["a:1"]);
    story.check("connect a:1 Stream, connecting");
    story.connects().check("discover, discovering");
    story.discovers(MASTER).check("open, opening");
    story.opens().check("pace Stream, greet, streaming");
    assert_eq!(story.session.answers(), None);
    story.sends(1, &[7]).answers(1, 7);
    story.check("answers Stream!, streaming");
    assert_eq!(story.session.answers(), Some(Way::Stream));
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
    story.is_closed(Closed::Failed).check("standby");
    assert_eq!(story.session.poll_timeout(), None);
    story.session.handle_mastership(true, CHANCE, story.now);
    story.check("connect a:1 Stream, connecting");
}

#[test]
fn what_comes_of_an_older_connection_is_for_nobody() {
    let mut story = Story::new(&["a:1"]);
    story.streams_for(60.0);
    let old = story.on();
    story.is_closed(Closed::Failed);
    story.check("close, down (the connection ended)!, waiting");
    story.is_late().check("connect a:1 Stream, connecting");
    story.session.handle_connected(old, story.now);
    story
        .session
        .handle_closed(old, Closed::Failed, CHANCE, story.now);
    let reply = Reply::default();
    let verdict = story
        .session
        .handle_reply(old, &reply, Duration::ZERO, CHANCE, story.now);
    assert_eq!(verdict, Verdict::Drop);
    story.check("connecting");
    // Nor does it answer what is asked on the next one.
    story.connects().discovers(MASTER).opens().sends(2, &[7]);
    story.does();
    let answered = [Answered {
        resource: 7,
        to: None,
    }];
    let reply = Reply {
        answered: &answered,
        ..reply
    };
    let verdict = story
        .session
        .handle_reply(old, &reply, Duration::ZERO, CHANCE, story.now);
    assert_eq!(verdict, Verdict::Drop);
    assert!(story.session.poll_timeout().is_some(), "it is waited for");
}

#[test]
fn each_step_has_its_time() {
    let mut story = Story::new(&["a:1"]);
    story.does();
    for (what, at) in [
        ("down (no connection within 3s)!", 3.0),
        ("down (no answer within 2s)", 2.0),
        ("polls StreamsBreak!", 2.0),
    ] {
        let began = story.now;
        match what {
            _ if what.contains("connection") => {}
            _ if what.contains("no answer") => {
                story.connects().does();
            }
            _ => {
                story.connects().discovers(MASTER).does();
            }
        }
        story.is_late();
        assert_eq!(story.now, began + Duration::from_secs_f64(at));
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
    story.is_closed(Closed::Failed);
    story.check("close, down (the connection ended)!, waiting");
    story.is_late().check("connect a:1 Stream, connecting");
    story.is_closed(Closed::Unreachable);
    story.check("close, down (the connection ended), waiting");
    story.is_late().check("connect a:1 Stream, connecting");
    story
        .connects()
        .discovers(MASTER)
        .check("discover, open, opening");
}

#[test]
fn a_parent_that_dies_before_it_has_answered_is_not_polled_either() {
    let mut story = Story::new(&["a:1"]);
    story.connects().discovers(MASTER).opens().does();
    story.is_closed(Closed::Failed);
    story.check("close, polls StreamsBreak!, connect a:1 Calls, connecting");
    story.is_closed(Closed::Unreachable);
    story.check("close, down (the connection ended)!, waiting");
    story.is_late().check("connect a:1 Stream, connecting");
}

#[test]
fn a_stream_that_swallows_a_request_is_not_trusted_while_it_is_young() {
    let mut story = Story::new(&["a:1"]);
    story.streams_for(1.0);
    story.sends(2, &[7, 8]).answers(2, 7);
    let since = story.now;
    story.is_late();
    assert_eq!(story.now, since + ANSWER_TIMEOUT);
    story.check("close, polls StreamsBreak!, connect a:1 Calls, connecting");
    // An old one is opened again.
    let mut story = Story::new(&["a:1"]);
    story.streams_for(10.0);
    story.sends(2, &[7]).is_late();
    story.check("close, down (no answer on the stream within 2s)!, waiting");
    story.is_late().check("connect a:1 Stream, connecting");
}

#[test]
fn who_is_polled_is_asked_by_one_call_after_the_other_and_then_by_a_stream_again() {
    let mut story = Story::new(&["a:1"]);
    story.connects().discovers(MASTER).does();
    story.is_closed(Closed::Unimplemented);
    story.check("close, polls NoStreams!, connect a:1 Calls, connecting");
    let polled_until = story.now + Duration::from_secs(300);
    // It cannot say who is the master either.
    story.connects().is_closed(Closed::Unimplemented);
    story.check("discover, pace Calls, call, polling");
    story.sends(1, &[7]);
    assert!(!story.session.may_ask());
    let reply = |call| Reply {
        call: Some(call),
        ..Reply::default()
    };
    assert_eq!(story.replies(&reply(9)), Verdict::Drop, "of another call");
    assert_eq!(story.replies(&reply(1)), Verdict::Keep);
    assert_eq!(story.replies(&reply(1)), Verdict::Drop, "it came twice");
    story.check("answers Calls!, polling");
    story.session.handle_due();
    story.check("call, polling").sends(2, &[7]);
    // A call under way is waited for.
    story.after(1.0);
    assert_eq!(story.replies(&reply(2)), Verdict::Keep);
    story.is_late();
    assert_eq!(story.now, polled_until);
    story.check("close, connect a:1 Stream, connecting");
}

#[test]
fn a_polled_parent_that_nobody_asks_anything_is_there_all_the_same() {
    let mut story = Story::new(&["a:1"]);
    story
        .connects()
        .discovers(MASTER)
        .is_closed(Closed::Unimplemented);
    story.connects().discovers(MASTER).does();
    story.session.handle_nothing_due();
    story.check("answers Calls!, polling");
    story.session.handle_nothing_due();
    story.check("polling");
}

#[test]
fn so_many_requests_are_in_flight_and_no_more() {
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
fn a_stream_that_a_newer_one_replaced_is_opened_again_later_and_later() {
    let mut story = Story::new(&["a:1"]);
    let replaced = Closed::Said(Closing::Replaced);
    for (wait, is_news) in [(200, "!"), (400, ""), (800, "")] {
        story.streams_for(1.0).is_closed(replaced);
        story.check(&format!("close, stands back{is_news}, waiting"));
        let until = story.now + Duration::from_millis(wait);
        assert_eq!(story.session.poll_timeout(), Some(until));
        story.is_late().check("connect a:1 Stream, connecting");
    }
    // Of one that worked it is news.
    story.streams_for(10.0).is_closed(replaced);
    story.check("close, stands back!, waiting");
}

#[test]
fn the_second_process_of_a_node_is_polled_and_known_as_such() {
    let mut story = Story::new(&["a:1"]);
    story.connects().discovers(MASTER).does();
    story.is_closed(Closed::Said(Closing::AnotherProcess));
    story.check("close, polls AnotherProcess!, connect a:1 Calls, connecting");
    assert!(story.session.is_second(story.now));
    story.after(30.0);
    assert!(!story.session.is_second(story.now));
}

#[test]
fn what_is_due_is_asked_once_when_polling_begins() {
    let mut story = Story::new(&["a:1"]);
    story.connects().discovers(MASTER).does();
    story.is_closed(Closed::Unimplemented).connects();
    story.discovers(Mastership::UNTOLD);
    story.session.handle_due();
    let done = story.does();
    assert_eq!(done.matches("call").count(), 1, "{done}");
    // While that is under way, nothing is known of the parent.
    story.sends(1, &[7]);
    story.session.handle_nothing_due();
    story.check("polling");
}

#[test]
fn what_was_to_be_done_on_a_connection_is_not_done_on_the_next() {
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
        story.streams_for(4.0).is_closed(Closed::Failed).is_late();
    }
    story.streams_for(60.0);
    let reply = Reply {
        not_master: Some(told(Some("a:1"), Some(6))),
        ..Reply::default()
    };
    assert_eq!(story.replies(&reply), Verdict::Drop);
    story.does();
    // The third young one in a row would be taken for a sign.
    let master = Mastership {
        epoch: Some(6),
        ..MASTER
    };
    story.connects().discovers(master).opens().sends(2, &[7]);
    story.answers(2, 7).after(4.0).does();
    story.is_closed(Closed::Failed);
    story.check("close, down (the connection ended)!, waiting");
}

#[test]
fn a_parent_that_sends_without_end_is_left() {
    let mut story = Story::new(&["a:1"]);
    story.streams_for(60.0);
    for _ in 0..MESSAGES_PER_SECOND_MAX {
        assert_eq!(story.replies(&Reply::default()), Verdict::Keep);
    }
    assert_eq!(story.replies(&Reply::default()), Verdict::Drop);
    story.check("close, down (it sends more than 2000 messages a second)!, waiting");
}
