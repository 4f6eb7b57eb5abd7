//! Points in time, and how long a span on another machine's clock lasts on this one.

use std::time::Duration;

pub use doorward_time::Time;
pub use doorward_time::due::Due;
use doorward_time::tolerance;
pub use doorward_time::tolerance::at_most;

/// How long a span on another machine's clock lasts on this one, at least.
pub fn at_least(span: Duration) -> Duration {
    tolerance::at_least(span)
}
