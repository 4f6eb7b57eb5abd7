//! A recording as JSON: the fields of [`Recording`], and `words`, which the page shows.

use std::io::{self, Write};

use serde::Serialize;

use crate::recording::Recording;
use crate::report::words::Words;

/// Its file in the folder of a report.
pub const NAME: &str = "recording.json";

/// A recording with its words. Readers ignore the words.
#[derive(Serialize)]
pub(super) struct WithWords<'a> {
    #[serde(flatten)]
    recording: &'a Recording,
    words: Words,
}

impl<'a> WithWords<'a> {
    pub(super) fn of(recording: &'a Recording) -> Self {
        let words = Words::of(recording);
        Self { recording, words }
    }
}

/// Writes it, ending with a line break.
pub fn write(out: &mut impl Write, recording: &Recording) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &WithWords::of(recording))?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::played;

    #[test]
    fn a_recording_is_read_back_as_it_was_written() {
        for recording in [&*played(), &Recording::default()] {
            let mut out = Vec::new();
            write(&mut out, recording).unwrap();
            let read: Recording = serde_json::from_slice(&out).unwrap();
            assert_eq!(read, *recording);
        }
    }
}
