//! Mutations of protobuf messages of any kind: fields are changed, dropped, repeated and taken from other messages, at
//! any depth, with correct lengths around them.

use prost::bytes::Buf;
use prost::encoding::{decode_varint, encode_varint};

use crate::chance::Chance;
use crate::mutate::{bytes, nasty, text};

#[derive(Clone, Debug)]
struct Field {
    number: u64,
    value: Value,
}

#[derive(Clone, Debug)]
enum Value {
    Varint(u64),
    Eight([u8; 8]),
    Four([u8; 4]),
    Bytes(Vec<u8>),
}

/// The fields of the messages of Doorward, most of which are small numbers or from 101 up.
const NUMBERS: [u64; 32] = [
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    101,
    102,
    103,
    104,
    105,
    106,
    107,
    108,
    109,
    110,
    111,
    112,
    113,
    114,
    115,
    116,
    117,
    118,
    119,
    120,
    16,
    99,
    19_000,
    536_870_911,
];

/// Returns a message that differs slightly from the given one, perhaps with a part of another.
pub fn change(message: &[u8], other: &[u8], chance: &mut Chance) -> Vec<u8> {
    let Some(mut fields) = fields(message) else {
        let mut changed = message.to_vec();
        bytes::change(&mut changed, chance);
        return changed;
    };
    change_fields(&mut fields, other, chance);
    encoded(&fields)
}

/// Returns a message without one of its fields, at any depth; `number` counts them all, an outer one before its inner
/// ones. None: there are fewer fields.
pub fn without(message: &[u8], number: usize) -> Option<Vec<u8>> {
    let mut fields = fields(message)?;
    let mut left = number;
    drop_field(&mut fields, &mut left).then(|| encoded(&fields))
}

fn drop_field(fields: &mut Vec<Field>, left: &mut usize) -> bool {
    for at in 0..fields.len() {
        if *left == 0 {
            fields.remove(at);
            return true;
        }
        *left -= 1;
        if let Value::Bytes(inner) = &mut fields[at].value
            && let Some(mut of_inner) = self::fields(inner)
            && drop_field(&mut of_inner, left)
        {
            *inner = encoded(&of_inner);
            return true;
        }
    }
    false
}

fn change_fields(fields: &mut Vec<Field>, other: &[u8], chance: &mut Chance) {
    let at = chance.below(fields.len());
    // Deeper messages get more changes.
    if let Some(field) = fields.get_mut(at)
        && !chance.once_in(5)
    {
        return change_value(&mut field.value, other, chance);
    }
    let to = chance.below(fields.len() + 1);
    match chance.below(6) {
        0 if at < fields.len() => {
            fields.remove(at);
        }
        1 if at < fields.len() => fields.insert(to, fields[at].clone()),
        2 if at < fields.len() => {
            let field = fields.remove(at);
            fields.insert(to.min(fields.len()), field);
        }
        3 => {
            let others = self::fields(other).unwrap_or_default();
            let from = chance.below(others.len());
            fields.splice(to..to, others.get(from).cloned());
        }
        4 if at < fields.len() => fields[at].number = NUMBERS[chance.below(NUMBERS.len())],
        _ => fields.insert(to, any(chance)),
    }
}

fn change_value(value: &mut Value, other: &[u8], chance: &mut Chance) {
    match value {
        Value::Varint(number) => {
            *number = match chance.below(4) {
                0 => number.wrapping_add(1),
                1 => number.wrapping_sub(1),
                _ => nasty::whole(chance),
            }
        }
        Value::Eight(eight) => *eight = changed_number(*eight, chance),
        Value::Four(four) => four.copy_from_slice(&chance.number().to_le_bytes()[..4]),
        Value::Bytes(inner) => match fields(inner).filter(|_| !chance.once_in(8)) {
            Some(mut of_inner) if !of_inner.is_empty() => {
                let others = fields(other).unwrap_or_default();
                let others = others.into_iter().find_map(|field| match field.value {
                    Value::Bytes(bytes) => Some(bytes),
                    _ => None,
                });
                change_fields(&mut of_inner, &others.unwrap_or_default(), chance);
                *inner = encoded(&of_inner);
            }
            _ if !inner.is_empty() && inner.len().is_multiple_of(8) && chance.once_in(2) => {
                change_packed(inner, chance);
            }
            _ => text::change_word(inner, other, chance),
        },
    }
}

/// Numbers of eight bytes each: one of them is changed, dropped or repeated.
fn change_packed(packed: &mut Vec<u8>, chance: &mut Chance) {
    let at = chance.below(packed.len() / 8) * 8;
    let eight: [u8; 8] = packed[at..at + 8].try_into().unwrap();
    match chance.below(4) {
        0 => {
            packed.drain(at..at + 8);
        }
        1 => {
            packed.splice(at..at, eight);
        }
        _ => packed[at..at + 8].copy_from_slice(&changed_number(eight, chance)),
    }
}

fn changed_number(eight: [u8; 8], chance: &mut Chance) -> [u8; 8] {
    let number = f64::from_le_bytes(eight);
    match chance.below(8) {
        0 => nasty::whole(chance).to_le_bytes(),
        1 => (number * 2.0).to_le_bytes(),
        2 => (number / 3.0).to_le_bytes(),
        3 => number.next_up().to_le_bytes(),
        _ => nasty::number(chance).to_le_bytes(),
    }
}

fn any(chance: &mut Chance) -> Field {
    Field {
        number: NUMBERS[chance.below(NUMBERS.len())],
        value: match chance.below(4) {
            0 => Value::Varint(nasty::whole(chance)),
            1 => Value::Eight(nasty::number(chance).to_le_bytes()),
            2 => Value::Four([0xff; 4]),
            _ => Value::Bytes(nasty::word(chance).into_bytes()),
        },
    }
}

/// Returns the fields of a message. None: it is invalid.
fn fields(mut message: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while message.has_remaining() {
        let key = decode_varint(&mut message).ok()?;
        let value = match key & 7 {
            0 => Value::Varint(decode_varint(&mut message).ok()?),
            1 => Value::Eight(taken(&mut message, 8)?.try_into().ok()?),
            2 => {
                let length = usize::try_from(decode_varint(&mut message).ok()?).ok()?;
                Value::Bytes(taken(&mut message, length)?.to_vec())
            }
            5 => Value::Four(taken(&mut message, 4)?.try_into().ok()?),
            _ => return None,
        };
        let number = key >> 3;
        if number == 0 {
            return None;
        }
        fields.push(Field { number, value });
    }
    Some(fields)
}

fn taken<'a>(message: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(taken)
}

fn encoded(fields: &[Field]) -> Vec<u8> {
    let mut message = Vec::new();
    for Field { number, value } in fields {
        let mut key = |kind| encode_varint(number << 3 | kind, &mut message);
        match value {
            Value::Varint(number) => {
                key(0);
                encode_varint(*number, &mut message);
            }
            Value::Eight(eight) => {
                key(1);
                message.extend(eight);
            }
            Value::Four(four) => {
                key(5);
                message.extend(four);
            }
            Value::Bytes(bytes) => {
                key(2);
                encode_varint(bytes.len() as u64, &mut message);
                message.extend(bytes);
            }
        }
    }
    message
}
