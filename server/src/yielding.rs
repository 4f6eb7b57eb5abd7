//! Slow work for observers of a server: pages, metrics, statuses. No client may wait for it.
//!
//! The work runs on a thread of its own, so it blocks no worker that serves calls. It also yields about every half a
//! millisecond: on a machine with one core, this thread blocks all others for as long as the system lets it run. It
//! does not yield more often, because such a thread gets hardly any time beside a busy worker.

use std::borrow::Cow;
use std::{io, thread};

/// Bytes written between two yields.
const WRITTEN: usize = 64 * 1024;

/// Bytes only read between two yields.
const READ: usize = 256 * 1024;

/// A counter that yields after every `EVERY` steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct YieldEvery<const EVERY: usize>(usize);

impl<const EVERY: usize> YieldEvery<EVERY> {
    /// Counts one step.
    pub fn step(&mut self) {
        self.step_by(1);
    }

    /// Counts `steps` steps.
    pub fn step_by(&mut self, steps: usize) {
        self.0 += steps;
        if self.0 >= EVERY {
            self.0 = 0;
            thread::yield_now();
        }
    }
}

/// A writer of bytes that yields now and then.
#[derive(Debug, Default)]
pub struct YieldingWriter {
    /// The written bytes.
    pub into: Vec<u8>,
    steps: YieldEvery<WRITTEN>,
}

impl io::Write for YieldingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.into.extend_from_slice(bytes);
        self.steps.step_by(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes invisible characters visible ([`doorward_session::visible`]), one slice after the other. Each slice begins
/// with a character that is visible in any context, so the slices do not change the result.
pub fn visible(text: &str, make: for<'a> fn(&'a str) -> Cow<'a, str>) -> String {
    let (mut made, mut rest) = (String::with_capacity(text.len()), text);
    while !rest.is_empty() {
        let mut ends = rest.bytes().enumerate().skip(READ);
        let end = ends.find(|(_, byte)| matches!(byte, b' '..=b'~'));
        let (slice, after) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        made += &make(slice);
        rest = after;
        thread::yield_now();
    }
    made
}

#[cfg(test)]
mod tests;
