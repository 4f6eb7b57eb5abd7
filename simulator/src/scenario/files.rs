//! The traces that a scenario names.
//!
//! A trace of the library may be named in a file on disk, too: `library:fast-demand.csv`. So what `doorward-sim show`
//! prints can be played from any folder.

use std::path::Path;

use doorward_trace::TraceSource;

/// The prefix of names of the library's traces.
const LIBRARY: &str = "library:";

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

/// Finds a trace that a scenario in that folder names. A file on disk may be missing nevertheless.
pub(super) fn trace(folder: &Path, name: &str) -> Option<TraceSource> {
    let Some(name) = name.strip_prefix(LIBRARY) else {
        return Some(TraceSource::File(folder.join(name)));
    };
    let found = TRACES.iter().find(|(known, _)| *known == name);
    found.map(|(name, text)| TraceSource::BuiltIn { name, text })
}
