//! Two live processes that ask under one name, as they are shown.

use doorward_engine::snapshot::Conflict;
use doorward_engine::time::Time;
use serde::Serialize;

use super::millis;

/// Two live processes under one name, of which the later one was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConflictStatus {
    /// The name.
    pub holder: String,
    /// `client` or `server`.
    pub kind: &'static str,
    /// How long ago that was seen last.
    pub age_ms: u64,
}

impl ConflictStatus {
    pub(super) fn of(conflict: &Conflict, now: Time) -> Self {
        Self {
            holder: conflict.holder.name.to_string(),
            kind: conflict.holder.kind.as_str(),
            age_ms: millis(now.since(conflict.at)),
        }
    }
}
