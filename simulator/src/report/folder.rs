//! The folder of a report: which files it has, and that nothing else is lost when it is written.
//!
//! A list in the folder names the files of the report. Where it is, a former report is replaced: its
//! files and no others are removed. Where it is not, the folder must be empty.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::recording::Recording;
use crate::report::{csv, html, json, summary};
use doorward_pages::terminal::palette::Palette;

/// Names the files of a report, a line each.
const LIST: &str = ".doorward-report";

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenReport {
    /// To look at first.
    pub page: PathBuf,
    /// All of them, with their folder.
    pub files: Vec<PathBuf>,
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The folder holds something that is no report.
    #[error(
        "{folder} is not empty and holds no former report (there is {found}); \
         name another folder, or empty it"
    )]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// Something in it.
        found: String,
    },
    /// It is no folder.
    #[error("{path} is a file, and a report is a folder; name another one")]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },
    /// A file could not be written.
    #[error("cannot write {path} (is there room, and may you write there?)")]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder could not be read.
    #[error("cannot read {path}; a report needs a folder that you may read and write")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Makes a file.
type Make<'a> = dyn FnOnce(&mut dyn Write) -> io::Result<()> + 'a;

/// A file of a report, and how it is made: one after the other, for some are large.
struct ReportFile<'a> {
    name: String,
    write: Box<Make<'a>>,
}

impl<'a> ReportFile<'a> {
    fn new(
        name: impl Into<String>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()> + 'a,
    ) -> Self {
        Self {
            name: name.into(),
            write: Box::new(write),
        }
    }

    fn text(name: impl Into<String>, text: String) -> Self {
        Self::new(name, move |out| out.write_all(text.as_bytes()))
    }
}

/// Makes a folder ready for a report, so that what is wrong with it is known before anything is
/// played. It is made if it is not there, and from then on known as one of a report; a former report
/// in it stays until [`write_all`] replaces it.
pub fn claim(folder: &Path) -> Result<(), ReportError> {
    if folder.is_file() {
        let path = folder.to_owned();
        return Err(ReportError::NotAFolder { path });
    }
    let write = |path: &Path| {
        let path = path.to_owned();
        move |source| ReportError::Write { path, source }
    };
    fs::create_dir_all(folder).map_err(write(folder))?;
    let list = folder.join(LIST);
    if !list.exists() {
        check_empty(folder)?;
    }
    let mut options = File::options();
    let opened = options.append(true).create(true).open(&list);
    opened.map(drop).map_err(write(&list))
}

/// Writes everything about a recording into a folder, which is made if it is not there.
pub fn write_all(recording: &Recording, folder: &Path) -> Result<WrittenReport, ReportError> {
    claim(folder)?;
    clear(folder)?;
    let parts = parts(recording);
    // The list first: if anything fails later, the next report knows what it may replace.
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    let list = ReportFile::text(LIST, names.join("\n") + "\n");
    let mut files = Vec::new();
    for part in std::iter::once(list).chain(parts) {
        let path = folder.join(&part.name);
        write_part(&path, part).map_err(|source| ReportError::Write {
            path: path.clone(),
            source,
        })?;
        files.push(path);
    }
    files.remove(0);
    Ok(WrittenReport {
        page: folder.join("index.html"),
        files,
    })
}

fn write_part(path: &Path, part: ReportFile<'_>) -> io::Result<()> {
    // What is there and not listed is not ours, even if it is called the same.
    let file = match part.name == LIST {
        true => File::create(path)?,
        false => File::create_new(path)?,
    };
    let mut out = BufWriter::new(file);
    (part.write)(&mut out)?;
    out.flush()
}

/// Refuses a folder that holds anything.
fn check_empty(folder: &Path) -> Result<(), ReportError> {
    let read = |source| ReportError::Read {
        path: folder.to_owned(),
        source,
    };
    let mut entries = fs::read_dir(folder).map_err(read)?;
    match entries.next() {
        None => Ok(()),
        Some(entry) => Err(ReportError::Occupied {
            folder: folder.to_owned(),
            found: entry
                .map_err(read)?
                .file_name()
                .to_string_lossy()
                .into_owned(),
        }),
    }
}

