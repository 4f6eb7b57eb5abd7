//! A reader of HTTP/2 frame headers: it counts the frames, and notices a frame that is stuck half-way.
//!
//! The HTTP/2 library answers every frame, and does not count frames. This module reads only frame headers (RFC 9113,
//! section 4.1), never payloads.

use std::time::Duration;

use doorward_limits::{Limiter, Moment, TokenBucket};

use crate::rate::{bucket, moment, units};

/// Length of a frame header, in bytes.
const HEADER: usize = 9;

/// Type of a frame (RFC 9113, section 6), as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Carries a part of a message.
    Data,
    /// Begins a call, or ends it.
    Headers,
    /// Continues the headers of a call.
    Continuation,
    /// Resets a call.
    Reset,
    /// Any other frame that carries no call.
    Control,
}

/// A frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Type of the frame.
    pub kind: FrameKind,
    /// Length of the payload, in bytes.
    pub length: u32,
    /// Whether the frame ends its stream (a message is complete), or its header block if it carries headers.
    pub ends: bool,
}

/// Position of a byte stream in its frames.
#[derive(Clone, Debug, Default)]
pub struct Scanner {
    header: [u8; HEADER],
    header_length: usize,
    payload_left: usize,
    /// Whether a header block is incomplete.
    block_open: bool,
}

impl Scanner {
    /// Returns the position before so many bytes, and a frame after them.
    pub fn before(bytes: usize) -> Self {
        Self {
            payload_left: bytes,
            ..Self::default()
        }
    }

    /// Reads the next bytes, and reports each frame whose header is complete.
    pub fn scan(&mut self, mut bytes: &[u8], mut frame: impl FnMut(Frame)) {
        while !bytes.is_empty() {
            let skipped = self.payload_left.min(bytes.len());
            self.payload_left -= skipped;
            bytes = bytes.get(skipped..).unwrap_or_default();
            let taken = (HEADER - self.header_length).min(bytes.len());
            let (head, rest) = bytes.split_at(taken);
            let place = self.header_length..self.header_length + taken;
            if let Some(place) = self.header.get_mut(place) {
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

    /// Returns whether a frame or a header block is incomplete.
    pub fn is_midway(&self) -> bool {
        self.header_length > 0 || self.payload_left > 0 || self.block_open
    }
}

/// A limit on the frames of a connection that carry no call. It is a token bucket that calls fill too, because each
/// call brings some such frames (window updates, pings that measure the connection).
///
/// Resets have a bucket of their own. If the server stalls, callers time out, and their resets arrive together with
/// their calls, just as in an attack (CVE-2023-44487). The server cannot tell both apart by the time when it reads
/// them. So each second allows as many resets as calls may be in progress, and a burst of ten seconds of that.
#[derive(Clone, Debug)]
pub struct ControlFrames {
    frames: Bucket,
    resets: Bucket,
}

impl ControlFrames {
    /// Frames that one call may bring along.
    const PER_CALL: u64 = 8;
    /// Smallest useful data frame, in bytes. A smaller one counts as a control frame, unless it ends the message: its
    /// bytes could have come with the next frame.
    const DATA_MIN: u32 = 256;

    /// Fills both buckets. At most `calls_max` calls are in progress.
    pub fn new(per_second: u32, calls_max: u32) -> Self {
        Self {
            frames: Bucket::new(per_second),
            resets: Bucket::new(calls_max),
        }
    }

    /// Returns how many resets may come at once.
    pub const fn resets_at_once(calls_max: u32) -> u32 {
        calls_max.saturating_mul(Bucket::BURST_SECS)
    }

    /// Counts a frame. Returns whether it exceeds the limit. `now` is a time since any fixed start, and is read only
    /// when needed.
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

/// A token bucket that holds ten seconds of tokens. It refills only when it is empty, so the clock is rarely read.
#[derive(Clone, Debug)]
struct Bucket {
    tokens: Limiter<TokenBucket>,
    filled_at: Moment,
}

impl Bucket {
    /// Seconds that fill an empty bucket.
    const BURST_SECS: u32 = 10;

    /// Makes a full bucket.
    fn new(per_second: u32) -> Self {
        Self {
            tokens: Limiter::new(bucket(units(per_second.into()), Self::BURST_SECS)),
            filled_at: Moment::ORIGIN,
        }
    }

    fn add(&mut self, more: u64) {
        self.tokens.refund(more, self.filled_at);
    }

    /// Takes a token. Returns whether the bucket is empty.
    fn is_one_too_many(&mut self, now: impl FnOnce() -> Duration) -> bool {
        if self.tokens.take(1, self.filled_at).is_allowed() {
            return false;
        }
        self.filled_at = moment(now());
        !self.tokens.take(1, self.filled_at).is_allowed()
    }
}

#[cfg(test)]
mod tests;
