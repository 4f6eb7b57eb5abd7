//! A recording as JSON, and back: the fields of [`Recording`], and `words`, which the page shows.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::recording::Recording;
use crate::report::words::Words;

/// Its file in the folder of a report.
pub(super) const NAME: &str = "recording.json";

/// Reason why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened.
    #[error("cannot open {path}; give the folder of a report, or its {NAME}")]
    Open {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{path} holds no recording; give a {NAME} that this version wrote")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Place and expectation.
        source: serde_json::Error,
    },
}

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

/// Reads a recording from its file or from the folder of a report.
pub fn read(path: &Path) -> Result<Recording, ReadError> {
    let path = match path.is_dir() {
        true => path.join(NAME),
        false => path.to_owned(),
    };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(source) => return Err(ReadError::Open { path, source }),
    };
    serde_json::from_reader(BufReader::new(file))
        .map_err(|source| ReadError::Parse { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::played;

    #[test]
    fn a_recording_is_read_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        for recording in [&*played(), &Recording::default()] {
            let mut out = Vec::new();
            write(&mut out, recording).unwrap();
            std::fs::write(folder.path().join(NAME), &out).unwrap();
            assert_eq!(read(folder.path()).unwrap(), *recording);
            assert_eq!(read(&folder.path().join(NAME)).unwrap(), *recording);
        }
    }

    #[test]
    fn a_file_without_a_recording_is_refused_with_advice() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(&folder.path().join("none")).unwrap_err();
        assert!(error.to_string().contains("give the folder of a report"));
        std::fs::write(folder.path().join(NAME), "{}").unwrap();
        let error = read(folder.path()).unwrap_err();
        assert!(error.to_string().contains("holds no recording"));
    }
}
