//! Rule documents in files: one file, or the files of a directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use doorward_clock::Instant;
pub use doorward_files::Content;
use doorward_files::read_regular;
use tracing::warn;

use crate::rules::{Problems, Rules};

/// Largest file, in bytes.
pub const FILE_BYTES_MAX: usize = crate::rules::document::DOCUMENT_BYTES_MAX;

/// Largest number of files in a directory.
pub const FILES_MAX: usize = 256;

/// Time for which the rules of a document that is gone stay in force: a folder may be copied anew.
pub const GONE_FOR: Duration = Duration::from_secs(60);

/// Largest number of rules that a log line names.
const NAMED_MAX: usize = 20;

/// Reads a regular file. Its name is the path.
pub fn read_file(path: &Path) -> Content {
    doorward_files::document(path, FILE_BYTES_MAX)
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
        let bytes = read_regular(&path.join(name), FILE_BYTES_MAX);
        let bytes = bytes.map_err(|error| format!("cannot read {directory}/{name}: {error}"))?;
        files.insert(name.to_owned(), bytes);
    }
    Ok(files)
}

fn is_document(name: &str) -> bool {
    let is_yaml = name.ends_with(".yaml") || name.ends_with(".yml");
    is_yaml && !name.starts_with('.')
}

/// Waits until a time, if there is one.
pub async fn until(due: Option<Instant>) {
    match due {
        Some(due) => doorward_clock::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Reads documents with their names. All load, or none does.
///
/// # Errors
///
/// All problems.
pub fn load<'a>(
    documents: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<Rules, Problems> {
    Rules::load_bytes(documents.into_iter())
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
