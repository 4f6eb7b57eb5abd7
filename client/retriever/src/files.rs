//! Rule documents in files: one file, or the files of a directory.
//!
//! A change is seen by content, on every file system. It counts once two reads in a row agree, because a program may
//! still be writing. A file that is written without a pause is read as it is after an interval.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use doorward_clock::Instant;
use doorward_rules::{Problem, Rules};
use tracing::warn;

/// Largest file, in bytes.
pub const FILE_BYTES_MAX: usize = doorward_rules::document::DOCUMENT_BYTES_MAX;

/// Largest number of files in a directory.
pub const FILES_MAX: usize = 256;

/// Time for which the rules of a document that is gone stay in force: a folder may be copied anew.
pub const GONE_FOR: Duration = Duration::from_secs(60);

/// Largest number of rules that a log line names.
const NAMED_MAX: usize = 20;

/// Share of the interval after which a new content is read again.
const SETTLES_PER_INTERVAL: u32 = 10;

/// Content of files by name, or the reason why they cannot be read.
pub type Content = Result<BTreeMap<String, Vec<u8>>, String>;

/// Reads a regular file. Its name is the path.
pub fn read_file(path: &Path) -> Content {
    let name = path.display().to_string();
    match content_of(path) {
        Ok(bytes) => Ok(BTreeMap::from([(name, bytes)])),
        Err(error) => Err(format!("cannot read {name}: {error}")),
    }
}

/// Reads the files of a directory that end with `.yaml` or `.yml`, without hidden ones. A name is that of the file.
pub fn read_directory(path: &Path) -> Content {
    let directory = path.display();
    let cannot = |error| format!("cannot read the directory {directory}: {error}");
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(path).map_err(cannot)? {
        let name = entry.map_err(cannot)?.file_name();
        let Some(name) = name.to_str().filter(|name| is_document(name)) else {
            continue;
        };
        if files.len() >= FILES_MAX {
            let problem = format!("{directory} has more than {FILES_MAX} documents; remove some");
            return Err(problem);
        }
        let bytes = content_of(&path.join(name));
        let bytes = bytes.map_err(|error| format!("cannot read {directory}/{name}: {error}"))?;
        files.insert(name.to_owned(), bytes);
    }
    Ok(files)
}

fn is_document(name: &str) -> bool {
    let is_yaml = name.ends_with(".yaml") || name.ends_with(".yml");
    is_yaml && !name.starts_with('.')
}

fn content_of(path: &Path) -> io::Result<Vec<u8>> {
    // Reading a pipe or a device may wait for ever.
    if !fs::metadata(path)?.is_file() {
        let problem = "it is no regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    let mut content = Vec::new();
    let most = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX);
    File::open(path)?
        .take(most.saturating_add(1))
        .read_to_end(&mut content)?;
    if content.len() > FILE_BYTES_MAX {
        let problem = format!("it has more than {FILE_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(content)
}

/// Waits until the content differs from the last one. Reads once an interval. Cancel safe.
pub async fn changed(
    read: impl Fn() -> Content + Clone + Send + 'static,
    last: &Content,
    interval: Duration,
) -> Content {
    loop {
        tokio::time::sleep(interval).await;
        let mut content = read_apart(read.clone()).await;
        for _ in 0..SETTLES_PER_INTERVAL {
            if content == *last {
                break;
            }
            tokio::time::sleep(interval / SETTLES_PER_INTERVAL).await;
            let again = read_apart(read.clone()).await;
            if again == content {
                break;
            }
            content = again;
        }
        if content != *last {
            return content;
        }
    }
}

/// Waits until a time, if there is one.
pub async fn until(due: Option<Instant>) {
    match due {
        Some(due) => doorward_clock::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Reads on a thread that may wait for a disk.
pub async fn read_apart(read: impl FnOnce() -> Content + Send + 'static) -> Content {
    let reading = tokio::task::spawn_blocking(read).await;
    reading.unwrap_or_else(|error| Err(format!("the read failed: {error}")))
}

/// Reads documents with their names. All load, or none does.
///
/// # Errors
///
/// All problems.
pub fn load<'a>(
    documents: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<Rules, Vec<Problem>> {
    let (mut texts, mut problems) = (Vec::new(), Vec::new());
    for (file, bytes) in documents {
        match str::from_utf8(bytes) {
            Ok(text) => texts.push((file, text)),
            Err(error) => {
                let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let line = valid.split(|byte| *byte == b'\n').count();
                problems.push(Problem {
                    file: file.to_owned(),
                    line: u64::try_from(line).unwrap_or(u64::MAX),
                    message: "the text is not UTF-8; write it as UTF-8".to_owned(),
                });
            }
        }
    }
    let loaded = Rules::load(&texts);
    if problems.is_empty() {
        return loaded;
    }
    problems.extend(loaded.err().unwrap_or_default());
    Err(problems)
}

/// Logs the names of rules that are no longer there.
pub fn tell_gone(before: &Rules, after: &Rules) {
    let gone = before.gone(after);
    if !gone.is_empty() {
        let named: Vec<&str> = gone.iter().copied().take(NAMED_MAX).collect();
        let rules = named.join(", ");
        warn!(rules, count = gone.len(), "these rules are no longer there");
    }
}

/// Returns problems as one text, a line for each.
pub fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
