//! Wrong usage of the command line.

use doorward_etcd::flags::FlagsError;
use doorward_server::flags::ParentError;
use doorward_server::flags::starts::WrongStart;
use thiserror::Error;

/// Flags that are invalid together.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct Misused(pub(crate) String);

impl From<ParentError> for Misused {
    fn from(error: ParentError) -> Self {
        Self(error.to_string())
    }
}

impl From<FlagsError> for Misused {
    fn from(error: FlagsError) -> Self {
        Self(error.to_string())
    }
}

impl From<WrongStart> for Misused {
    fn from(error: WrongStart) -> Self {
        Self(error.to_string())
    }
}
