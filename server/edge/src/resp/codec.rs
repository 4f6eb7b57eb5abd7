//! RESP, the protocol of Redis: commands in, replies out.
//!
//! Clients send a command as an array of bulk strings, and people send it as a line of words. A reply has the form of
//! RESP2, or of RESP3 after `HELLO 3`.
//!
//! Crates for RESP read any value, nested as deep as its sender likes: 64 KiB of `*1\r\n` overflow the stack of
//! `redis-protocol` 6.0. A server needs one level only.

use std::io::Write as _;

use smallvec::SmallVec;

/// Largest number of words of a command.
pub(super) const WORDS_MAX: usize = 64;

/// Longest line with a length, in bytes.
const LINE_BYTES_MAX: usize = 32;

/// Longest part of a client's text in an error, in bytes.
const QUOTED_BYTES_MAX: usize = 64;

/// A command: its name and its arguments.
pub(super) type Words<'a> = SmallVec<[&'a [u8]; 8]>;

/// Error: bytes that are no command. The connection has to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

/// Removes the first command from the bytes. It may be empty. None: it is incomplete, and the bytes stay.
pub(super) fn next_command<'a>(
    bytes: &mut &'a [u8],
    bytes_max: usize,
) -> Result<Option<Words<'a>>, Malformed> {
    let mut rest = *bytes;
    let words = match rest.first() {
        None => return Ok(None),
        Some(b'*') => array(&mut rest, bytes_max)?,
        Some(_) => line(&mut rest)?,
    };
    let length = match words {
        Some(_) => bytes.len() - rest.len(),
        None => bytes.len(),
    };
    if length > bytes_max {
        return Err(Malformed("too big command"));
    }
    if words.is_some() {
        *bytes = rest;
    }
    Ok(words)
}

fn array<'a>(rest: &mut &'a [u8], bytes_max: usize) -> Result<Option<Words<'a>>, Malformed> {
    let Some(count) = number(rest, b'*')? else {
        return Ok(None);
    };
    let count = usize::try_from(count).unwrap_or(0);
    if count > WORDS_MAX {
        return Err(Malformed("invalid multibulk length"));
    }
    let mut words = Words::new();
    for _ in 0..count {
        let Some(length) = number(rest, b'$')? else {
            return Ok(None);
        };
        let length = usize::try_from(length).ok();
        let length = length.filter(|length| *length <= bytes_max);
        let length = length.ok_or(Malformed("invalid bulk length"))?;
        let Some((word, after)) = rest.split_at_checked(length) else {
            return Ok(None);
        };
        let Some((end, after)) = after.split_at_checked(2) else {
            return Ok(None);
        };
        if end != b"\r\n" {
            return Err(Malformed("bulk string of another length"));
        }
        words.push(word);
        *rest = after;
    }
    Ok(Some(words))
}

/// Removes a line that has a mark and a number. None: it is incomplete.
fn number(rest: &mut &[u8], mark: u8) -> Result<Option<i64>, Malformed> {
    match rest.first() {
        None => return Ok(None),
        Some(first) if *first == mark => {}
        Some(_) => return Err(Malformed("expected '$'")),
    }
    let start = rest.get(..LINE_BYTES_MAX).unwrap_or(rest);
    let Some(end) = start.iter().position(|byte| *byte == b'\n') else {
        return match start.len() {
            LINE_BYTES_MAX => Err(Malformed("too big count string")),
            _ => Ok(None),
        };
    };
    let (line, after) = rest.split_at(end);
    let digits = line.get(1..).and_then(|line| line.strip_suffix(b"\r"));
    let number = digits.and_then(integer);
    *rest = after.get(1..).unwrap_or_default();
    number.map(Some).ok_or(Malformed("invalid length"))
}

/// Removes a line of words. None: it is incomplete.
fn line<'a>(rest: &mut &'a [u8]) -> Result<Option<Words<'a>>, Malformed> {
    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
        return Ok(None);
    };
    let (line, after) = rest.split_at(end);
    *rest = after.get(1..).unwrap_or_default();
    let words = line.split(u8::is_ascii_whitespace);
    let words: Words<'_> = words.filter(|word| !word.is_empty()).collect();
    match words.len() > WORDS_MAX {
        true => Err(Malformed("too many words in a line")),
        false => Ok(Some(words)),
    }
}

/// Returns the number that a text is.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    str::from_utf8(text).ok()?.parse().ok()
}

/// Returns a client's text for an error: printable, and not long.
pub(super) fn quoted(text: &[u8]) -> String {
    let text = text.get(..QUOTED_BYTES_MAX).unwrap_or(text);
    text.escape_ascii().to_string()
}

/// Version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Version {
    #[default]
    Resp2,
    Resp3,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    Simple(&'static str),
    /// A code, and a text of one line.
    Error(&'static str, String),
    Bulk(&'a [u8]),
    Null,
    Integer(i64),
    /// An array without elements.
    Empty,
    /// Keys and their values.
    Map(Vec<(&'static str, Reply<'a>)>),
    /// The answer to `THROTTLE`.
    Integers([i64; 5]),
}

impl Reply<'_> {
    pub(super) const OK: Self = Self::Simple("OK");

    /// Returns an error with the usual code.
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self::Error("ERR", text.into())
    }

    /// Appends the reply.
    pub(super) fn write(&self, version: Version, answers: &mut Vec<u8>) {
        // Writing to memory cannot fail.
        let _ = match self {
            Self::Simple(text) => write!(answers, "+{text}\r\n"),
            Self::Error(code, text) => write!(answers, "-{code} {text}\r\n"),
            Self::Bulk(text) => {
                let _ = write!(answers, "${}\r\n", text.len());
                answers.extend_from_slice(text);
                answers.write_all(b"\r\n")
            }
            Self::Null if version == Version::Resp3 => answers.write_all(b"_\r\n"),
            Self::Null => answers.write_all(b"$-1\r\n"),
            Self::Integer(number) => write!(answers, ":{number}\r\n"),
            Self::Empty => answers.write_all(b"*0\r\n"),
            Self::Map(entries) => {
                let _ = match version {
                    Version::Resp2 => write!(answers, "*{}\r\n", entries.len() * 2),
                    Version::Resp3 => write!(answers, "%{}\r\n", entries.len()),
                };
                for (key, value) in entries {
                    Reply::Bulk(key.as_bytes()).write(version, answers);
                    value.write(version, answers);
                }
                return;
            }
            Self::Integers([limited, limit, remaining, retry, reset]) => write!(
                answers,
                "*5\r\n:{limited}\r\n:{limit}\r\n:{remaining}\r\n:{retry}\r\n:{reset}\r\n"
            ),
        };
    }
}
