//! Frames, whole and in pieces, and the limit on them.

use super::*;

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags, 0, 0, 0, 1];
    [&head[..], payload].concat()
}

#[test]
fn frames_are_seen_however_their_bytes_arrive() {
    let bytes = [
        frame(4, 0, &[]),
        frame(1, 0x4, &[7; 20]),
        frame(0, 0x1, &[9; 300]),
        frame(1, 0, &[1]),
        frame(9, 0x4, &[2; 3]),
        frame(6, 0, &[0; 8]),
        frame(3, 0, &[0; 4]),
    ]
    .concat();
    let expected = [
        (FrameKind::Control, 0, false),
        (FrameKind::Headers, 20, true),
        (FrameKind::Data, 300, true),
        (FrameKind::Headers, 1, false),
        (FrameKind::Continuation, 3, true),
        (FrameKind::Control, 8, false),
        (FrameKind::Reset, 4, false),
    ];
    for step in [1, 2, 5, 8, 9, 10, 64, bytes.len()] {
        let mut scanner = Scanner::default();
        let mut seen = Vec::new();
        for part in bytes.chunks(step) {
            scanner.scan(part, |it| seen.push((it.kind, it.length, it.ends)));
        }
        assert_eq!(seen, expected, "in steps of {step}");
        assert!(!scanner.is_midway());
    }
}

#[test]
fn what_has_begun_and_is_not_complete_is_midway() {
    let whole = frame(6, 0, &[0; 8]);
    let open = frame(1, 0, &[0; 8]);
    for (bytes, midway) in [
        (&whole[..0], false),
        (&whole[..1], true),
        (&whole[..9], true),
        (&whole[..16], true),
        (&whole[..], false),
        (&open[..], true),
    ] {
        let mut scanner = Scanner::default();
        scanner.scan(bytes, |_| {});
        assert_eq!(scanner.is_midway(), midway, "{bytes:?}");
    }
}

const CALL: Frame = Frame {
    kind: FrameKind::Headers,
    length: 40,
    ends: true,
};

const PING: Frame = Frame {
    kind: FrameKind::Control,
    length: 8,
    ends: false,
};

#[test]
fn frames_without_calls_are_limited() {
    let mut frames = ControlFrames::new(10, 4);
    let at = Duration::from_secs;
    for _ in 0..100 {
        assert!(!frames.note(PING, || at(0)));
    }
    assert!(frames.note(PING, || at(0)));
    // One second later the bucket has ten more.
    for _ in 0..10 {
        assert!(!frames.note(PING, || at(1)));
    }
    assert!(frames.note(PING, || at(1)));
}

#[test]
fn calls_bring_some_frames_along() {
    let mut frames = ControlFrames::new(1, 4);
    let message = Frame {
        kind: FrameKind::Data,
        length: 90,
        ends: true,
    };
    for _ in 0..10_000 {
        for frame in [CALL, message, PING, PING, PING] {
            assert!(!frames.note(frame, || Duration::ZERO));
        }
    }
}

#[test]
fn crumbs_of_messages_are_limited_and_large_parts_are_not() {
    let part = |length| Frame {
        kind: FrameKind::Data,
        length,
        ends: false,
    };
    let mut frames = ControlFrames::new(10, 4);
    for _ in 0..10_000 {
        assert!(!frames.note(part(16_384), || Duration::ZERO));
    }
    let crumbs = (0..10_000).take_while(|_| !frames.note(part(1), || Duration::ZERO));
    assert_eq!(crumbs.count(), 100);
}

#[test]
fn calls_may_be_given_up_as_fast_as_they_can_be_in_progress_and_no_faster() {
    let reset = Frame {
        kind: FrameKind::Reset,
        length: 4,
        ends: false,
    };
    let mut frames = ControlFrames::new(1_000, 4);
    let mut given_up = |seconds| {
        let mut both = || {
            let now = || Duration::from_secs(seconds);
            frames.note(CALL, now) || frames.note(reset, now)
        };
        (0..1_000).take_while(|_| !both()).count()
    };
    assert_eq!(given_up(0), 40);
    assert_eq!(given_up(1), 4);
    assert_eq!(given_up(3), 8);
    assert_eq!(given_up(1_000), 40);
}
