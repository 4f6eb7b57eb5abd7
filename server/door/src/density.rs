//! Messages that are small on the wire and large in memory.
//!
//! An empty field of a Protobuf message takes two bytes on the wire, and a hundred bytes or more when decoded: 4 MiB
//! become half a gigabyte. So the server counts the fields of a large message, and the fields in those, before it
//! decodes the message (Protocol Buffers, "Encoding").

use prost::encoding::decode_varint;

/// Largest message that is not checked, because it cannot become large.
const LOOKED_AT: usize = 64 * 1024;

/// Most fields in a message, nested ones included. An honest request for a thousand resources with sixty-four
/// priorities each has some hundred thousand.
const PARTS_MAX: usize = 200_000;

/// Checks a message before it is decoded. Invalid Protobuf passes, because the decoder reports it better.
///
/// # Errors
///
/// If the message has too many fields.
pub(super) fn check(message: &[u8]) -> Result<(), String> {
    if message.len() <= LOOKED_AT {
        return Ok(());
    }
    let mut left = PARTS_MAX;
    count(message, 1, &mut left).ok_or_else(|| {
        format!("the message has more than {PARTS_MAX} parts; ask for fewer resources at once")
    })
}

/// Counts the fields of a message and, down to `depth`, of any nested message. None: there are too many.
fn count(mut message: &[u8], depth: usize, left: &mut usize) -> Option<()> {
    while !message.is_empty() {
        *left = left.checked_sub(1)?;
        let Some((part, rest)) = field(message) else {
            return Some(());
        };
        if depth > 0 {
            count(part, depth - 1, left)?;
        }
        message = rest;
    }
    Some(())
}

/// Returns the content of the first field, if it may be a nested message, and all bytes after the field. None: invalid
/// Protobuf.
fn field(mut message: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut varint = || decode_varint(&mut message).ok();
    let wire_type = varint()? & 7;
    let length = match wire_type {
        0 => varint().map(|_| 0),
        1 => Some(8),
        2 => varint(),
        5 => Some(4),
        _ => None,
    };
    let (content, rest) = message.split_at_checked(usize::try_from(length?).ok()?)?;
    Some((if wire_type == 2 { content } else { &[] }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a field of this number with a nested message.
    fn nested(number: u8, message: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2];
        let mut length = message.len();
        while length > 0x7f {
            field.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        field.push(length as u8);
        field.extend(message);
        field
    }

    #[test]
    fn a_message_of_nothing_but_parts_is_refused() {
        let flat = nested(2, &[]).repeat(1_000_000);
        assert!(check(&flat).is_err());
        assert!(check(&nested(2, &flat)).is_err());
    }

    #[test]
    fn the_largest_honest_request_passes() {
        // A thousand resources with sixty-four priorities of three fields each.
        let priority = nested(2, &[0x08, 1, 0x10, 2, 0x19, 0, 0, 0, 0, 0, 0, 0, 1]);
        let resource = nested(
            2,
            &[nested(1, b"resources/of/a/child"), priority.repeat(64)].concat(),
        );
        let request = resource.repeat(1_000);
        assert!(request.len() > LOOKED_AT);
        assert_eq!(check(&request), Ok(()));
    }

    #[test]
    fn noise_is_the_decoders_to_refuse() {
        for noise in [vec![0xff; 100_000], vec![0x0f; 100_000]] {
            assert_eq!(check(&noise), Ok(()));
        }
    }
}
