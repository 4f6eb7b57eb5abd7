//! A point in time, as the pure half knows it: how long after an origin the caller chooses; and by how much the clock may
//! be wrong that shows it.

pub use doorward_session::time::Time;
pub use doorward_session::time::tolerance::{BadTolerance, Tolerance};
