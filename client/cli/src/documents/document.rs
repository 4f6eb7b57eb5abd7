//! A document, and its content if it is valid.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use doorward_documents::Kind;

use crate::failure::Failure;
use crate::output;

/// A document under its name.
#[derive(Debug)]
pub(crate) struct Document<K: Kind> {
    /// For messages.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) read: Result<K, K::Error>,
}

impl<K: Kind> Document<K> {
    pub(crate) fn new(name: &str, bytes: Vec<u8>) -> Self {
        let files = [(name.to_owned(), bytes)];
        let read = K::parse(&files);
        let [(name, bytes)] = files;
        Self { name, bytes, read }
    }

    /// Reads a file, standard input for `-`, or the YAML files of a directory. Their text together has the name of each
    /// above its start.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let name = match path.to_string_lossy() {
            name if name == "-" => "standard input".to_owned(),
            name => name.into_owned(),
        };
        let cannot = |error| Failure::Usage(format!("{name}: cannot be read: {error}"));
        if !is_directory::<K>(path) {
            let bytes = read(path, K::BYTES_MAX).map_err(cannot)?;
            return Ok(Self::new(&name, bytes));
        }
        let files = yaml_files(path).map_err(cannot)?.into_iter().map(|path| {
            let name = path.to_string_lossy().into_owned();
            match read(&path, K::BYTES_MAX) {
                Ok(bytes) => Ok((name, bytes)),
                Err(error) => Err(io::Error::other(format!("{name}: {error}"))),
            }
        });
        let files: Vec<(String, Vec<u8>)> = files.collect::<io::Result<_>>().map_err(cannot)?;
        if files.is_empty() {
            return Err(cannot(io::Error::other("it has no .yaml or .yml files")));
        }
        let mut bytes = Vec::new();
        for (name, text) in &files {
            bytes.extend(format!("--- # {name}\n").into_bytes());
            bytes.extend(text);
            if !text.ends_with(b"\n") {
                bytes.push(b'\n');
            }
        }
        let read = K::parse(&files);
        Ok(Self { name, bytes, read })
    }

    /// Returns the line of each problem, and its text; none if it is valid.
    pub(crate) fn problems(&self) -> Vec<(u64, String)> {
        self.read.as_ref().err().map_or_else(Vec::new, K::problems)
    }

    /// Returns its content. Prints all problems of an invalid one; `then` says what comes of them.
    pub(crate) fn valid(&self, then: &str) -> Result<&K, Failure> {
        self.read
            .as_ref()
            .map_err(|error| match writeln!(output::stderr(), "{error}") {
                Ok(()) => Failure::No(format!("{} is invalid{then}", self.name)),
                Err(error) => error.into(),
            })
    }

    /// Returns it as text. Invalid UTF-8 is replaced: only an invalid document has any.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// Returns whether the files of a directory are one document.
pub(super) fn is_directory<K: Kind>(path: &Path) -> bool {
    K::IS_IN_DIRECTORIES && path.is_dir()
}

/// Returns the YAML files of a directory in the order of their names, without hidden ones.
pub(super) fn yaml_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let is_yaml = path
            .extension()
            .is_some_and(|it| it == "yaml" || it == "yml");
        if is_yaml && !entry.file_name().as_encoded_bytes().starts_with(b".") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Not more than a document may have, and one byte to know that it has more.
fn read(file: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let most = bytes_max as u64 + 1;
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        io::stdin().take(most).read_to_end(&mut bytes)?;
    } else {
        fs::File::open(file)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
