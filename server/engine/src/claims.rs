//! Claims of clients, demand of child servers, and the index over all claims together.

mod bands;
mod claim;
mod curve;
pub mod demand;
mod index;

pub use bands::*;
pub use claim::*;
pub use curve::*;
pub use demand::*;
pub use index::*;
