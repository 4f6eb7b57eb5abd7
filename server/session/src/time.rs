//! Points in time, as all state machines count them.

pub use doorward_time::Time;
pub use doorward_time::spread;
pub use doorward_time::tolerance;
pub use doorward_time::{budget, millis, millis_up};
