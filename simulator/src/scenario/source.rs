//! Typed values out of a YAML document: serde reads them, and an error says which key is wrong.

use std::error::Error;
use std::fmt;
use std::iter::Enumerate;
use std::slice::Iter;

use doorward_documents::form::hint;
use doorward_documents::keys::near;
use doorward_documents::placed_value::{PlacedKey, PlacedValue, Position, Value};
use doorward_documents::{DocumentError, Problem};
use schemars::JsonSchema;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, Expected, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer, forward_to_deserialize_any};

/// One thing that is wrong with a scenario file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadError {
    /// The keys on the way to it, as `clients[0].wants`. Empty: the document.
    path: String,
    message: String,
    /// The key itself is wrong, and not its value.
    is_key: bool,
    /// Problems of templates, and the name of their file if it is another one.
    templates: Option<(Vec<Problem>, Option<String>)>,
}

pub(crate) type Read<T> = Result<T, ReadError>;

/// The name of [`PlainOrMap`] to serde.
const PLAIN_OR_MAP: &str = "PlainOrMap";

/// The name of [`OneOrMany`] to serde.
const ONE_OR_MANY: &str = "OneOrMany";

// A map, or anything else.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline, untagged)]
pub(crate) enum PlainOrMap<P, M> {
    Plain(P),
    Map(M),
}

// A list, or anything else.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline, untagged)]
pub(crate) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<P: Serialize, M: Serialize> Serialize for PlainOrMap<P, M> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(value) => value.serialize(to),
            Self::Map(value) => value.serialize(to),
        }
    }
}

impl<T: Serialize> Serialize for OneOrMany<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(value) => value.serialize(to),
            Self::Many(values) => values.serialize(to),
        }
    }
}

/// Reads a value of a document.
pub(crate) fn read<'a, T: Deserialize<'a>>(value: &'a PlacedValue) -> Read<T> {
    T::deserialize(Source(value))
}

impl ReadError {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
            is_key: false,
            templates: None,
        }
    }

    pub(crate) fn of_templates(problems: Vec<Problem>, file: Option<String>) -> Self {
        Self {
            templates: Some((problems, file)),
            ..Self::new("", "")
        }
    }

    fn of_key(path: &str, message: String) -> Self {
        Self {
            is_key: true,
            ..Self::new(path, message)
        }
    }

    /// The same error, seen from the map or list around it.
    pub(crate) fn within(mut self, step: &str) -> Self {
        let is_list = self.path.is_empty() || self.path.starts_with('[');
        let dot = if is_list { "" } else { "." };
        self.path = format!("{step}{dot}{}", self.path);
        self
    }

    /// The error as that of a document, or of another file that it names.
    pub(crate) fn placed(self, document: &PlacedValue, file: &str) -> DocumentError {
        let (problems, file) = match self.templates {
            None => {
                let place = place_of(document, &self.path, self.is_key);
                let problem = Problem {
                    field: (!self.path.is_empty()).then_some(self.path),
                    ..Problem::of_document(place, self.message)
                };
                (vec![problem], file.to_owned())
            }
            Some((problems, Some(file))) => (problems, file),
            Some((mut problems, None)) => {
                problems.sort_by_key(|problem| (problem.line, problem.column));
                for problem in problems.iter_mut().filter(|it| it.template.is_none()) {
                    let field = problem.field.iter();
                    let field: String = field.map(|field| format!(".{field}")).collect();
                    problem.field = Some(format!("{}{field}", self.path));
                }
                (problems, file.to_owned())
            }
        };
        DocumentError { file, problems }
    }
}

/// Puts an error within the map or list around it.
pub(crate) trait Within {
    /// The same, seen from the map or list.
    fn within(self, step: &str) -> Self;
}

impl<T> Within for Read<T> {
    fn within(self, step: &str) -> Self {
        self.map_err(|error| error.within(step))
    }
}

