//! Doorward end to end: what the tests in `tests/` share. They start the programs as anybody would.

pub mod crowd;
pub mod processes;
