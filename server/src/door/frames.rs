//! HTTP/2 frames as they pass by: which come, how many, and whether one is stuck half-way.
//!
//! The HTTP/2 library answers every frame, and does not count them. Here only headers of frames are
//! looked at (RFC 9113, section 4.1), never what is in them.

use std::time::Duration;

/// The length of a frame's header.
const HEADER: usize = 9;

/// What a frame is for (RFC 9113, section 6), as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A part of a message.
    Data,
    /// Begins a call, or ends it.
    Headers,
    /// The rest of such a header.
    Continuation,
    /// All that carries no call.
    Control,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is for.
    pub kind: FrameKind,
    /// How long it is without its header.
    pub length: u32,
    /// Whether it ends its stream (a message is complete) or its block of headers, as its kind has it.
    pub ends: bool,
}

/// Where in the frames a stream of bytes is.
#[derive(Clone, Debug, Default)]
pub struct Scanner {
    header: [u8; HEADER],
    header_length: usize,
    payload_left: usize,
    /// Headers have begun, and are not complete.
    block_open: bool,
}

impl Scanner {
    /// Looks at the next bytes, and tells of each frame whose header is complete.
    pub fn scan(&mut self, mut bytes: &[u8], mut frame: impl FnMut(Frame)) {
        while !bytes.is_empty() {
            let skipped = self.payload_left.min(bytes.len());
            self.payload_left -= skipped;
            bytes = bytes.get(skipped..).unwrap_or_default();
            let taken = (HEADER - self.header_length).min(bytes.len());
            let (head, rest) = bytes.split_at(taken);
            if let Some(place) = self
                .header
                .get_mut(self.header_length..self.header_length + taken)
            {
                place.copy_from_slice(head);
            }
            bytes = rest;
            self.header_length += taken;
            if self.header_length == HEADER {
                self.header_length = 0;
                frame(self.begin());
            }
        }
    }

    fn begin(&mut self) -> Frame {
        const END_STREAM: u8 = 0x1;
        const END_HEADERS: u8 = 0x4;
        let [high, middle, low, kind, flags, ..] = self.header;
        let length = u32::from_be_bytes([0, high, middle, low]);
        self.payload_left = length as usize;
        let kind = match kind {
            0 => FrameKind::Data,
            1 => FrameKind::Headers,
            9 => FrameKind::Continuation,
            _ => FrameKind::Control,
        };
        let ends = match kind {
            FrameKind::Data | FrameKind::Control => flags & END_STREAM != 0,
            FrameKind::Headers | FrameKind::Continuation => {
                self.block_open = flags & END_HEADERS == 0;
                !self.block_open
            }
        };
        Frame { kind, length, ends }
    }

    /// Whether something has begun and is not complete: a frame, or headers in several of them.
    pub fn is_midway(&self) -> bool {
        self.header_length > 0 || self.payload_left > 0 || self.block_open
    }
}

/// How many frames of a connection may carry no call: a token bucket that calls fill, too, since each comes
/// with some (windows, pings that measure, resets).
#[derive(Clone, Debug)]
pub struct ControlFrames {
    per_second: u32,
    tokens: u32,
    filled_at: Duration,
}

impl ControlFrames {
    /// Seconds that fill an empty bucket.
    const BURST_SECS: u32 = 10;
    /// Frames that one call may bring along.
    const PER_CALL: u32 = 8;
    /// A part of a message that is smaller, and not its end, might as well have come with the next one.
    const DATA_MIN: u32 = 256;

    /// A full bucket.
    pub fn new(per_second: u32) -> Self {
        Self {
            per_second,
            tokens: per_second.saturating_mul(Self::BURST_SECS),
            filled_at: Duration::ZERO,
        }
    }

    /// A frame came. Returns whether it was one too many. `now` is since some start, and asked for only if
    /// it matters.
    pub fn note(&mut self, frame: Frame, now: impl FnOnce() -> Duration) -> bool {
        let max = self.per_second.saturating_mul(Self::BURST_SECS);
        match frame.kind {
            FrameKind::Headers => {
                self.tokens = self.tokens.saturating_add(Self::PER_CALL).min(max);
                return false;
            }
            FrameKind::Data if frame.ends || frame.length >= Self::DATA_MIN => return false,
            FrameKind::Data | FrameKind::Continuation | FrameKind::Control => {}
        }
        if self.tokens == 0 {
            let now = now();
            let since = now.saturating_sub(self.filled_at).as_secs_f64();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not negative, and cut at the maximum by the cast"
            )]
            let more = (since * f64::from(self.per_second)) as u32;
            self.tokens = more.min(max);
            self.filled_at = now;
        }
        if self.tokens == 0 {
            return true;
        }
        self.tokens -= 1;
        false
    }
}

#[cfg(test)]
mod tests {
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
        ]
        .concat();
        let expected = [
            (FrameKind::Control, 0, false),
            (FrameKind::Headers, 20, true),
            (FrameKind::Data, 300, true),
            (FrameKind::Headers, 1, false),
            (FrameKind::Continuation, 3, true),
            (FrameKind::Control, 8, false),
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

    const PING: Frame = Frame {
        kind: FrameKind::Control,
        length: 8,
        ends: false,
    };

    #[test]
    fn frames_without_calls_are_limited() {
        let mut frames = ControlFrames::new(10);
        let at = Duration::from_secs;
        for _ in 0..100 {
            assert!(!frames.note(PING, || at(0)));
        }
        assert!(frames.note(PING, || at(0)));
        // A second later there are ten more.
        for _ in 0..10 {
            assert!(!frames.note(PING, || at(1)));
        }
        assert!(frames.note(PING, || at(1)));
    }

    #[test]
    fn calls_bring_some_frames_along() {
        let mut frames = ControlFrames::new(1);
        let call = Frame {
            kind: FrameKind::Headers,
            length: 40,
            ends: true,
        };
        let message = Frame {
            kind: FrameKind::Data,
            length: 90,
            ends: true,
        };
        for _ in 0..10_000 {
            for frame in [call, message, PING, PING, PING] {
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
        let mut frames = ControlFrames::new(10);
        for _ in 0..10_000 {
            assert!(!frames.note(part(16_384), || Duration::ZERO));
        }
        let crumbs = (0..10_000).take_while(|_| !frames.note(part(1), || Duration::ZERO));
        assert_eq!(crumbs.count(), 100);
    }
}
