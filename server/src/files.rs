//! Files of the process: how many it may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// Upper bound of the limit, also where the system has none.
const MANY: u64 = 1_048_576;

/// Raises the limit as far as the process may: shells and service managers often set a low one that may be raised.
/// Returns the number of files that may be open.
pub fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.unwrap_or(MANY).min(MANY);
    let mut files = current.unwrap_or(MANY);
    if files < most {
        let raised = Rlimit {
            current: Some(most),
            maximum,
        };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => files = most,
            Err(error) => warn!(%error, files, most, "the limit of open files cannot be raised"),
        }
    }
    usize::try_from(files).unwrap_or(usize::MAX)
}
