//! A whole recording as JSON, and back. Field names are those of [`Recording`]; see there for what
//! each means.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use crate::recording::Recording;

/// What it is called in the folder of a report.
pub(super) const NAME: &str = "recording.json";

/// Why there is no recording to be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be opened.
    #[error("cannot open {path}; give the folder of a report, or its {NAME}")]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else.
    #[error("{path} holds no recording; give a {NAME} that this version wrote")]
    Parse {
        /// Which.
        path: PathBuf,
        /// Where, and what was expected.
        source: serde_json::Error,
    },
}

/// Writes it, ending with a line break.
pub fn write(out: &mut impl Write, recording: &Recording) -> io::Result<()> {
    serde_json::to_writer(&mut *out, recording)?;
    writeln!(out)
}

/// Reads what was written, from the file or from the folder of a report.
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
    use crate::report::plausible;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        for recording in [plausible::small(), plausible::day(), Recording::default()] {
            let mut out = Vec::new();
            write(&mut out, &recording).unwrap();
            std::fs::write(folder.path().join(NAME), &out).unwrap();
            assert_eq!(read(folder.path()).unwrap(), recording);
            assert_eq!(read(&folder.path().join(NAME)).unwrap(), recording);
        }
    }

    #[test]
    fn what_cannot_be_read_says_what_to_give() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(&folder.path().join("none")).unwrap_err();
        assert!(error.to_string().contains("give the folder of a report"));
        std::fs::write(folder.path().join(NAME), "{}").unwrap();
        let error = read(folder.path()).unwrap_err();
        assert!(error.to_string().contains("holds no recording"));
    }
}
