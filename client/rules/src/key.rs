//! Keys of local limits from values of any bytes.

use doorward_limits::KeyParts;

/// Numbers that precede the bytes of a value that is no UTF-8 text, or stand for a missing value.
const MISSING: u64 = 0;
const BYTES: u64 = 1;

/// Adds a value to a key. A missing value equals no other.
pub(crate) fn value(key: KeyParts, value: Option<&[u8]>) -> KeyParts {
    let Some(value) = value else {
        return key.number(MISSING);
    };
    if let Ok(text) = std::str::from_utf8(value) {
        return key.text(text);
    }
    let key = key.number(BYTES).number(value.len() as u64);
    value.chunks(8).fold(key, |key, chunk| {
        let number = chunk
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        key.number(number)
    })
}
