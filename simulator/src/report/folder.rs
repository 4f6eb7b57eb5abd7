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
mod tests;
