//! Globs as Go's `path/filepath.Match` has them (stub, replaced at once).

use thiserror::Error;

/// A parsed glob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(String);

/// Why a text is no glob.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("bad glob")]
pub struct GlobError;

impl Glob {
    /// Parses.
    ///
    /// # Errors
    ///
    /// If malformed.
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        Ok(Self(text.to_owned()))
    }

    /// Whether it matches all of `text`.
    pub fn matches(&self, text: &str) -> bool {
        self.0 == text || self.0 == "*"
    }
}
