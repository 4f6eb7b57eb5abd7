//! Work for whoever looks at a server: pages, metrics, statuses. It may take long, and no client may wait for it.
//!
//! It is done on a thread of its own, so it holds up no worker that serves calls. And it gives way about every half a
//! millisecond: on a machine with one core that thread stands in the way of all others, for as long as the system lets
//! it run. It does not give way more often, for who does gets hardly any time beside a worker that is always busy.

use std::borrow::Cow;
use std::{fmt, io, thread};

/// How much is written before others go first, in bytes.
const WRITTEN: usize = 64 * 1024;

/// How much is only read before others go first, in bytes.
const READ: usize = 256 * 1024;

/// Lets other threads of this core go first, if any of them has something to do.
pub fn give_way() {
    thread::yield_now();
}

/// Gives way after every so many steps.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    every: usize,
    done: usize,
}

impl Steps {
    /// None is done yet.
    pub const fn new(every: usize) -> Self {
        Self { every, done: 0 }
    }

    /// One more is done.
    pub fn step(&mut self) {
        self.step_by(1);
    }

    /// So many more are done.
    pub fn step_by(&mut self, steps: usize) {
        self.done += steps;
        if self.done >= self.every {
            self.done = 0;
            give_way();
        }
    }
}

/// Text or bytes that are written, giving way now and then.
#[derive(Debug)]
pub struct UnhurriedWriter<T> {
    into: T,
    steps: Steps,
}

impl<T: Default> Default for UnhurriedWriter<T> {
    fn default() -> Self {
        let steps = Steps::new(WRITTEN);
        let into = T::default();
        Self { into, steps }
    }
}

impl<T> UnhurriedWriter<T> {
    /// What was written.
    pub fn into_inner(self) -> T {
        self.into
    }
}

impl fmt::Write for UnhurriedWriter<String> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.into.push_str(text);
        self.steps.step_by(text.len());
        Ok(())
    }
}

impl io::Write for UnhurriedWriter<Vec<u8>> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.into.extend_from_slice(bytes);
        self.steps.step_by(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes what cannot be seen visible ([`doorward_session::visible`]), a slice after the other. A slice begins
/// with a character that everybody can see, whatever is before it, so that slices change nothing.
pub fn visible(text: String, make: for<'a> fn(&'a str) -> Cow<'a, str>) -> String {
    let mut made: Option<String> = None;
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let bytes = rest.bytes().enumerate().skip(READ);
        let end = bytes
            .into_iter()
            .find(|(_, byte)| matches!(byte, b' '..=b'~'))
            .map_or(rest.len(), |(at, _)| at);
        let (slice, after) = rest.split_at(end);
        let before = text.len() - rest.len();
        match (make(slice), &mut made) {
            (Cow::Borrowed(slice), Some(made)) => made.push_str(slice),
            (Cow::Borrowed(_), None) => {}
            (Cow::Owned(slice), Some(made)) => made.push_str(&slice),
            (Cow::Owned(slice), none) => {
                // `before` is where a slice began.
                *none = Some(text.split_at(before).0.to_owned() + &slice);
            }
        }
        rest = after;
        give_way();
    }
    made.unwrap_or(text)
}

#[cfg(test)]
mod tests;
