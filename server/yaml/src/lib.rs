//! A YAML document as it stands: values with their places, of whatever type they are.
//!
//! Reading straight into typed structs would stop at the first value of a wrong type. Read like
//! this, everything else can still be looked at, so that all problems are found at once. The
//! documents of operators are read through it: templates and rules.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error as YamlError, Spanned};

/// The most maps and lists in one another. Reading goes down the stack: in a build without optimisation, so many levels fit
/// 512 KiB, a quarter of a thread's stack. Documents of ours have a dozen levels.
pub const DEPTH_MAX: usize = 32;

/// The most maps, lists and scalars: more than a document of the largest size has in practice.
const NODES_MAX: usize = 4_000_000;

/// The most values that anchors name, and that aliases repeat: a document of some bytes must not become gigabytes.
const REPEATED_MAX: usize = 100_000;

/// Texts out of a document are cut to this many characters in messages.
const CHARS_SHOWN_MAX: usize = 40;

/// Where something stands; both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl Position {
    /// The first character of the document.
    pub const START: Self = Self { line: 1, column: 1 };
}

/// The problem of a text that cannot be read, and its place.
pub type Problem = (Position, String);

/// A kind of documents.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The largest document, in bytes.
    pub bytes_max: usize,
    /// Advice about a larger one, behind a semicolon.
    pub if_larger: &'static str,
    /// Advice about a second document in one text.
    pub if_several: &'static str,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct PlacedValue {
    /// Its place.
    pub place: Position,
    /// The bytes of the text at which it is written. An alias has another place.
    pub source: Range<u32>,
    /// The value.
    pub value: Value,
}

/// A value of whatever type it is.
#[derive(Clone, Debug)]
pub enum Value {
    /// Nothing: a key without a value.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number that fits.
    Whole(i64),
    /// Any other number, infinite ones and those that are none among them.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<PlacedValue>),
    /// A map, in the order in which it is written. Keys may be there twice.
    Map(Vec<(PlacedKey, PlacedValue)>),
}

/// A key of a map, as text, and where it stands.
#[derive(Clone, Debug)]
pub struct PlacedKey {
    /// Its place.
    pub place: Position,
    /// Its text.
    pub text: String,
}

impl Value {
    /// Describes the value, for people.
    pub fn described(&self) -> String {
        match self {
            Self::Null => "nothing".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Whole(value) => value.to_string(),
            // As 1e300 rather than with three hundred zeros, and as 7 rather than 7.0.
            Self::Number(value) => {
                let text = format!("{value:?}");
                text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
            }
            Self::Text(text) => {
                let (start, more) = shortened(text);
                format!("{start:?}{more}")
            }
            Self::List(_) => "a list".to_owned(),
            Self::Map(_) => "a map".to_owned(),
        }
    }

    /// A scalar as text; None for what is no scalar or nothing.
    pub fn as_text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Bool(_) | Self::Whole(_) | Self::Number(_) => Some(self.described()),
            Self::Null | Self::List(_) | Self::Map(_) => None,
        }
    }

    /// A number; whole ones too.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Whole(value) => Some(*value as f64),
            Self::Number(value) => Some(*value),
            _ => None,
        }
    }

    /// A duration: seconds as a number, or a text such as `15s` or `1m 30s`.
    pub fn as_duration(&self) -> Option<Duration> {
        match self {
            Self::Text(text) => humantime::parse_duration(text).ok(),
            value => Duration::try_from_secs_f64(value.as_number()?).ok(),
        }
    }
}

impl PlacedValue {
    /// Returns the entries of a map; none of anything else.
    pub fn entries(&self) -> &[(PlacedKey, Self)] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the items of a list; none of anything else.
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// Returns the first value of a key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let mut entries = self.entries().iter();
        entries.find(|(k, _)| k.text == key).map(|(_, value)| value)
    }
}

/// The start of a text out of a document, and `…` if there is more of it.
pub fn shortened(text: &str) -> (&str, &'static str) {
    match text.char_indices().nth(CHARS_SHOWN_MAX) {
        Some((end, _)) => (text.get(..end).unwrap_or(text), "…"),
        None => (text, ""),
    }
}

