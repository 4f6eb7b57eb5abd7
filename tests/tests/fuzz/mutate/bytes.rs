//! Mutations of bytes without a known meaning.

use crate::chance::Chance;

/// Changes, adds, drops or repeats a few.
pub fn change(bytes: &mut Vec<u8>, chance: &mut Chance) {
    let at = chance.below(bytes.len() + 1);
    let byte = chance.number().to_le_bytes()[0];
    match chance.below(6) {
        0 => bytes.insert(at, byte),
        1 => bytes.truncate(at),
        2 if at < bytes.len() => {
            let end = bytes.len().min(at + 1 + chance.below(16));
            bytes.drain(at..end);
        }
        3 if at < bytes.len() => {
            let end = bytes.len().min(at + 1 + chance.below(64));
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
        4 if at < bytes.len() => bytes[at] = byte,
        _ if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        _ => bytes.push(byte),
    }
}
