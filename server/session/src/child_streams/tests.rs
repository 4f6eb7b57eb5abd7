//! Child streams: replaced, refused and closed ones, and the times of pushes.

use super::*;

const ROUND: Duration = Duration::from_millis(50);

fn at(millis: u64) -> Time {
    Time::after_origin(Duration::from_millis(millis))
}

/// Streams without limits.
fn streams() -> ChildStreams {
    ChildStreams::new(ROUND)
}

/// First message of a child's only process, without an election, in the first mastership.
fn hello(child: &str) -> Hello {
    Hello {
        child: SmolStr::new(child),
        epoch: None,
        incarnation: None,
        caller: None,
        is_refused: false,
        mastership: 1,
        limits: StreamLimits::default(),
    }
}

/// Takes all actions, as a text.
fn actions(streams: &mut ChildStreams) -> String {
    let action = std::iter::from_fn(|| streams.poll_action());
    let words = action.map(|action| match action {
        StreamAction::Close {
            number, closing, ..
        } => format!("close {number} {closing:?}"),
        StreamAction::Subscribe(child) => format!("subscribe {child}"),
        StreamAction::Unsubscribe(child) => format!("unsubscribe {child}"),
        StreamAction::Push => "push".to_owned(),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn does(streams: &mut ChildStreams, expected: impl AsRef<str>) {
    assert_eq!(actions(streams), expected.as_ref());
}

/// Opens a stream with that first message, and returns its number.
#[track_caller]
fn opens(streams: &mut ChildStreams, hello: Hello) -> u64 {
    let child = hello.child.clone();
    let number = streams.handle_connected(Time::ZERO);
    streams.handle_hello(number, hello);
    assert_eq!(streams.stream_of(&child), Some(number));
    number
}

#[test]
fn the_first_message_names_the_child_of_a_stream() {
    let mut streams = streams();
    let number = streams.handle_connected(at(0));
    assert_eq!(streams.state(number), Some(StreamState::Opening));
    streams.handle_hello(number, hello("eu"));
    assert_eq!(streams.state(number), Some(StreamState::Open));
    does(&mut streams, "subscribe eu");
    assert_eq!(streams.poll_timeout(), None);
    for _ in 0..2 {
        assert!(streams.handle_message(number, "eu"));
    }
    does(&mut streams, "");
    streams.handle_gone(number);
    assert_eq!(streams.state(number), None);
    does(&mut streams, "unsubscribe eu");
    // A second call changes nothing.
    streams.handle_gone(number);
    does(&mut streams, "");
}

#[test]
fn a_second_stream_of_a_child_replaces_the_first_or_is_refused() {
    use CloseReason::{AnotherProcess, OlderMaster};
    let of = |epoch, incarnation| Hello {
        epoch,
        incarnation,
        ..hello("eu")
    };
    let refused = |hello: Hello| Hello {
        is_refused: true,
        ..hello
    };
    // The open stream, the newer one, and the reason for refusing the newer one (None: it
    // replaces).
    let (older_master, another) = (Some(OlderMaster), Some(AnotherProcess));
    let table = [
        (of(None, None), of(None, None), None),
        (of(Some(7), None), of(Some(7), None), None),
        (of(Some(7), None), of(Some(8), None), None),
        (of(Some(7), None), of(Some(6), None), older_master),
        // Without an epoch nothing is compared.
        (of(Some(7), None), of(None, None), None),
        (of(None, None), of(Some(0), None), None),
        // Another process: a restarted one, unless the node refuses it.
        (of(None, Some(1)), of(None, Some(2)), None),
        (of(None, Some(1)), refused(of(None, Some(2))), another),
        (of(None, Some(1)), refused(of(None, None)), another),
        (of(None, None), refused(of(None, Some(2))), another),
        // A process that the node refuses keeps a stream that it already has.
        (of(None, Some(1)), refused(of(None, Some(1))), None),
        // Of two reasons, the process counts first.
        (of(Some(7), Some(1)), refused(of(Some(6), Some(2))), another),
        (of(Some(7), Some(1)), of(Some(6), Some(2)), older_master),
        (of(Some(7), Some(1)), of(Some(8), Some(2)), None),
    ];
    for (first, newer, refusal) in table {
        let mut streams = streams();
        let before = opens(&mut streams, first.clone());
        does(&mut streams, "subscribe eu");
        let after = streams.handle_connected(at(1));
        streams.handle_hello(after, newer.clone());
        let about = format!("{first:?} {newer:?}");
        let done = actions(&mut streams);
        if let Some(closing) = refusal {
            assert_eq!(done, format!("close {after} {closing:?}"), "{about}");
            assert_eq!(streams.stream_of("eu"), Some(before), "{about}");
            assert!(streams.handle_message(before, "eu"));
        } else {
            let expected = format!("close {before} Replaced, subscribe eu");
            assert_eq!(done, expected, "{about}");
            assert_eq!(streams.stream_of("eu"), Some(after), "{about}");
            // Later messages on the replaced stream are ignored.
            assert!(!streams.handle_message(before, "eu"), "{about}");
            streams.handle_gone(before);
            does(&mut streams, "");
            assert!(streams.handle_message(after, "eu"));
        }
    }
}

#[test]
fn a_process_that_the_node_refuses_gets_a_stream_if_no_other_has_one() {
    let mut streams = streams();
    let refused = Hello {
        is_refused: true,
        ..hello("eu")
    };
    opens(&mut streams, refused);
    does(&mut streams, "subscribe eu");
}

/// Two live processes do not replace each other forever: one that was replaced and comes back was
/// first.
#[test]
fn a_process_that_comes_back_keeps_its_stream() {
    let of = |process| Hello {
        incarnation: Some(process),
        ..hello("eu")
    };
    let mut streams = streams();
    let first = opens(&mut streams, of(1));
    let later = opens(&mut streams, of(2));
    let replaced = |stream| format!("close {stream} Replaced, subscribe eu");
    does(&mut streams, format!("subscribe eu, {}", replaced(first)));
    let back = opens(&mut streams, of(1));
    let again = opens(&mut streams, of(1));
    let both = format!("{}, {}", replaced(later), replaced(back));
    does(&mut streams, both);
    let refused = streams.handle_connected(at(1));
    streams.handle_hello(refused, of(2));
    does(&mut streams, format!("close {refused} AnotherProcess"));
    assert_eq!(streams.stream_of("eu"), Some(again));
    // A process that starts afterwards gets the stream, as does the later one once the first is gone.
    streams.handle_gone(again);
    let later = opens(&mut streams, of(2));
    let newest = opens(&mut streams, of(3));
    let all = format!("unsubscribe eu, subscribe eu, {}", replaced(later));
    does(&mut streams, all);
    assert_eq!(streams.stream_of("eu"), Some(newest));
}

#[test]
fn an_epoch_is_compared_only_with_that_of_the_open_stream() {
    let of = |epoch| Hello {
        epoch: Some(epoch),
        ..hello("eu")
    };
    let mut streams = streams();
    let newer = opens(&mut streams, of(8));
    assert_eq!(streams.epoch_of("eu"), Some(8));
    streams.handle_gone(newer);
    opens(&mut streams, of(7));
    assert_eq!(streams.epoch_of("eu"), Some(7));
}

#[test]
fn children_with_streams_are_limited_in_all_and_per_address() {
    use CloseReason::{TooMany, TooManyOfAddress};
    let mut streams = streams();
    let limits = StreamLimits {
        children_max: Some(4),
        children_of_caller_max: Some(2),
    };
    let from = |child, caller| Hello {
        caller,
        limits,
        ..hello(child)
    };
    let refused = |streams: &mut ChildStreams, hello, closing| {
        while streams.poll_action().is_some() {}
        let number = streams.handle_connected(at(0));
        streams.handle_hello(number, hello);
        does(streams, format!("close {number} {closing:?}"));
    };
    opens(&mut streams, from("a", Some(1)));
    let b = opens(&mut streams, from("b", Some(1)));
    refused(&mut streams, from("c", Some(1)), TooManyOfAddress);
    opens(&mut streams, from("c", Some(2)));
    opens(&mut streams, from("d", None));
    refused(&mut streams, from("e", None), TooMany);
    refused(&mut streams, from("e", Some(1)), TooMany);
    // A child may replace its own stream, and a child that disconnects makes room.
    let b_again = opens(&mut streams, from("b", Some(1)));
    assert_ne!(b, b_again);
    streams.handle_gone(b_again);
    opens(&mut streams, from("e", Some(1)));
}

#[test]
fn a_stream_without_a_first_message_is_closed_after_ten_seconds() {
    let mut streams = streams();
    let first = streams.handle_connected(at(0));
    let second = streams.handle_connected(at(3_000));
    let third = streams.handle_connected(at(3_000));
    assert_eq!(streams.poll_timeout(), Some(at(10_000)));
    streams.handle_timeout(at(9_999));
    does(&mut streams, "");
    streams.handle_timeout(at(10_000));
    does(&mut streams, format!("close {first} Late"));
    // A message after that comes too late.
    streams.handle_hello(first, hello("eu"));
    assert!(!streams.handle_message(first, "eu"));
    does(&mut streams, "");
    assert_eq!(streams.poll_timeout(), Some(at(13_000)));
    streams.handle_hello(second, hello("us"));
    does(&mut streams, "subscribe us");
    // Disconnected before the first message.
    streams.handle_gone(third);
    assert_eq!(streams.poll_timeout(), None);
    streams.handle_timeout(at(60_000));
    does(&mut streams, "");
}

#[test]
fn a_stream_belongs_to_one_child() {
    let mut streams = streams();
    let eu = opens(&mut streams, hello("eu"));
    let us = opens(&mut streams, hello("us"));
    does(&mut streams, "subscribe eu, subscribe us");
    assert!(!streams.handle_message(eu, "us"));
    let closed = format!("unsubscribe eu, close {eu} OtherChild");
    does(&mut streams, closed);
    assert!(
        streams.handle_message(us, "us"),
        "the other stream is untouched"
    );
}

#[test]
fn a_change_is_pushed_after_one_round_together_with_later_ones() {
    let mut streams = streams();
    for began in [1_000, 7_000, 7_050] {
        assert!(!streams.is_gathering());
        streams.handle_change(at(began));
        streams.handle_change(at(began + 30));
        assert!(streams.is_gathering());
        assert_eq!(streams.poll_timeout(), Some(at(began + 50)));
        streams.handle_timeout(at(began + 49));
        does(&mut streams, "");
        streams.handle_timeout(at(began + 50));
        does(&mut streams, "push");
        // Nothing more happens until a change begins another round.
        assert_eq!(streams.poll_timeout(), None);
        streams.handle_timeout(at(began + 50));
        does(&mut streams, "");
    }
}

#[test]
fn the_earlier_of_a_round_and_a_first_message_is_due() {
    let mut streams = streams();
    let number = streams.handle_connected(at(0));
    streams.handle_change(at(9_940));
    assert_eq!(streams.poll_timeout(), Some(at(9_990)));
    streams.handle_timeout(at(10_000));
    does(&mut streams, format!("close {number} Late, push"));
}

#[test]
fn a_child_that_does_not_read_is_disconnected() {
    let mut streams = streams();
    let number = opens(&mut streams, hello("eu"));
    streams.handle_full(number);
    let cut_off = format!("subscribe eu, unsubscribe eu, close {number} Full");
    does(&mut streams, cut_off);
    assert_eq!(streams.stream_of("eu"), None);
    streams.handle_full(number);
    does(&mut streams, "");
    opens(&mut streams, hello("eu"));
}

#[test]
fn a_message_that_is_refused_as_a_whole_closes_its_stream() {
    use CloseReason::{Cycle, Malformed, NotMaster};
    for closing in [Malformed, Cycle, NotMaster] {
        let mut streams = streams();
        let opening = streams.handle_connected(at(0));
        streams.handle_refused(opening, closing);
        does(&mut streams, format!("close {opening} {closing:?}"));
        let open = opens(&mut streams, hello("eu"));
        streams.handle_refused(open, closing);
        let ended = format!("subscribe eu, unsubscribe eu, close {open} {closing:?}");
        does(&mut streams, ended);
        streams.handle_refused(open, closing);
        does(&mut streams, "");
    }
}

#[test]
fn streams_of_earlier_masterships_are_closed() {
    let mut streams = streams();
    let of = |child, mastership| Hello {
        mastership,
        ..hello(child)
    };
    let eu = opens(&mut streams, of("eu", 1));
    let us = opens(&mut streams, of("us", 2));
    let asia = opens(&mut streams, of("asia", 3));
    let opening = streams.handle_connected(at(0));
    while streams.poll_action().is_some() {}
    streams.handle_mastership(3);
    let ended = |child, stream| format!("unsubscribe {child}, close {stream} NotMaster");
    let both = format!("{}, {}", ended("eu", eu), ended("us", us));
    does(&mut streams, both);
    // A later stream, or one without its first message, stays.
    assert_eq!(streams.state(asia), Some(StreamState::Open));
    assert_eq!(streams.state(opening), Some(StreamState::Opening));
    streams.handle_mastership(3);
    does(&mut streams, "");
}

#[test]
fn a_child_that_turns_out_to_be_an_ancestor_loses_its_stream() {
    let mut streams = streams();
    let eu = opens(&mut streams, hello("eu"));
    opens(&mut streams, hello("us"));
    while streams.poll_action().is_some() {}
    streams.handle_ancestors(["root", "eu", "eu"]);
    let ended = format!("unsubscribe eu, close {eu} Cycle");
    does(&mut streams, ended);
    assert!(streams.stream_of("us").is_some());
}

#[test]
fn a_server_that_shuts_down_closes_its_streams_and_refuses_new_ones() {
    let mut streams = streams();
    let eu = opens(&mut streams, hello("eu"));
    let opening = streams.handle_connected(at(0));
    while streams.poll_action().is_some() {}
    streams.handle_stopping();
    let late = streams.handle_connected(at(1));
    let closed = [eu, opening, late].map(|stream| format!("close {stream} Stopping"));
    let ended = format!("unsubscribe eu, {}", closed.join(", "));
    does(&mut streams, ended);
    streams.handle_hello(late, hello("us"));
    does(&mut streams, "");
    assert_eq!(streams.poll_timeout(), None);
}

#[test]
fn the_snapshot_counts_streams_and_why_others_were_closed() {
    let mut streams = streams();
    opens(&mut streams, hello("eu"));
    opens(&mut streams, hello("eu"));
    let eu = opens(&mut streams, hello("eu"));
    opens(&mut streams, hello("us"));
    streams.handle_full(eu);
    streams.handle_connected(at(0));
    let seen = streams.snapshot();
    let expected = [(StreamState::Opening, 1), (StreamState::Open, 1)];
    assert_eq!(seen.streams, expected);
    let reasons = seen.closed.iter().map(|(closing, _)| *closing);
    assert!(reasons.eq(CloseReason::ALL), "{:?}", seen.closed);
    for (closing, count) in seen.closed {
        let expected = match closing {
            CloseReason::Replaced => 2,
            CloseReason::Full => 1,
            _ => 0,
        };
        assert_eq!(count, expected, "{closing}");
    }
}
