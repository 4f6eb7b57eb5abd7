//! Templates in a file, and their history beside it.
//!
//! FILE is replaced as a whole, never written into. FILE.history has a line of JSON for each version,
//! as etcd keeps them. While this command line writes it holds a lock on the history, so two of it
//! never write over each other. An editor knows nothing of that lock: whether it has saved meanwhile
//! is looked at right before the file is replaced, and what it saves in the instant between is lost.
//!
//! A FILE that is a link stays one: what it leads to is replaced, and has the history.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use doorward_etcd::layout::VERSION_MAX;
use doorward_etcd::templates::{Recorded, StoredTemplates, TemplatesEdit, Version};
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::templates::place::failure_of_write;
use crate::templates::store::WriteResult;

/// Links that are followed.
const LINKS_MAX: usize = 32;

/// A file with templates.
#[derive(Debug)]
pub(crate) struct DocumentFile {
    path: PathBuf,
    history: PathBuf,
}

impl DocumentFile {
    pub(crate) fn new(path: &Path) -> Self {
        let path = target(path);
        let mut history = path.clone().into_os_string();
        history.push(".history");
        Self {
            history: history.into(),
            path,
        }
    }

    pub(crate) fn read(&self) -> Result<StoredTemplates, Failure> {
        let mut numbers: Vec<u64> = Vec::new();
        let mut recorded = self.recorded()?;
        recorded.sort_by_key(|recorded| recorded.number);
        numbers.extend(recorded.iter().rev().map(|recorded| recorded.number));
        numbers.dedup();
        Ok(StoredTemplates {
            document: self.document()?,
            mod_revision: 0,
            numbers,
            newest: recorded.pop(),
        })
    }

    pub(crate) fn versions(&self, numbers: &[u64]) -> Result<Vec<Recorded>, Failure> {
        let recorded = self.recorded()?;
        // Should a number stand there twice, the later one counts.
        let find = |number: &u64| recorded.iter().rev().find(|r| r.number == *number);
        Ok(numbers.iter().filter_map(find).cloned().collect())
    }

    pub(crate) fn write(
        &self,
        seen: &StoredTemplates,
        change: &TemplatesEdit<'_>,
    ) -> Result<WriteResult, Failure> {
        let cannot = |what: &Path, error: &io::Error| {
            let what = what.display();
            Failure::No(format!("cannot write {what}: {error}. Nothing was written"))
        };
        let history = &self.history;
        let mut lines = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(history)
            .map_err(|error| cannot(history, &error))?;
        // Let go when the file is closed.
        match lines.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let problem = "somebody else is writing at this moment: nothing was written";
                return Err(Failure::No(problem.to_owned()));
            }
            Err(TryLockError::Error(error)) => return Err(cannot(history, &error)),
        }
        if !self.is_as(seen)? {
            return Ok(WriteResult::Changed);
        }
        let versions = seen
            .versions_for(change)
            .map_err(|error| failure_of_write(&error))?;
        let Some(own) = versions.last().cloned() else {
            return Ok(WriteResult::Changed);
        };
        // Ready before the history has it: this is what may fail.
        let new = self
            .prepare(change.document)
            .map_err(|error| cannot(&self.path, &error))?;
        let before = lines.metadata().map_err(|error| cannot(history, &error))?;
        let appended = append(&mut lines, &versions);
        let replaced = match appended {
            Err(error) => Err(cannot(history, &error)),
            Ok(()) if self.document()? != seen.document => Ok(false),
            Ok(()) => match new.persist(&self.path) {
                Ok(_) => Ok(true),
                Err(error) => Err(cannot(&self.path, &error.error)),
            },
        };
        if !matches!(replaced, Ok(true)) {
            // The history has nothing that has not been. Should even this fail, it has a
            // version that was not in force: no harm, and no better idea.
            let _ = lines.set_len(before.len());
        }
        if !replaced? {
            return Ok(WriteResult::Changed);
        }
        self.settle();
        Ok(WriteResult::Done(own))
    }

    fn document(&self) -> Result<Option<Vec<u8>>, Failure> {
        read_if_there(&self.path)
    }

    /// All versions, as they stand.
    fn recorded(&self) -> Result<Vec<Recorded>, Failure> {
        let content = read_if_there(&self.history)?.unwrap_or_default();
        let mut recorded: Vec<Recorded> = Vec::new();
        for line in content.split(|byte| *byte == b'\n') {
            if line.trim_ascii().is_empty() {
                continue;
            }
            let version = serde_json::from_slice::<Version>(line);
            // Who cannot be read takes the number that is next. Lines are too few for a number that overflows.
            let next = recorded.last().map_or(1, |last| last.number + 1);
            recorded.push(match version.map(|version| version.number) {
                Ok(number) if (1..=VERSION_MAX).contains(&number) => Recorded::parse(number, line),
                Ok(number) => Recorded {
                    number: next,
                    version: Err(format!(
                        "it has the number {number} in the history, and numbers are from 1 to \
                         {VERSION_MAX}"
                    )),
                },
                Err(_) => Recorded::parse(next, line),
            });
        }
        Ok(recorded)
    }

    fn is_as(&self, seen: &StoredTemplates) -> Result<bool, Failure> {
        let now = self.read()?;
        Ok(now.document == seen.document && now.numbers == seen.numbers)
    }

    /// The new content on its disk, under another name.
    fn prepare(&self, document: &str) -> io::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".doorward-templates-");
        let before = fs::metadata(&self.path).ok().map(|data| data.permissions());
        if let Some(permissions) = before.clone().or_else(usual_permissions) {
            builder.permissions(permissions);
        }
        let mut new = builder.tempfile_in(folder(&self.path))?;
        if let Some(permissions) = before {
            // Above, what the process lets nobody do is left out.
            new.as_file().set_permissions(permissions)?;
        }
        new.write_all(document.as_bytes())?;
        new.as_file().sync_all()?;
        Ok(new)
    }

    /// The new name on its disk, as far as the operating system does that.
    fn settle(&self) {
        if let Ok(folder) = File::open(folder(&self.path)) {
            let _ = folder.sync_all();
        }
    }
}

fn append(history: &mut File, versions: &[Version]) -> io::Result<()> {
    let mut text = String::new();
    // A line that somebody left open is closed.
    let mut content = Vec::new();
    history.read_to_end(&mut content)?;
    if content.last().is_some_and(|byte| *byte != b'\n') {
        text.push('\n');
    }
    for version in versions {
        text += &version.to_json();
        text.push('\n');
    }
    history.write_all(text.as_bytes())?;
    history.sync_all()
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::Usage(format!(
            "{}: cannot be read: {error}",
            path.display()
        ))),
    }
}

/// What a path leads to, whether that exists or not.
fn target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(next) => path = folder(&path).join(next),
            Err(_) => break,
        }
    }
    path
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Of a file that anybody makes.
#[cfg(unix)]
fn usual_permissions() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;

    Some(Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn usual_permissions() -> Option<Permissions> {
    None
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
