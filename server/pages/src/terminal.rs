//! What Doorward's programs share on a terminal: tones, and tables.

pub mod palette;
pub mod table;
