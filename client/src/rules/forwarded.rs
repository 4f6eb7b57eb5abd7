//! Entries that proxies write into headers, and the `Forwarded` header (RFC 7239), which has some in its elements.
//!
//! An element without `for`, with two, or malformed counts as a hop that is no address. A quote that is left open takes
//! the rest of its own line only.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use smallvec::SmallVec;

use crate::rules::value::{INLINE, Value};

/// An entry of a list of proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry<'a> {
    Known(IpAddr),
    /// `unknown`, or a name that starts with `_`.
    Told(Value<'a>),
    Invalid,
}

impl<'a> Entry<'a> {
    /// Reads `address`, `address:port`, `[IPv6]`, `[IPv6]:port`, `unknown` or `_name`.
    pub(crate) fn read(text: &'a [u8]) -> Self {
        let read = std::str::from_utf8(text).ok().and_then(Self::parse);
        read.unwrap_or(Self::Invalid)
    }

    fn parse(text: &'a str) -> Option<Self> {
        let known = |address: IpAddr| Self::Known(address.to_canonical());
        if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let is_whole = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
            return is_whole
                .then(|| address.parse::<Ipv6Addr>().ok())?
                .map(|it| known(it.into()));
        }
        if let Ok(address) = text.parse() {
            return Some(known(address));
        }
        let (node, port) = text
            .split_once(':')
            .map_or((text, None), |(node, port)| (node, Some(port)));
        if port.is_some_and(|port| !is_port(port) && !is_name(port)) {
            return None;
        }
        if node.eq_ignore_ascii_case("unknown") {
            return Some(Self::Told(Value::from("unknown")));
        }
        if is_name(node) {
            return Some(Self::Told(Value::from(node)));
        }
        let address: Ipv4Addr = node.parse().ok()?;
        port.is_some_and(is_port).then(|| known(address.into()))
    }
}

/// Returns the elements of a line that are not empty.
pub(crate) fn elements(line: &[u8]) -> SmallVec<[&[u8]; 8]> {
    let elements = split(line, b',').into_iter().map(<[u8]>::trim_ascii);
    elements.filter(|element| !element.is_empty()).collect()
}

/// Reads the `for` of an element.
pub(crate) fn entry<'a>(element: &[u8]) -> Entry<'a> {
    let mut found = None;
    for pair in split(element, b';').into_iter().map(<[u8]>::trim_ascii) {
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

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// Returns whether a text is an obfuscated name of RFC 7239, section 6.3.
fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    text.strip_prefix('_')
        .is_some_and(|name| !name.is_empty() && name.bytes().all(is_letter))
}
