//! Inputs by chance: a real input with a few changes that its readers still follow.
//!
//! The first check of a parser refuses random bytes. Inputs that are nearly right reach the code behind it.

use std::ops::Range;

use prost::encoding::{decode_varint, encode_varint};

use crate::chance::Chance;

/// Format of an input, which decides how it changes.
#[derive(Clone, Copy, Debug)]
pub enum Format {
    /// A protobuf message.
    Wire,
    /// Lines of text: YAML, CSV, JSON.
    Lines,
    /// A word or two: a glob, an address, a duration.
    Word,
}

/// The longest input.
const BYTES_MAX: usize = 64 * 1024;

/// Words and numbers at which programs break. Spaces separate them.
const WORDS: &str = "0 -0 -1 1 2 10 60 64 0.1 0.5 1.5 99 1000 1001 1e-9 1e-38 5e-324 1e9 1e15 1.0000000000000002e15 1e16 \
     1e300 1e309 -1e309 1.7976931348623157e308 NaN .nan .inf inf -inf 4294967295 9007199254740992 9223372036854775807 \
     9223372036854775808 18446744073709551615 18446744073709551616 -9223372036854775809 0x10 0o17 1_000 ~ null true \
     no * ** ? [a-z] [^a] [ [] [a- \\ a\\ {} [[[[ {a: &a *a <<: !!binary !!str --- ... | >- # %2F % %zz etcd:// \
     etcd:///  etcd: :0 [::1]:1 10ms 1h 7d -1s 1ns 100000000y \u{202e} \u{1b}[2J \u{0}";

/// Returns an input made of real ones.
pub fn mutate(seeds: &[Vec<u8>], format: Format, chance: &mut Chance) -> Vec<u8> {
    let pick = |chance: &mut Chance| seeds.get(chance.below(seeds.len())).cloned();
    let mut bytes = pick(chance).unwrap_or_default();
    let other = pick(chance).unwrap_or_default();
    // Mostly a few changes, now and then many.
    let changes = match chance.below(8) {
        0..=3 => 1,
        4..=6 => 1 + chance.below(4),
        _ => 1 + chance.below(16),
    };
    for _ in 0..changes {
        bytes = match format {
            _ if chance.once_in(12) => changed_bytes(bytes, chance),
            Format::Wire => changed_message(bytes, &other, chance),
            Format::Lines if chance.once_in(2) => changed_lines(&bytes, &other, chance),
            Format::Lines | Format::Word => changed_word(&bytes, &other, chance),
        };
        bytes.truncate(BYTES_MAX);
    }
    bytes
}

/// Changes, adds, drops or repeats some bytes.
fn changed_bytes(mut bytes: Vec<u8>, chance: &mut Chance) -> Vec<u8> {
    let at = chance.below(bytes.len() + 1);
    let end = bytes.len().min(at + 1 + chance.below(32));
    let byte = chance.number().to_le_bytes()[0];
    match chance.below(5) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..end)),
        2 => bytes.extend_from_within(at..end),
        3 if at < end => bytes[at] ^= 1 << chance.below(8),
        _ => bytes.insert(at, byte),
    }
    bytes
}

/// Puts another word in the place of one.
fn changed_word(bytes: &[u8], other: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    let other = String::from_utf8_lossy(other);
    let (places, others) = (words(&text), words(&other));
    let at = places.get(chance.below(places.len())).cloned();
    let at = at.unwrap_or(0..text.len());
    let new = match (chance.below(6), others.get(chance.below(others.len()))) {
        (0 | 1, Some(place)) => other[place.clone()].to_owned(),
        (2, _) => text[at.clone()].repeat(2),
        (3, _) => text[at.clone()].to_owned() + &word(chance),
        _ => word(chance),
    };
    text.replace_range(at, &new);
    text.into_bytes()
}

/// Changes a line: its place, its indentation, or how often it is there.
fn changed_lines(bytes: &[u8], other: &[u8], chance: &mut Chance) -> Vec<u8> {
    let (text, other) = (
        String::from_utf8_lossy(bytes),
        String::from_utf8_lossy(other),
    );
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (at, to) = (chance.below(lines.len()), chance.below(lines.len()));
    let end = lines.len().min(at + 1 + chance.below(8));
    match chance.below(6) {
        0 => drop(lines.drain(at..end)),
        1 if at < end => lines.insert(to, lines[at].clone()),
        2 if at < end => lines.swap(at, to),
        3 if at < end => lines[at].insert_str(0, "  "),
        4 if at < end => lines[at] = lines[at].strip_prefix("  ").unwrap_or("").to_owned(),
        _ => {
            let from = chance.below(other.lines().count());
            let more = other.lines().skip(from).take(1 + chance.below(8));
            lines.splice(at..at, more.map(str::to_owned));
        }
    }
    (lines.join("\n") + "\n").into_bytes()
}

/// Returns the places of words: letters and digits, and what binds them.
fn words(text: &str) -> Vec<Range<usize>> {
    let is_part = |c: char| c.is_alphanumeric() || "._-+".contains(c);
    let mut words: Vec<Range<usize>> = Vec::new();
    for (at, c) in text.char_indices().filter(|(_, c)| is_part(*c)) {
        let end = at + c.len_utf8();
        match words.last_mut() {
            Some(last) if last.end == at => last.end = end,
            _ => words.push(at..end),
        }
    }
    words
}