impl Format {
    /// Reads a document, and leaves what it means to the caller. None: there is nothing in it.
    ///
    /// # Errors
    ///
    /// If it is no text, no YAML, or too large.
    pub fn read(&self, bytes: &[u8]) -> Result<Option<PlacedValue>, Problem> {
        // The reader of a file stops behind the limit, perhaps in the middle of a character.
        if bytes.len() > self.bytes_max {
            return Err((Position::START, self.too_large()));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
            let message = "is not UTF-8 text; save it as UTF-8".to_owned();
            (Position { line, column: 1 }, message)
        })?;
        let options = serde_saphyr::options! {
            with_snippet: false,
            emit_comments: false,
            budget: serde_saphyr::budget! {
                max_depth: DEPTH_MAX,
                max_nodes: NODES_MAX,
                max_events: 2 * NODES_MAX,
                max_recorded_anchor_events: REPEATED_MAX,
                max_total_scalar_bytes: 2 * text.len() + REPEATED_MAX,
                enforce_alias_anchor_ratio: false,
            },
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPEATED_MAX },
            // Numbers that are none, and keys given twice, are reported with their field. Despite its
            // name this policy hands over both entries to who asks for them one by one, as we do.
            non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
            duplicate_keys: DuplicateKeyPolicy::LastWins,
        };
        serde_saphyr::from_str_with_options::<Option<PlacedValue>>(text, options)
            .map_err(|error| self.no_document(&error))
    }

    /// The problem of a document that is too large. Its size is unknown: the reader of a file stops
    /// behind the limit.
    fn too_large(&self) -> String {
        let (most, advice) = (self.bytes_max, self.if_larger);
        format!("is larger than the {most} bytes that a document may have{advice}")
    }

    /// The problem of a text that the YAML parser refuses.
    fn no_document(&self, error: &YamlError) -> Problem {
        let place = error
            .location()
            .map_or(Position::START, |location| Position {
                line: location.line().max(1),
                column: location.column().max(1),
            });
        // The place is ours to say; the rest of the first line says what is wrong.
        let message = error.render();
        let message = message.lines().next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let cut = message.split_once(" at line ");
        let message = cut.map_or(message, |(message, _)| message);
        let starts = |start: &str| message.starts_with(start);
        let message = if starts("multiple YAML documents") {
            format!("a second document starts here; {}", self.if_several)
        } else if starts("budget breached: Depth") {
            format!(
                "is in more than the {DEPTH_MAX} maps and lists in one another that there may be"
            )
        } else if starts("budget breached: Nodes") || starts("budget breached: Events") {
            self.too_large()
        } else if starts("alias replay") || starts("budget breached") {
            // Of anchors, aliases, merged maps, or what these repeat.
            "aliases repeat too much; write the values out".to_owned()
        } else if starts("recursive references") {
            // The parser's words for it are about its own types.
            "is a cycle: what this refers to contains it; write it out, without the alias"
                .to_owned()
        } else if message.contains("alias") {
            format!("is no YAML: {message}; a text that starts with '*' needs quotes")
        } else {
            format!("is no YAML: {message}")
        };
        (place, message)
    }
}

impl<'de> Deserialize<'de> for PlacedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned {
            value,
            referenced,
            defined,
        } = Spanned::<Value>::deserialize(deserializer)?;
        let place = Position {
            line: referenced.line(),
            column: referenced.column(),
        };
        let (start, length) = (defined.span().byte_offset(), defined.span().byte_len());
        let [start, length] = [start, length].map(|it| it.unwrap_or_default() as u32);
        let source = start..start.saturating_add(length);
        Ok(Self {
            place,
            source,
            value,
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Whole(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Number(value as f64), Value::Whole))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(Value::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = entries.next_entry::<PlacedValue, PlacedValue>()? {
            let text = key.value.as_text().unwrap_or_else(|| key.value.described());
            map.push((
                PlacedKey {
                    place: key.place,
                    text,
                },
                value,
            ));
        }
        Ok(Value::Map(map))
    }
}
