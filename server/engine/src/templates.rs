//! Resource templates: what operators say of resources, checked, and found by the id of a resource.

mod check;
pub mod glob;
mod set;
mod template;

pub use set::Templates;
pub use template::*;
