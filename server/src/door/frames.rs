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
    /// Gives a call up.
    Reset,
    /// All else that carries no call.
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
            3 => FrameKind::Reset,
            9 => FrameKind::Continuation,
            _ => FrameKind::Control,
        };
        let ends = match kind {
            FrameKind::Data | FrameKind::Reset | FrameKind::Control => flags & END_STREAM != 0,
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

/// Limits the frames of a connection that carry no call: a token bucket that calls fill, too, since each comes
/// with some (windows, pings that measure).
///
/// Calls that are given up have a bucket of their own. If the server stands still, callers time out, and their resets
/// arrive together with their calls, just as in an attack (CVE-2023-44487). The server cannot tell from the time that
/// it reads them. So it allows as many each second as calls may be in progress, and ten seconds of that at once.
#[derive(Clone, Debug)]
pub struct ControlFrames {
    frames: Bucket,
    resets: Bucket,
}

impl ControlFrames {
    /// Frames that one call may bring along.
    const PER_CALL: u32 = 8;
    /// A part of a message that is smaller, and not its end, might as well have come with the next one.
    const DATA_MIN: u32 = 256;

    /// Full buckets. `calls_max` may be in progress.
    pub fn new(per_second: u32, calls_max: u32) -> Self {
        Self {
            frames: Bucket::new(per_second),
            resets: Bucket::new(calls_max),
        }
    }

    /// Number of resets that may come at once.
    pub const fn resets_at_once(calls_max: u32) -> u32 {
        calls_max.saturating_mul(Bucket::BURST_SECS)
    }

    /// A frame came. Returns whether it was one too many. `now` is since some start, and asked for only if
    /// it matters.
    pub fn note(&mut self, frame: Frame, now: impl FnOnce() -> Duration) -> bool {
        match frame.kind {
            FrameKind::Headers => {
                self.frames.add(Self::PER_CALL);
                false
            }
            FrameKind::Data if frame.ends || frame.length >= Self::DATA_MIN => false,
            FrameKind::Data | FrameKind::Continuation | FrameKind::Control => {
                self.frames.is_one_too_many(now)
            }
            FrameKind::Reset => self.resets.is_one_too_many(now),
        }
    }
}

/// A token bucket of ten seconds. It fills only once it is empty, so the clock is read rarely.
#[derive(Clone, Debug)]
struct Bucket {
    per_second: u32,
    tokens: u32,
    filled_at: Duration,
}

impl Bucket {
    /// Seconds that fill an empty bucket.
    const BURST_SECS: u32 = 10;

    /// A full one.
    fn new(per_second: u32) -> Self {
        Self {
            per_second,
            tokens: per_second.saturating_mul(Self::BURST_SECS),
            filled_at: Duration::ZERO,
        }
    }

    fn add(&mut self, more: u32) {
        let max = self.per_second.saturating_mul(Self::BURST_SECS);
        self.tokens = self.tokens.saturating_add(more).min(max);
    }

    /// Takes a token. Returns whether there is none.
    fn is_one_too_many(&mut self, now: impl FnOnce() -> Duration) -> bool {
        if self.tokens == 0 {
            let now = now();
            let since = now.saturating_sub(self.filled_at).as_secs_f64();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not negative, and cut at the maximum by the cast"
            )]
            let more = (since * f64::from(self.per_second)) as u32;
            self.add(more);
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
mod tests;
