//! Random inputs: real ones with small changes that a reader still accepts.
//!
//! The first check of a parser refuses random bytes. Inputs that are nearly valid reach the code behind it.

mod bytes;
mod nasty;
mod text;
mod wire;

use crate::chance::Chance;

/// Kind of an input, for mutations.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// A protobuf message.
    Wire,
    /// Lines of text: YAML, CSV, JSON.
    Lines,
    /// A word or two: a glob, an address, a duration.
    Word,
}

/// Returns an input without its part of that number, so that a reader still accepts it. None: there are fewer parts.
pub fn without_part(bytes: &[u8], format: Format, number: usize) -> Option<Vec<u8>> {
    match format {
        Format::Wire => wire::without(bytes, number),
        Format::Lines => text::without_line(bytes, number),
        Format::Word => None,
    }
}

/// Largest size of an input.
const BYTES_MAX: usize = 64 * 1024;

/// Returns an input made of real ones.
pub fn mutate(seeds: &[Vec<u8>], format: Format, chance: &mut Chance) -> Vec<u8> {
    let pick = |chance: &mut Chance| seeds.get(chance.below(seeds.len())).cloned();
    let mut bytes = pick(chance).unwrap_or_default();
    let other = pick(chance).unwrap_or_default();
    // Usually a few changes, sometimes many.
    let changes = match chance.below(8) {
        0..=3 => 1,
        4..=6 => 1 + chance.below(4),
        _ => 1 + chance.below(16),
    };
    for _ in 0..changes {
        match format {
            _ if chance.once_in(12) => bytes::change(&mut bytes, chance),
            Format::Wire => bytes = wire::change(&bytes, &other, chance),
            Format::Lines => text::change_lines(&mut bytes, &other, chance),
            Format::Word => text::change_word(&mut bytes, &other, chance),
        }
        bytes.truncate(BYTES_MAX);
    }
    bytes
}
