//! A version of a document, as it stands in the history.
//!
//! JSON, because people read it there too. A version that cannot be read stays what it is: it is
//! reported, and takes its number.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::documents::DocumentEdit;

/// A version of a document. Its field names are an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Counts from 1.
    pub number: u64,
    /// How it came to be.
    #[serde(flatten)]
    pub kind: VersionKind,
    /// Name of the author. Absent: not known.
    pub who: Option<String>,
    /// When it was written, by the writer's clock; of what was found: when that was.
    pub when: String,
    /// The same in milliseconds since the Unix epoch.
    pub when_unix_ms: u64,
    /// Reason for the change.
    pub why: Option<String>,
    /// The document. Absent: too large to be kept.
    pub document: Option<String>,
}

/// How a version came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum VersionKind {
    /// From a file.
    Apply,
    /// In an editor.
    Edit,
    /// An earlier version was written again.
    Rollback {
        /// Which.
        to: u64,
    },
    /// It was there, written by something else than the command line.
    Found,
    /// By a command that is not known here.
    #[serde(other)]
    Other,
}

impl std::fmt::Display for VersionKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Apply => f.write_str("apply"),
            Self::Edit => f.write_str("edit"),
            Self::Rollback { to } => write!(f, "rollback to {to}"),
            Self::Found => f.write_str("found"),
            Self::Other => f.write_str("other"),
        }
    }
}

impl Version {
    pub(super) fn of(number: u64, change: &DocumentEdit<'_>) -> Self {
        Self {
            kind: change.kind,
            who: Some(change.who.to_owned()),
            why: change.why.map(str::to_owned),
            document: Some(change.document.to_owned()),
            ..Self::at(number, change.when)
        }
    }

    /// A document that no command line recorded. Invalid UTF-8 is replaced: only an invalid document has any.
    pub(super) fn found(number: u64, document: &[u8], when: SystemTime) -> Self {
        Self {
            document: Some(String::from_utf8_lossy(document).into_owned()),
            ..Self::at(number, when)
        }
    }

    fn at(number: u64, when: SystemTime) -> Self {
        let since_epoch = when.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            number,
            kind: VersionKind::Found,
            who: None,
            when: humantime::format_rfc3339_seconds(UNIX_EPOCH + since_epoch).to_string(),
            when_unix_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
            why: None,
            document: None,
        }
    }

    /// Whether this is the version of that document.
    pub(super) fn is_of(&self, document: &[u8]) -> bool {
        match &self.document {
            Some(own) => *own == String::from_utf8_lossy(document),
            None => false,
        }
    }

    /// Drops a document that is too large for a version. The largest document that servers read does fit.
    pub(super) fn leave_out_document(&mut self) {
        let bytes = self.document.take().map_or(0, |document| document.len());
        self.why = Some(format!("{bytes} bytes, too large to be kept"));
    }

    /// As it is kept, in one line.
    pub fn to_json(&self) -> String {
        // Strings and numbers: nothing here can fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A number of the history, and what stands there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Which.
    pub number: u64,
    /// The version, or why it cannot be read.
    pub version: Result<Version, String>,
}

impl Recorded {
    /// Reads a version as it is kept.
    pub fn parse(number: u64, json: &[u8]) -> Self {
        let version = serde_json::from_slice::<Version>(json);
        let version = version.map_err(|error| format!("it cannot be read: {error}"));
        Self {
            number,
            // The place it stands at is the number it is asked for by.
            version: version.map(|version| Version { number, ..version }),
        }
    }
}

#[cfg(test)]
mod tests;
