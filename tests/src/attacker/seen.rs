//! Frames that a server sent on a connection, as far as an attacker needs them: counts, and windows.
//!
//! Bytes arrive in pieces of any size. Most payloads are ignored.

use super::frames::{
    DATA, END_STREAM, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, PING, RST_STREAM, SETTINGS,
    WINDOW_UPDATE,
};

/// Default window of a connection or a stream.
const DEFAULT_WINDOW: i64 = 65_535;

/// Longest payload that is read.
const LOOKED_AT_MAX: usize = 1_024;

/// Everything that has arrived so far.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Number of frames with headers or trailers.
    pub headers: u64,
    /// Number of frames with data.
    pub data: u64,
    /// Number of streams that the server reset.
    pub resets: u64,
    /// Number of streams that the server ended, with or without an answer.
    pub ended: u64,
    /// Code with which the server announced the end of the connection, if it did.
    pub goaway: Option<u32>,
    /// Number of answers to pings and settings.
    pub acknowledged: u64,
    /// Settings of the server, which hold for bytes after their acknowledgement.
    pub settings: u64,
    /// Amount that may be sent on the connection.
    pub connection_window: i64,
    /// Amount that may be sent on the watched stream.
    pub stream_window: i64,
    /// The watched stream.
    pub stream: u32,
    head: Vec<u8>,
    payload: Vec<u8>,
    left: usize,
    initial_window: i64,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            headers: 0,
            data: 0,
            resets: 0,
            ended: 0,
            goaway: None,
            acknowledged: 0,
            settings: 0,
            connection_window: DEFAULT_WINDOW,
            stream_window: DEFAULT_WINDOW,
            stream: 0,
            head: Vec::new(),
            payload: Vec::new(),
            left: 0,
            initial_window: DEFAULT_WINDOW,
        }
    }
}

impl Seen {
    /// Watches another stream.
    pub fn look_at(&mut self, stream: u32) {
        self.stream = stream;
        self.stream_window = self.initial_window;
    }

    /// Reads bytes that have arrived.
    pub fn take(&mut self, mut bytes: &[u8]) {
        loop {
            let wanted = 9 - self.head.len();
            if wanted > 0 {
                let (head, rest) = bytes.split_at(wanted.min(bytes.len()));
                self.head.extend(head);
                bytes = rest;
                let [a, b, c, ..] = self.head[..] else { return };
                if self.head.len() < 9 {
                    return;
                }
                self.left = u32::from_be_bytes([0, a, b, c]) as usize;
            }
            let (payload, rest) = bytes.split_at(self.left.min(bytes.len()));
            self.left -= payload.len();
            let kept = LOOKED_AT_MAX.saturating_sub(self.payload.len());
            self.payload.extend(payload.iter().take(kept));
            bytes = rest;
            if self.left > 0 {
                return;
            }
            self.count();
            self.head.clear();
            self.payload.clear();
        }
    }

    /// Counts a complete frame.
    fn count(&mut self) {
        let [_, _, _, kind, flags, a, b, c, d] = self.head[..] else {
            return;
        };
        let stream = u32::from_be_bytes([a, b, c, d]);
        let ends = u64::from(flags & END_STREAM != 0);
        match kind {
            HEADERS => {
                self.headers += 1;
                self.ended += ends;
            }
            DATA => {
                self.data += 1;
                self.ended += ends;
            }
            RST_STREAM => {
                self.resets += 1;
                self.ended += 1;
            }
            GOAWAY => self.goaway = Some(self.number(4)),
            PING => self.acknowledged += ends,
            SETTINGS if ends == 1 => self.acknowledged += 1,
            SETTINGS => self.count_settings(),
            WINDOW_UPDATE => {
                let by = i64::from(self.number(0));
                if stream == 0 {
                    self.connection_window += by;
                } else if stream == self.stream {
                    self.stream_window += by;
                }
            }
            _ => {}
        }
    }

    fn count_settings(&mut self) {
        self.settings += 1;
        for setting in self.payload.chunks_exact(6) {
            if let [a, b, c, d, e, f] = *setting
                && u16::from_be_bytes([a, b]) == INITIAL_WINDOW_SIZE
            {
                let window = i64::from(u32::from_be_bytes([c, d, e, f]));
                self.stream_window += window - self.initial_window;
                self.initial_window = window;
            }
        }
    }

    /// Returns four bytes of the payload as a number.
    fn number(&self, at: usize) -> u32 {
        match self.payload.get(at..at + 4) {
            Some(&[a, b, c, d]) => u32::from_be_bytes([a, b, c, d]),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::{frame, settings, window_update};
    use super::*;

    #[test]
    fn frames_are_counted_however_they_are_cut_into_pieces() {
        let mut bytes = Vec::new();
        settings(&mut bytes, &[(INITIAL_WINDOW_SIZE, 1_000_000), (3, 64)]);
        frame(&mut bytes, SETTINGS, END_STREAM, 0, &[]);
        window_update(&mut bytes, 0, 5);
        window_update(&mut bytes, 7, 11);
        window_update(&mut bytes, 9, 13);
        frame(&mut bytes, DATA, END_STREAM, 7, &[1; 5_000]);
        frame(&mut bytes, RST_STREAM, 0, 9, &[0; 4]);
        frame(&mut bytes, GOAWAY, 0, 0, &[0, 0, 0, 9, 0, 0, 0, 11, b'x']);
        for size in [1, 2, 8, 9, 10, 1_000, 100_000] {
            let mut seen = Seen::default();
            seen.look_at(7);
            for piece in bytes.chunks(size) {
                seen.take(piece);
            }
            assert_eq!(seen.connection_window, DEFAULT_WINDOW + 5, "{size}");
            assert_eq!(seen.stream_window, 1_000_011, "{size}");
            assert_eq!((seen.data, seen.ended, seen.resets), (1, 2, 1), "{size}");
            assert_eq!(seen.goaway, Some(11), "{size}");
        }
    }
}