/// Removes a former report.
fn clear(folder: &Path) -> Result<(), ReportError> {
    let list = folder.join(LIST);
    let names = fs::read_to_string(&list).map_err(|source| ReportError::Read {
        path: list.clone(),
        source,
    })?;
    // A name that leads elsewhere was not written here.
    let plain =
        |name: &&str| !name.is_empty() && Path::new(name).file_name() == Some(name.as_ref());
    for name in names.lines().filter(plain) {
        let path = folder.join(name);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(ReportError::Write { path, source });
            }
            _ => {}
        }
    }
    Ok(())
}

fn parts(recording: &Recording) -> Vec<ReportFile<'_>> {
    let slugs = slugs(recording);
    let page_slugs = slugs.clone();
    let mut parts = vec![
        ReportFile::new("index.html", move |out| {
            let page = html::page(recording, &page_slugs).map_err(io::Error::other)?;
            out.write_all(page.as_bytes())
        }),
        ReportFile::new(json::NAME, |mut out| json::write(&mut out, recording)),
        ReportFile::new("summary.txt", |mut out| {
            summary::write(&mut out, recording, Palette { on: false })
        }),
        ReportFile::new("happened.csv", |out| {
            csv::write_marks(out, &recording.marks).map_err(io::Error::other)
        }),
    ];
    for (resource, slug) in recording.resources.iter().zip(slugs) {
        parts.push(ReportFile::new(format!("{slug}.csv"), |out| {
            csv::write_samples(out, resource).map_err(io::Error::other)
        }));
        parts.push(ReportFile::new(format!("{slug}.nodes.csv"), |out| {
            csv::write_nodes(out, resource, &recording.nodes).map_err(io::Error::other)
        }));
        parts.push(ReportFile::new(format!("{slug}.clients.csv"), |out| {
            csv::write_clients(out, resource).map_err(io::Error::other)
        }));
        parts.push(ReportFile::new(format!("{slug}.shortages.csv"), |out| {
            csv::write_client_figures(out, resource).map_err(io::Error::other)
        }));
        parts.push(ReportFile::new(format!("{slug}.waits.csv"), |out| {
            csv::write_waits(out, resource).map_err(io::Error::other)
        }));
    }
    parts
}

/// A short name for each resource that can be part of the name of a file, on every system; all
/// different, also where upper and lower case are the same.
pub(super) fn slugs(recording: &Recording) -> Vec<String> {
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
            "" => "resource",
            // What the folder has besides.
            "happened" => "resource",
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
    use crate::report::plausible;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_report_is_a_folder_of_files() {
        let folder = tempfile::tempdir().unwrap();
        let written = write_all(&plausible::small(), &folder.path().join("a/b")).unwrap();
        assert!(written.page.exists());
        let expected = [
            ".doorward-report",
            "happened.csv",
            "index.html",
            "recording.json",
            "requests.clients.csv",
            "requests.csv",
            "requests.nodes.csv",
            "requests.shortages.csv",
            "requests.waits.csv",
            "summary.txt",
        ];
        assert_eq!(names(&folder.path().join("a/b")), expected);
        assert_eq!(written.files.len(), expected.len() - 1);
    }

    #[test]
    fn a_former_report_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        write_all(&plausible::small(), folder.path()).unwrap();
        fs::write(folder.path().join("notes.txt"), "mine").unwrap();
        write_all(&Recording::default(), folder.path()).unwrap();
        let left = names(folder.path());
        assert!(left.contains(&"notes.txt".to_owned()), "{left:?}");
        assert!(!left.contains(&"requests.csv".to_owned()), "{left:?}");
        fs::write(folder.path().join("requests.csv"), "mine").unwrap();
        let error = write_all(&plausible::small(), folder.path()).unwrap_err();
        assert!(error.to_string().contains("requests.csv"), "{error}");
    }

    #[test]
    fn a_folder_that_holds_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "mine").unwrap();
        let error = write_all(&plausible::small(), folder.path()).unwrap_err();
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
        let before = write_all(&plausible::small(), &report).unwrap();
        claim(&report).unwrap();
        assert!(before.files.iter().all(|file| file.exists()));
        let file = before.files.first().unwrap();
        let error = claim(file).unwrap_err().to_string();
        assert!(error.contains("is a file"), "{error}");
    }

    #[test]
    fn a_list_cannot_remove_what_is_elsewhere() {
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
            recording
                .resources
                .push(crate::recording::ResourceRecording {
                    resource: id.to_owned(),
                    ..Default::default()
                });
        }
        assert_eq!(
            slugs(&recording),
            [
                "etc--passwd",
                "a",
                "a-2",
                "a-nodes",
                "resource",
                "resource-2",
                "resource-3"
            ]
        );
    }
}
