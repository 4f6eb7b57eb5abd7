//! Streams that end, and the polling times after them.

use super::*;

fn at(seconds: u64) -> Time {
    Time::after_origin(Duration::from_secs(seconds))
}

/// Each stream begins one second after the last one broke. Per stream: its length, whether it answers, and whether the
/// server is polled then.
#[track_caller]
fn check(what: &str, all: &[(u64, bool, bool)]) {
    let mut streams = StreamHealth::default();
    let mut now = at(1);
    for (number, (lasts, answers, polled)) in all.iter().enumerate() {
        let broken = now + Duration::from_secs(*lasts);
        let is_polled = streams.note_broken(now, *answers, broken);
        assert_eq!(is_polled, *polled, "{what}: stream {number}");
        assert_eq!(
            streams.polled(broken).is_some(),
            *polled,
            "{what}: {number}"
        );
        streams.try_again();
        now = broken + Duration::from_secs(1);
    }
}

#[test]
fn streams_that_answer_are_tried_again_and_others_are_not() {
    check("it died after 4 s", &[(4, true, false)]);
    check("nothing comes through", &[(2, false, true)]);
    check(
        "a proxy ends each after 5 s",
        &[
            (5, true, false),
            (5, true, false),
            (5, true, true),
            (5, true, true),
        ],
    );
    check(
        "it died young, and later again",
        &[
            (4, true, false),
            (4, true, false),
            (10, true, false),
            (4, true, false),
        ],
    );
}

#[test]
fn each_time_it_is_polled_for_twice_as_long_up_to_five_minutes() {
    let mut streams = StreamHealth::default();
    for seconds in [30, 60, 120, 240, 300, 300] {
        streams.poll(PollReason::StreamsBreak, at(0));
        let until = streams.polled(at(0)).map(|(_, until)| until);
        assert_eq!(until, Some(at(seconds)));
        assert_eq!(streams.polled(at(seconds)), None);
    }
    streams.poll(PollReason::NoStreams, at(0));
    let polled = streams.polled(at(0));
    assert_eq!(polled, Some((PollReason::NoStreams, at(300))));
}

#[test]
fn an_unreachable_server_is_not_polled_because_its_stream_broke() {
    for (why, is_polled) in [
        (PollReason::StreamsBreak, false),
        (PollReason::NoStreams, true),
        (PollReason::AnotherProcess, true),
    ] {
        let mut streams = StreamHealth::default();
        streams.poll(why, at(0));
        streams.note_unreachable();
        assert_eq!(streams.polled(at(1)).is_some(), is_polled, "{why:?}");
    }
}
