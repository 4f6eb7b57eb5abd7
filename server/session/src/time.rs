//! A point in time, as all that is pure counts it.

pub use doorward_time::Time;
pub use doorward_time::millis;
pub use doorward_time::spread;
pub use doorward_time::tolerance;
