//! Messages that are small on the wire and large in memory.
//!
//! An empty field of a Protobuf message takes two bytes on the wire, and a hundred bytes or more when decoded: 4 MiB
//! become half a gigabyte. So the server counts the fields of a large message, and the fields in those, before it
//! decodes the message (Protocol Buffers, "Encoding").

/// Largest message that is not checked, because it cannot become large.
const LOOKED_AT: usize = 64 * 1024;

/// Most fields in a message, nested ones included. A child server's request for a thousand resources with sixty-four
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
    match count(message, 1, &mut left) {
        Some(()) => Ok(()),
        None => Err(format!(
            "the message has more than {PARTS_MAX} parts; ask for fewer resources at once"
        )),
    }
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
fn field(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let (tag, rest) = varint(message)?;
    let empty: &[u8] = &[];
    match tag & 7 {
        0 => varint(rest).map(|(_, rest)| (empty, rest)),
        1 => rest.get(8..).map(|rest| (empty, rest)),
        2 => {
            let (length, rest) = varint(rest)?;
            rest.split_at_checked(usize::try_from(length).ok()?)
        }
        5 => rest.get(4..).map(|rest| (empty, rest)),
        _ => None,
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (position, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * position).min(63);
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(position + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use doorward_proto::doorman as wire;
    use prost::Message;

    use super::*;

    #[test]
    fn a_message_of_nothing_but_parts_is_refused() {
        // Field 2 of length 0, again and again.
        let flat = [0x12, 0].repeat(1_000_000);
        assert!(check(&flat).is_err());
        // The same inside of one field 2.
        let mut nested = vec![0x12];
        prost::encoding::encode_varint(2_000_000, &mut nested);
        nested.extend(flat);
        assert!(check(&nested).is_err());
    }

    #[test]
    fn the_largest_request_of_an_honest_child_passes() {
        let band = |priority| wire::PriorityBandAggregate {
            priority,
            num_clients: 1_000,
            wants: 100.0,
            ..wire::PriorityBandAggregate::default()
        };
        let resource = |number: u32| wire::ServerCapacityResourceRequest {
            resource_id: format!("resources/of/a/child/{number}"),
            wants: (0..64).map(band).collect(),
            ..wire::ServerCapacityResourceRequest::default()
        };
        let request = wire::GetServerCapacityRequest {
            server_id: "leaf".to_owned(),
            resource: (0..1_000).map(resource).collect(),
            ..wire::GetServerCapacityRequest::default()
        };
        let bytes = request.encode_to_vec();
        assert!(bytes.len() > LOOKED_AT);
        assert_eq!(check(&bytes), Ok(()));
    }

    #[test]
    fn noise_is_the_decoders_to_refuse() {
        for noise in [vec![0xff; 100_000], vec![0x0f; 100_000]] {
            assert_eq!(check(&noise), Ok(()));
        }
    }
}
