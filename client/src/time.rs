//! Points in time of the pure half, since an origin that the caller chooses, and the tolerance of clocks.

pub use doorward_session::time::Time;
pub use doorward_session::time::tolerance::{BadTolerance, Tolerance};
