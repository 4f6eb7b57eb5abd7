//! Tones and tables that Doorward's programs share on a terminal.

pub mod palette;
pub mod table;

pub use palette::{Palette, Tone};
pub use table::{Cell, Column, Table, cell};
