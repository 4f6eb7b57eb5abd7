//! The folder of a report: its files, and the care that no other file is lost.
//!
//! A list in the folder names the files of the report. With a list, a new report replaces these files and no others.
//! Without one, the folder must be empty.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::recording::Recording;
use crate::report::{csv, json, page, summary};
use doorward_pages::terminal::palette::Palette;

/// File that names the files of a report, a line each.
const LIST: &str = ".doorward-report";

/// The page.
const PAGE: &str = "report.html";

/// Reason why a report cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The folder holds something else than a report.
    #[error(
        "{folder} is not empty and holds no former report (there is {found}); \
         name another folder, or empty this one"
    )]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// A file in it.
        found: String,
    },
    /// The path is a file.
    #[error("{path} is a file, but a report is a folder; name another path")]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot {action} {path}; check permissions and free space")]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl ReportError {
    fn io(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| {
            let path = path.to_owned();
            Self::Io {
                action,
                path,
                source,
            }
        }
    }
}

/// Function that writes the content of a file.
type WriteContent<'a> = dyn Fn(&mut dyn Write) -> io::Result<()> + 'a;

/// Prepares a folder for a report, so that problems show before a long run. Creates the folder if it is absent, and
/// marks it as a report. A former report stays until [`write_all`] replaces it.
pub fn claim(folder: &Path) -> Result<(), ReportError> {
    if folder.is_file() {
        let path = folder.to_owned();
        return Err(ReportError::NotAFolder { path });
    }
    fs::create_dir_all(folder).map_err(ReportError::io("write", folder))?;
    let list = folder.join(LIST);
    if !list.exists() {
        check_empty(folder)?;
    }
    let mut options = File::options();
    let opened = options.append(true).create(true).open(&list);
    opened.map(drop).map_err(ReportError::io("write", &list))
}

/// Writes a report into a folder, and returns the page. Creates the folder if it is absent.
pub fn write_all(recording: &Recording, folder: &Path) -> Result<PathBuf, ReportError> {
    claim(folder)?;
    clear(folder)?;
    let add = |name: &str, write: &WriteContent<'_>| add(folder, name, write);
    add(PAGE, &|out| {
        page::write(out, &[(&recording.scenario, recording)])
    })?;
    add(json::NAME, &|mut out| json::write(&mut out, recording))?;
    add("summary.txt", &|mut out| {
        summary::write(&mut out, recording, Palette { on: false })
    })?;
    add("happened.csv", &|out| {
        csv::write_marks(out, &recording.marks)
    })?;
    for (resource, slug) in recording.resources.iter().zip(slugs(recording)) {
        let add = |part: &str, write: &WriteContent<'_>| add(&format!("{slug}{part}.csv"), write);
        add("", &|out| csv::write_samples(out, resource))?;
        add(".nodes", &|out| {
            csv::write_nodes(out, resource, &recording.nodes)
        })?;
        add(".clients", &|out| csv::write_clients(out, resource))?;
        add(".shortages", &|out| {
            csv::write_client_figures(out, resource)
        })?;
        add(".waits", &|out| csv::write_waits(out, resource))?;
    }
    Ok(folder.join(PAGE))
}

/// Adds a file to a report. The list names it before it has content: after a failure the next report
/// knows which files it may replace. A file that exists here was not in the list, so it belongs to the user.
fn add(folder: &Path, name: &str, write: &WriteContent<'_>) -> Result<(), ReportError> {
    let (path, list) = (folder.join(name), folder.join(LIST));
    let file = File::create_new(&path).map_err(ReportError::io("write", &path))?;
    let listed = File::options().append(true).open(&list);
    let listed = listed.and_then(|mut list| writeln!(list, "{name}"));
    listed.map_err(ReportError::io("write", &list))?;
    let mut out = BufWriter::new(file);
    let written = write(&mut out).and_then(|()| out.flush());
    written.map_err(ReportError::io("write", &path))
}

