//! Where templates come from, and that they are read again whenever they change.
//!
//! Whatever the source, a version that is not in order is refused, with everything that is wrong
//! with it, and the one in force stays in force.

pub mod etcd;
pub mod file;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use doorward_engine::template::Templates;
use tracing::{info, warn};

use crate::clock;
use crate::metrics::Metrics;
use crate::status::Board;

/// Where operators keep the templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In a file.
    File(PathBuf),
    /// Under a key in etcd.
    Etcd(String),
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("etcd:") {
            Some(key) if key.starts_with("//") => Err(
                "give the key alone, as in etcd:/doorward/templates; where etcd is, --etcd-endpoints \
                 says"
                    .to_owned(),
            ),
            Some(key) => doorward_etcd::flags::key(key).map(Self::Etcd),
            None if text.is_empty() => Err("give a file, or etcd:KEY".to_owned()),
            None => Ok(Self::File(text.into())),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Etcd(key) => write!(f, "etcd:{key}"),
        }
    }
}

/// New templates are in force from now on.
pub fn apply(board: &Board, metrics: &Metrics, templates: Templates) {
    let count = templates.len();
    board
        .node()
        .change(|node, now| node.handle_templates(templates, now));
    board.post_templates(None);
    metrics.count_template_load(true, clock::wall());
    info!(templates = count, "new templates are in force");
}

/// New templates were not in order: those in force stay, and everyone who looks is told.
pub fn refuse(board: &Board, metrics: &Metrics, problem: String) {
    warn!("new templates refused, those in force stay:\n{problem}");
    board.post_templates(Some(problem));
    metrics.count_template_load(false, clock::wall());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_in_a_file_or_under_a_key() {
        let parse = |text: &str| text.parse::<Source>();
        assert_eq!(parse("t.yaml"), Ok(Source::File("t.yaml".into())));
        assert_eq!(parse("etcd:/t/"), Ok(Source::Etcd("/t".to_owned())));
        for bad in ["", "etcd:", "etcd:/", "etcd://host:2379/t"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        for text in ["t.yaml", "etcd:/t"] {
            assert_eq!(
                parse(text).map(|source| source.to_string()),
                Ok(text.to_owned())
            );
        }
    }
}