/// The place of a path, or of the last part of it that is there.
fn place_of(document: &PlacedValue, path: &str, is_key: bool) -> Position {
    let (mut at, mut place) = (document, document.place);
    for step in path.split(['.', '[']) {
        let index = step.strip_suffix(']').and_then(|it| it.parse().ok());
        let next = match (&at.value, index) {
            (Value::List(items), Some(index)) => items.get::<usize>(index).map(|it| (it, it.place)),
            (Value::Map(entries), None) => {
                let found = entries.iter().find(|(key, _)| key.text == step);
                found.map(|(key, value)| (value, if is_key { key.place } else { value.place }))
            }
            _ => None,
        };
        let Some(next) = next else {
            break;
        };
        (at, place) = next;
    }
    place
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new("", message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = match expected.to_string() {
            it if it.starts_with("f64") => "a number".to_owned(),
            it if it.starts_with(['u', 'i']) => "a whole number".to_owned(),
            it if it == "a string" => "a text, in quotes".to_owned(),
            it if it == "a boolean" => "true or false".to_owned(),
            it if it == "a sequence" => "a list".to_owned(),
            it if it.starts_with("struct ") => "a map".to_owned(),
            it => it,
        };
        Self::new("", format!("is {}; give {expected}", described(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let words = expected.join(", ");
        let hint = hint(variant, expected);
        Self::new("", format!("is {variant:?}; give one of {words}{hint}"))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let message = match near(field, expected) {
            Some(meant) => format!("is unknown; did you mean {meant}?"),
            None => format!("is unknown; known are {}", expected.join(", ")),
        };
        Self::of_key(field, message)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(field, "is missing")
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(field, "is given twice; remove one")
    }
}

fn described(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Str(text) => Value::Text(text.to_owned()).described(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a map".to_owned(),
        _ => "nothing".to_owned(),
    }
}

/// Reads from a value of a document.
#[derive(Clone, Copy)]
struct Source<'de>(&'de PlacedValue);

impl<'de> Source<'de> {
    /// Refuses a value of a wrong type.
    fn refuse<T>(self, expected: &dyn Expected) -> Read<T> {
        let message = format!("is {}; give {expected}", self.0.value.described());
        Err(ReadError::new("", message))
    }
}

impl<'de> Deserializer<'de> for Source<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match &self.0.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Whole(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (_, Ok(number)) => visitor.visit_u64(number),
                (Ok(number), _) => visitor.visit_i64(number),
                _ => visitor.visit_f64(*number as f64),
            },
            Value::Number(number) => visitor.visit_f64(*number),
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(items) => visitor.visit_seq(Items(items.iter().enumerate())),
            Value::Map(entries) => visitor.visit_map(Entries::all(entries)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.0.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Read<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        match &self.0.value {
            Value::Map(entries) => visitor.visit_map(Entries::given(entries)),
            _ => self.refuse(&"a map"),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        let stands_for_itself = |kind| Kind {
            kind,
            value: self.0,
            entries: &[],
        };
        match (&self.0.value, name) {
            (Value::Map(_), PLAIN_OR_MAP) => visitor.visit_enum(stands_for_itself("Map")),
            (_, PLAIN_OR_MAP) => visitor.visit_enum(stands_for_itself("Plain")),
            (Value::List(_), ONE_OR_MANY) => visitor.visit_enum(stands_for_itself("Many")),
            (_, ONE_OR_MANY) => visitor.visit_enum(stands_for_itself("One")),
            (Value::Text(text), _) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            (Value::Map(entries), _) => visitor.visit_enum(Kind::chosen(entries, variants)?),
            _ => self.refuse(&format!("one of {}", variants.join(", ")).as_str()),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// The items of a list.
struct Items<'de>(Enumerate<Iter<'de, PlacedValue>>);

impl<'de> de::SeqAccess<'de> for Items<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Read<Option<T::Value>> {
        let Some((index, item)) = self.0.next() else {
            return Ok(None);
        };
        let value = seed.deserialize(Source(item));
        value.map(Some).within(&format!("[{index}]"))
    }
}

/// The entries of a map.
struct Entries<'de> {
    rest: Iter<'de, (PlacedKey, PlacedValue)>,
    current: Option<&'de (PlacedKey, PlacedValue)>,
    /// A key without a value counts as absent.
    skips_null: bool,
}

impl<'de> Entries<'de> {
    fn all(entries: &'de [(PlacedKey, PlacedValue)]) -> Self {
        Self {
            rest: entries.iter(),
            current: None,
            skips_null: false,
        }
    }

    fn given(entries: &'de [(PlacedKey, PlacedValue)]) -> Self {
        Self {
            skips_null: true,
            ..Self::all(entries)
        }
    }
}

impl<'de> de::MapAccess<'de> for Entries<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Read<Option<K::Value>> {
        let skips = self.skips_null;
        let is_given = |entry: &&(_, PlacedValue)| !(skips && matches!(entry.1.value, Value::Null));
        self.current = self.rest.find(is_given);
        let Some((key, _)) = self.current else {
            return Ok(None);
        };
        seed.deserialize(BorrowedStrDeserializer::new(&key.text))
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Read<V::Value> {
        let Some((key, value)) = self.current else {
            return Err(de::Error::custom("has no value"));
        };
        let value = seed.deserialize(Source(value));
        value.within(&key.text)
    }
}

/// A variant of an enum, and what it is read from.
///
/// A variant that has a field of its own name stands beside its other fields, as in `{kill: root, for: 5s}`. The
/// fields of any other variant stand in a map under its name. Values of [`PlainOrMap`] and [`OneOrMany`] stand for
/// themselves.
struct Kind<'de> {
    kind: &'de str,
    value: &'de PlacedValue,
    /// The map in which the kind is a key. Empty: it is none.
    entries: &'de [(PlacedKey, PlacedValue)],
}

impl<'de> Kind<'de> {
    fn chosen(entries: &'de [(PlacedKey, PlacedValue)], kinds: &[&str]) -> Read<Self> {
        let mut found = entries
            .iter()
            .filter(|it| kinds.contains(&it.0.text.as_str()));
        let message = match (found.next(), found.next()) {
            (Some((key, value)), None) => {
                let kind = key.text.as_str();
                return Ok(Self {
                    kind,
                    value,
                    entries,
                });
            }
            (Some((one, _)), Some((other, _))) => {
                format!("has both {} and {}; give one of them", one.text, other.text)
            }
            (None, _) => {
                let mut keys = entries.iter().map(|(key, _)| key.text.as_str());
                let misspelt = keys.find_map(|key| Some((key, near(key, kinds)?)));
                if let Some((key, meant)) = misspelt {
                    let message = format!("is unknown; did you mean {meant}?");
                    return Err(ReadError::of_key(key, message));
                }
                format!("has none of {}; give one", kinds.join(", "))
            }
        };
        Err(ReadError::new("", message))
    }

    /// Refuses keys beside the one of the kind.
    fn is_alone(&self) -> Read<()> {
        let mut others = self.entries.iter().map(|(key, _)| key.text.as_str());
        match others.find(|key| *key != self.kind) {
            None => Ok(()),
            Some(other) => {
                let message = format!("is unknown beside {}", self.kind);
                Err(ReadError::of_key(other, message))
            }
        }
    }

    fn within<T>(&self, value: Read<T>) -> Read<T> {
        match self.entries {
            [] => value,
            _ => value.within(self.kind),
        }
    }
}

impl<'de> de::EnumAccess<'de> for Kind<'de> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Read<(V::Value, Self)> {
        let kind = seed.deserialize(BorrowedStrDeserializer::<ReadError>::new(self.kind))?;
        Ok((kind, self))
    }
}

impl<'de> de::VariantAccess<'de> for Kind<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Read<()> {
        Err(ReadError::new("", format!("is a map; give {}", self.kind)))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Read<T::Value> {
        self.is_alone()?;
        self.within(seed.deserialize(Source(self.value)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Read<V::Value> {
        Source(self.value).refuse(&visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        if fields.contains(&self.kind) {
            let mut keys = self.entries.iter().map(|(key, _)| key.text.as_str());
            if let Some(key) = keys.find(|key| !fields.contains(key)) {
                return Err(de::Error::unknown_field(key, fields));
            }
            return visitor.visit_map(Entries::given(self.entries));
        }
        self.is_alone()?;
        self.within(Source(self.value).deserialize_struct("", fields, visitor))
    }
}