/// Returns a word at which programs break, a number, or a very long word.
fn word(chance: &mut Chance) -> String {
    let words: Vec<&str> = WORDS.split(' ').collect();
    match chance.below(16) {
        0 => "a".repeat(chance.below(2_000)),
        1 => "\u{1f600}/".repeat(chance.below(200)),
        2 | 3 => number(chance).to_string(),
        4 | 5 => whole(chance).to_string(),
        6 => format!("{}ms", whole(chance)),
        _ => words[chance.below(words.len())].to_owned(),
    }
}

/// Returns a small whole number, any, or one beside a power of two.
fn whole(chance: &mut Chance) -> u64 {
    match chance.below(4) {
        0 => chance.number(),
        1 => chance.number() % 100_000,
        _ => (1_u64 << chance.below(64))
            .wrapping_add(chance.number() % 3)
            .wrapping_sub(1),
    }
}

/// Returns a plausible number, any, or one at which programs break.
fn number(chance: &mut Chance) -> f64 {
    let numbers: Vec<f64> = WORDS.split(' ').filter_map(|it| it.parse().ok()).collect();
    match chance.below(4) {
        0 => f64::from_bits(chance.number()),
        1 => (chance.number() % 100_000) as f64 / 100.0,
        _ => numbers[chance.below(numbers.len())],
    }
}

/// A field of a message: number and kind, and its value without the length.
#[derive(Clone, Debug)]
struct Field {
    key: u64,
    value: Vec<u8>,
}

impl Field {
    fn any(chance: &mut Chance) -> Self {
        // Fields of Doorward's messages have small numbers, or numbers from 101 up.
        let number = [1, 101][chance.below(2)] + chance.number() % 20;
        let mut field = Self {
            key: number << 3 | [0, 1, 2, 5][chance.below(4)],
            value: Vec::new(),
        };
        field.change(&[], chance);
        field
    }

    fn change(&mut self, other: &[u8], chance: &mut Chance) {
        let value = std::mem::take(&mut self.value);
        self.value = match self.key & 7 {
            0 => {
                let mut varint = Vec::new();
                encode_varint(whole(chance), &mut varint);
                varint
            }
            1 => changed_number(&value, chance),
            5 => chance.number().to_le_bytes()[..4].to_vec(),
            _ if !chance.once_in(8) && fields(&value).is_some_and(|it| !it.is_empty()) => {
                let others = fields(other).unwrap_or_default();
                let nested = others.into_iter().find(|it| it.key & 7 == 2);
                changed_message(
                    value,
                    &nested.map(|it| it.value).unwrap_or_default(),
                    chance,
                )
            }
            _ if !value.is_empty() && value.len().is_multiple_of(8) && chance.once_in(2) => {
                let mut numbers: Vec<Vec<u8>> = value.chunks(8).map(<[u8]>::to_vec).collect();
                let at = chance.below(numbers.len());
                match chance.below(4) {
                    0 => drop(numbers.remove(at)),
                    1 => numbers.insert(at, numbers[at].clone()),
                    _ => numbers[at] = changed_number(&numbers[at], chance),
                }
                numbers.concat()
            }
            _ => changed_word(&value, other, chance),
        };
    }
}

/// Returns eight bytes for a number of eight bytes: near it, or any other.
fn changed_number(eight: &[u8], chance: &mut Chance) -> Vec<u8> {
    let before = f64::from_le_bytes(eight.try_into().unwrap_or_default());
    let after = match chance.below(8) {
        0 => f64::from_bits(whole(chance)),
        1 => before * 2.0,
        2 => before / 3.0,
        3 => before.next_up(),
        _ => number(chance),
    };
    after.to_le_bytes().to_vec()
}

/// Changes, drops, repeats, moves or adds a field, at any depth. The lengths around it stay right.
fn changed_message(message: Vec<u8>, other: &[u8], chance: &mut Chance) -> Vec<u8> {
    let Some(mut fields) = fields(&message) else {
        return changed_bytes(message, chance);
    };
    let (at, to) = (chance.below(fields.len()), chance.below(fields.len() + 1));
    match (chance.below(20), fields.get(at).cloned()) {
        (0, Some(_)) => drop(fields.remove(at)),
        (1, Some(field)) => fields.insert(to, field),
        (2, Some(field)) => {
            fields.remove(at);
            fields.insert(to.min(fields.len()), field);
        }
        (3, _) => {
            let others = self::fields(other).unwrap_or_default();
            fields.splice(to..to, others.get(chance.below(others.len())).cloned());
        }
        (4.., Some(_)) => fields[at].change(other, chance),
        _ => fields.insert(to, Field::any(chance)),
    }
    let mut changed = Vec::new();
    for Field { key, value } in fields {
        encode_varint(key, &mut changed);
        if key & 7 == 2 {
            encode_varint(value.len() as u64, &mut changed);
        }
        changed.extend(value);
    }
    changed
}

/// Returns the fields of a message. None: the bytes are no message.
fn fields(mut message: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = decode_varint(&mut message)
            .ok()
            .filter(|key| key >> 3 > 0)?;
        let length = match key & 7 {
            0 => 1 + message.iter().position(|byte| *byte < 0x80)?,
            1 => 8,
            2 => usize::try_from(decode_varint(&mut message).ok()?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (value, rest) = message.split_at_checked(length)?;
        let value = value.to_vec();
        fields.push(Field { key, value });
        message = rest;
    }
    Some(fields)
}
