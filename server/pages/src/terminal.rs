//! Tones and tables that Doorward's programs share on a terminal.

pub mod palette;
pub mod table;
