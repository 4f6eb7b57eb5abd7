//! The folder of a report: its files, and the care that no other file is lost.
//!
//! The folder must be empty, or hold a recording: then it is that of a former report, whose files are replaced.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::recording::Recording;
use crate::report::page;
use crate::report::words::WithWords;

/// The recording as JSON: its fields and `words`, which the page shows.
pub const RECORDING: &str = "recording.json";

/// The page.
const PAGE: &str = "report.html";

/// Prepares a folder for a report, so that problems show before a long run. Creates the folder if it is absent. A
/// former report stays until [`write_all`] replaces it.
pub fn claim(folder: &Path) -> io::Result<()> {
    let entries = fs::create_dir_all(folder).and_then(|()| fs::read_dir(folder));
    let entries = entries.map_err(|cause| unwritable(folder, &cause));
    match entries?.next() {
        Some(Ok(entry)) if !folder.join(RECORDING).exists() => {
            let (folder, found) = (folder.display(), entry.file_name());
            let found = format!("(there is {})", found.display());
            let message = format!("{folder} is not empty and holds no former report {found}");
            let advice = "name another folder, or empty this one";
            Err(io::Error::other(format!("{message}; {advice}")))
        }
        _ => Ok(()),
    }
}

/// Writes a report into a folder, and returns the page. Creates the folder if it is absent.
pub fn write_all(recording: &Recording, folder: &Path) -> io::Result<PathBuf> {
    claim(folder)?;
    // The recording comes first: with it the folder is that of a report, whatever fails later.
    write_file(&folder.join(RECORDING), |mut out| {
        serde_json::to_writer(&mut out, &WithWords::of(recording))?;
        writeln!(out)
    })?;
    let page = folder.join(PAGE);
    write_file(&page, |out| page::write(out, recording))?;
    Ok(page)
}

fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let written = File::create(path).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    });
    written.map_err(|cause| unwritable(path, &cause))
}

/// Names the file or folder in an error.
fn unwritable(path: &Path, cause: &io::Error) -> io::Error {
    io::Error::other(format!("cannot write {}: {cause}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::played;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_report_is_a_folder_of_files() {
        let folder = tempfile::tempdir().unwrap();
        let written = write_all(&played(), &folder.path().join("a/b")).unwrap();
        assert_eq!(written, folder.path().join("a/b/report.html"));
        let expected = ["recording.json", "report.html"];
        assert_eq!(names(&folder.path().join("a/b")), expected);
    }

    #[test]
    fn a_former_report_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let page = write_all(&played(), folder.path()).unwrap();
        let before = fs::read(&page).unwrap();
        fs::write(folder.path().join("notes.txt"), "mine").unwrap();
        write_all(&Recording::default(), folder.path()).unwrap();
        assert_ne!(fs::read(&page).unwrap(), before);
        let notes = fs::read_to_string(folder.path().join("notes.txt"));
        assert_eq!(notes.unwrap(), "mine");
    }

    #[test]
    fn a_folder_that_holds_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "mine").unwrap();
        let error = write_all(&played(), folder.path()).unwrap_err();
        assert!(error.to_string().contains("there is thesis.tex"), "{error}");
        assert_eq!(names(folder.path()), ["thesis.tex"]);
    }

    #[test]
    fn a_folder_is_claimed_before_anything_is_written_and_a_former_report_stays() {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("new");
        claim(&report).unwrap();
        claim(&report).unwrap();
        assert!(names(&report).is_empty());
        let page = write_all(&played(), &report).unwrap();
        let before = names(&report);
        claim(&report).unwrap();
        assert_eq!(names(&report), before);
        let error = claim(&page).unwrap_err().to_string();
        assert!(error.contains("cannot write"), "{error}");
    }

    #[test]
    fn a_recording_is_read_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        for recording in [&*played(), &Recording::default()] {
            write_all(recording, folder.path()).unwrap();
            let written = fs::read(folder.path().join(RECORDING)).unwrap();
            let read: Recording = serde_json::from_slice(&written).unwrap();
            assert_eq!(read, *recording);
        }
    }
}
