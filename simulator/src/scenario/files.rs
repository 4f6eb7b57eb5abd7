//! The files that a scenario names: templates and traces.
//!
//! A trace of the library may be named in a file on disk, too: `library:fast-demand.csv`. So what `doorward-sim show`
//! prints can be played from any folder.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use doorward_trace::TraceSource;

/// The prefix of names of the library's traces.
pub(super) const LIBRARY: &str = "library:";

/// The traces of the library, by the names of their files.
const TRACES: &[(&str, &str)] = &[
    (
        "llm-tokens.csv",
        include_str!("../../traces/llm-tokens.csv"),
    ),
    (
        "fast-demand.csv",
        include_str!("../../traces/fast-demand.csv"),
    ),
];

/// The place of the files that a scenario names.
#[derive(Clone, Debug)]
pub enum Files {
    /// On disk, from this folder on.
    Folder(PathBuf),
    /// In the program: by their names without folders, and what is in them.
    BuiltIn(&'static [(&'static str, &'static str)]),
}

impl Files {
    /// Reads a small file, and returns its name for messages too.
    pub(super) fn bytes(&self, name: &str) -> Result<(Vec<u8>, String), io::Error> {
        let Some(source) = self.source(name) else {
            let message = "it is not in the library";
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        };
        let mut bytes = Vec::new();
        source.open()?.read_to_end(&mut bytes)?;
        Ok((bytes, source.to_string()))
    }

    /// Finds a file. A file on disk may be missing nevertheless.
    pub(super) fn source(&self, name: &str) -> Option<TraceSource> {
        let (files, name): (_, &OsStr) = match (self, name.strip_prefix(LIBRARY)) {
            (_, Some(name)) => (TRACES, name.as_ref()),
            (Self::Folder(folder), None) => return Some(TraceSource::File(folder.join(name))),
            (Self::BuiltIn(files), None) => (*files, Path::new(name).file_name()?),
        };
        let found = files.iter().find(|(known, _)| *known == name);
        found.map(|(name, text)| TraceSource::BuiltIn { name, text })
    }
}
