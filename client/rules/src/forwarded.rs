//! The `Forwarded` header (RFC 7239).
//!
//! An element without `for`, with two, or malformed counts as a hop that is no address. A quote that is left open takes
//! the rest of its own line only.

use smallvec::SmallVec;

use crate::address::Entry;
use crate::value::INLINE;
use crate::who::trimmed;

/// Returns the elements of a line that are not empty.
pub(crate) fn elements(line: &[u8]) -> SmallVec<[&[u8]; 8]> {
    let elements = split(line, b',').into_iter().map(trimmed);
    elements.filter(|element| !element.is_empty()).collect()
}

/// Reads the `for` of an element.
pub(crate) fn entry<'a>(element: &[u8]) -> Entry<'a> {
    let mut found = None;
    for pair in split(element, b';').into_iter().map(trimmed) {
        if pair.is_empty() {
            continue;
        }
        let Some(at) = pair.iter().position(|byte| *byte == b'=') else {
            return Entry::Invalid;
        };
        let (name, value) = pair.split_at(at);
        let value = value.get(1..).and_then(unquoted);
        let (true, Some(value)) = (is_token(name), value) else {
            return Entry::Invalid;
        };
        if name.eq_ignore_ascii_case(b"for") {
            let entry = match Entry::read(&value) {
                Entry::Known(address) => Entry::Known(address),
                Entry::Told(name) => Entry::Told(name.into_owned()),
                Entry::Invalid => Entry::Invalid,
            };
            if found.replace(entry).is_some() {
                return Entry::Invalid;
            }
        }
    }
    found.unwrap_or(Entry::Invalid)
}

/// Splits a text outside of quotes.
fn split(text: &[u8], at: u8) -> SmallVec<[&[u8]; 8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let is_end = |byte: &u8| {
        let is_end = !is_quoted && *byte == at;
        if is_escaped {
            is_escaped = false;
        } else if *byte == b'"' {
            is_quoted = !is_quoted;
        } else {
            is_escaped = is_quoted && *byte == b'\\';
        }
        is_end
    };
    text.split(is_end).collect()
}

/// Returns the content of a token or quoted text; `None` if it is malformed.
fn unquoted(value: &[u8]) -> Option<SmallVec<[u8; INLINE]>> {
    let Some(rest) = value.strip_prefix(b"\"") else {
        let is_text = |byte: &u8| byte.is_ascii_graphic() && *byte != b'"';
        return (!value.is_empty() && value.iter().all(is_text)).then(|| value.into());
    };
    let mut content = SmallVec::new();
    let mut bytes = rest.iter();
    loop {
        match *bytes.next()? {
            b'"' => return (bytes.len() == 0).then_some(content),
            b'\\' => content.push(*bytes.next()?),
            byte => content.push(byte),
        }
    }
}

fn is_token(name: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !name.is_empty() && name.iter().all(is_letter)
}
