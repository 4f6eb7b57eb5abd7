//! Points in time, and bounds for spans that another machine's clock measured.

use std::time::Duration;

pub use doorward_time::Time;
pub use doorward_time::due::Due;
use doorward_time::tolerance;
pub use doorward_time::tolerance::at_most;

/// Returns the shortest time on this machine's clock for a span on another one's.
pub fn at_least(span: Duration) -> Duration {
    tolerance::at_least(span)
}
