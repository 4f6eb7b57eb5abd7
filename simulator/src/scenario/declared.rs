//! Fields of a scenario file, each declared once: its name, type, range, default, and what it is for.
//!
//! From one declaration come the type that holds what was read, the reading of it with every problem,
//! the writing of it as a file again, and its row in the tables of `docs/simulator.md`
//! ([`crate::scenario::reference`]). Three macros declare: [`record!`] a map, [`kinds!`] one of several
//! things of which each has a key, and [`words!`] one of some words.
//!
//! A field is `name as "key": Type = SHAPE, ABSENT;`. The key is the name if no other is given; behind it may
//! stand what it was called before, `as "key" | "older"`. The shape says how a value is read
//! ([`crate::scenario::shape`]). What its absence means is one of
//! - `needed(what)`: it is missing; the message says what to give;
//! - `or(value)`: this value, which is not written either;
//! - `or_from(text, |map, reader| …)`: what the fields above it say, by their names; `text` is for the table;
//! - `optional(text)`: None; `text` says what that means;
//! - `or_empty()`: an empty list;
//! - `flattened()`: it is no field, but has fields of its own in the same map;
//! - `by_hand(HAND)`: it is made of some keys by hand.
//!
//! Behind that may stand `check(|at, value, reader| …)`, which notes what is wrong beside other fields;
//! `unless(|value, scenario| …)`, when it is not written; and `by(|value, scenario| …)`, how it is.

#[macro_use]
mod field;
#[macro_use]
mod record;
#[macro_use]
mod kinds;

use doorward_documents::form::{At, Map, Names};

use crate::scenario::Scenario;
use crate::scenario::read::Reader;
use crate::scenario::shape::Shape;
use crate::scenario::write::CannotWrite;
use crate::scenario::yaml::Yaml;

/// What takes some keys of a map.
pub(crate) trait Fields: Sized {
    /// These keys. None: it is not known what kind of thing it is.
    fn names_in(map: &Map<'_>) -> Option<Vec<&'static Names>>;

    /// Reads them. None: it is noted what is wrong.
    fn read_fields(map: &Map<'_>, reader: &mut Reader<'_>) -> Option<Self>;

    /// Puts them into a map.
    fn write_fields(&self, out: &mut Yaml, of: &Scenario) -> Result<(), CannotWrite>;

    /// Their rows in the table of fields.
    fn rows() -> Vec<FieldRow>;
}

/// Fields that make up a map of their own.
pub(crate) trait Record: Fields {
    /// One as it is written, for messages.
    const EXAMPLE: &'static str;

    /// Reads it. None: it is noted what is wrong.
    fn read(at: &At<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let map = at.map(Self::EXAMPLE, &mut reader.problems)?;
        if let Some(names) = Self::names_in(&map) {
            map.check_keys(&names, &mut reader.problems);
        }
        Self::read_fields(&map, reader)
    }
}

/// One of some words.
pub(crate) trait Words: Copy + PartialEq + 'static {
    /// Each, and what it means.
    const WORDS: &'static [(&'static str, Self)];

    /// The word for it.
    fn word(self) -> &'static str {
        let mut words = Self::WORDS.iter();
        words.find(|it| it.1 == self).map_or("", |it| it.0)
    }
}

/// What can be written as a value.
pub(crate) trait Written {
    /// The value.
    fn written(&self, of: &Scenario) -> Result<Yaml, CannotWrite>;
}

/// Some keys that make up one value, read and written by hand.
pub(crate) trait ByHand {
    /// What is read of them.
    type Value;

    /// The keys.
    const NAMES: &'static [&'static Names];

    /// Reads them. None: it is noted what is wrong.
    fn read(map: &Map<'_>, reader: &mut Reader<'_>) -> Option<Self::Value>;

    /// Puts them into a map.
    fn write(value: &Self::Value, out: &mut Yaml);

    /// Their rows in the table of fields.
    fn rows() -> Vec<FieldRow>;
}

/// What may be absent.
pub(crate) trait Optional {
    /// What it is if it is there.
    type Inner;
}

impl<T> Optional for Option<T> {
    type Inner = T;
}

/// A row of the table of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldRow {
    /// Its key.
    pub key: String,
    /// What its value is.
    pub is: String,
    /// What its absence means. Empty: it must be there.
    pub absent: String,
    /// What it is for.
    pub doc: String,
    /// What stands beside it, if it is one of several kinds.
    pub beside: Vec<FieldRow>,
}

impl FieldRow {
    /// Of a field; `doc` as it stands in the source.
    pub(crate) fn new<T>(
        names: &Names,
        shape: &Shape<T>,
        absent: impl Into<String>,
        doc: &str,
    ) -> Self {
        Self {
            key: names.first().copied().unwrap_or_default().to_owned(),
            is: shape.is.clone(),
            absent: absent.into(),
            doc: doc.trim().to_owned(),
            beside: Vec::new(),
        }
    }
}

/// For the closures of declarations: says what they take.
pub(crate) fn absent<T>(
    map: &Map<'_>,
    reader: &mut Reader<'_>,
    value: impl FnOnce(&Map<'_>, &mut Reader<'_>) -> Option<T>,
) -> Option<T> {
    value(map, reader)
}

/// For the closures of declarations: says what they take.
pub(crate) fn checked<T>(
    at: &At<'_>,
    value: &T,
    reader: &mut Reader<'_>,
    check: impl FnOnce(&At<'_>, &T, &mut Reader<'_>),
) {
    check(at, value, reader);
}

/// For the closures of declarations: says what they take.
pub(crate) fn finished<T>(
    whole: T,
    map: &Map<'_>,
    reader: &mut Reader<'_>,
    finish: impl FnOnce(T, &Map<'_>, &mut Reader<'_>) -> Option<T>,
) -> Option<T> {
    finish(whole, map, reader)
}

/// For the closures of declarations: says what they take.
pub(crate) fn applied<T, R>(value: &T, of: &Scenario, say: impl FnOnce(&T, &Scenario) -> R) -> R {
    say(value, of)
}

/// Whether a value is another one than its default.
pub(crate) fn differ<T: PartialEq>(value: &T, default: &T) -> bool {
    value != default
}

/// The name of a field, before its older ones.
pub(crate) fn main_name(names: &'static Names) -> &'static str {
    names.first().copied().unwrap_or_default()
}

/// A default, for the table.
pub(crate) fn shown(value: &impl Written) -> String {
    match value.written(&Scenario::default()) {
        Ok(Yaml::Plain(text)) if text == "\"\"" => "empty".to_owned(),
        Ok(Yaml::Map(_)) | Err(_) => "see below".to_owned(),
        Ok(value) => format!("`{}`", value.flow()),
    }
}