/// Refuses a folder that is not empty.
fn check_empty(folder: &Path) -> Result<(), ReportError> {
    let mut entries = fs::read_dir(folder).map_err(ReportError::io("read", folder))?;
    match entries.next() {
        None => Ok(()),
        Some(entry) => Err(ReportError::Occupied {
            folder: folder.to_owned(),
            found: entry.map_or_else(
                |error| error.to_string(),
                |entry| entry.file_name().to_string_lossy().into_owned(),
            ),
        }),
    }
}

/// Removes a former report, and empties its list.
fn clear(folder: &Path) -> Result<(), ReportError> {
    let list = folder.join(LIST);
    let names = fs::read_to_string(&list).map_err(ReportError::io("read", &list))?;
    // A name with a path was not written here.
    let plain =
        |name: &&str| !name.is_empty() && Path::new(name).file_name() == Some(name.as_ref());
    for name in names.lines().filter(plain) {
        let path = folder.join(name);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(ReportError::io("write", &path)(source));
            }
            _ => {}
        }
    }
    let emptied = fs::write(&list, "");
    emptied.map_err(ReportError::io("write", &list))
}

/// Returns a name for each resource that is safe in a file name on every system. All differ, also without regard to
/// case.
fn slugs(recording: &Recording) -> Vec<String> {
    /// Longer ids are cut.
    const LENGTH_MAX: usize = 60;
    let mut slugs: Vec<String> = Vec::new();
    for resource in &recording.resources {
        let id = resource.resource.to_lowercase();
        let id = id
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
        let id: String = id.take(LENGTH_MAX).collect();
        let base = match id.trim_matches('-') {
            // The folder has a file of the second name.
            "" | "happened" => "resource",
            id => id,
        };
        let mut slug = base.to_owned();
        let mut number = 2;
        while slugs.contains(&slug) {
            slug = format!("{base}-{number}");
            number += 1;
        }
        slugs.push(slug);
    }
    slugs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::ResourceRecording;
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
        let expected = [
            ".doorward-report",
            "happened.csv",
            "recording.json",
            "report.html",
            "shared.clients.csv",
            "shared.csv",
            "shared.nodes.csv",
            "shared.shortages.csv",
            "shared.waits.csv",
            "summary.txt",
        ];
        assert_eq!(names(&folder.path().join("a/b")), expected);
    }

    #[test]
    fn a_former_report_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        write_all(&played(), folder.path()).unwrap();
        fs::write(folder.path().join("notes.txt"), "mine").unwrap();
        write_all(&Recording::default(), folder.path()).unwrap();
        let left = names(folder.path());
        assert!(left.contains(&"notes.txt".to_owned()), "{left:?}");
        assert!(!left.contains(&"shared.csv".to_owned()), "{left:?}");
        fs::write(folder.path().join("shared.csv"), "mine").unwrap();
        let error = write_all(&played(), folder.path()).unwrap_err();
        assert!(error.to_string().contains("shared.csv"), "{error}");
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
        assert_eq!(names(&report), [LIST]);
        let page = write_all(&played(), &report).unwrap();
        let before = names(&report);
        claim(&report).unwrap();
        assert_eq!(names(&report), before);
        let error = claim(&page).unwrap_err().to_string();
        assert!(error.contains("is a file"), "{error}");
    }

    #[test]
    fn a_list_cannot_remove_a_file_elsewhere() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("report");
        fs::create_dir(&folder).unwrap();
        fs::write(outer.path().join("mine"), "").unwrap();
        fs::write(folder.join(LIST), "../mine\n").unwrap();
        write_all(&Recording::default(), &folder).unwrap();
        assert!(outer.path().join("mine").exists());
    }

    #[test]
    fn names_of_files_are_safe_and_different() {
        let mut recording = Recording::default();
        for id in ["../etc/<passwd>", "A", "a", "a-nodes", "", "happened", "é"] {
            recording.resources.push(ResourceRecording {
                resource: id.to_owned(),
                ..Default::default()
            });
        }
        let expected = [
            "etc--passwd",
            "a",
            "a-2",
            "a-nodes",
            "resource",
            "resource-2",
            "resource-3",
        ];
        assert_eq!(slugs(&recording), expected);
    }
}
