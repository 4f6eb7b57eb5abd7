//! Shapes of values in a scenario file, and what is wrong with them.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

/// A problem of a scenario file, or of a file that it names; or the reason why no file can say a scenario. It has the
/// keys on the way to it, as `clients[0].wants`, and a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}{message}", if path.is_empty() { "" } else { ": " })]
pub struct ScenarioError {
    path: String,
    message: String,
}

pub(crate) type Read<T> = Result<T, ScenarioError>;

/// The fields of a map, by name.
pub(crate) type Fields = Map<String, Value>;

impl From<serde_json::Error> for ScenarioError {
    fn from(cause: serde_json::Error) -> Self {
        Self::new("", cause)
    }
}

impl ScenarioError {
    pub(crate) fn new(path: impl Into<String>, message: impl ToString) -> Self {
        let (path, message) = (path.into(), message.to_string());
        Self { path, message }
    }
}

/// Refuses what is at a path.
pub(crate) fn refuse<T>(path: impl Into<String>, message: impl ToString) -> Read<T> {
    Err(ScenarioError::new(path, message))
}

/// Refuses a time after the end.
pub(crate) fn is_within(time: Duration, end: Duration) -> Read<()> {
    if time < end {
        return Ok(());
    }
    let time = humantime::format_duration(time);
    let end = humantime::format_duration(end);
    let message = format!("is {time}; give a time before the end of the simulation, {end}");
    refuse("", message)
}

/// Puts an error within the map or list around it.
pub(crate) trait Within {
    /// The same, seen from the map or list.
    fn within(self, step: &str) -> Self;
}

impl<T> Within for Read<T> {
    fn within(self, step: &str) -> Self {
        self.map_err(|ScenarioError { path, message }| {
            let is_list = path.is_empty() || path.starts_with('[');
            let dot = if is_list { "" } else { "." };
            ScenarioError::new(format!("{step}{dot}{path}"), message)
        })
    }
}

// A plain value, a list or a map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub enum OneOf<P, L, M> {
    Plain(P),
    List(L),
    Map(M),
}

impl<L, M> From<&str> for OneOf<String, L, M> {
    fn from(text: &str) -> Self {
        Self::Plain(text.to_owned())
    }
}

impl<'de, P, L, M> Deserialize<'de> for OneOf<P, L, M>
where
    P: Deserialize<'de>,
    L: Deserialize<'de>,
    M: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ByShape(PhantomData))
    }
}

struct ByShape<P, L, M>(PhantomData<(P, L, M)>);

/// Reads plain values.
macro_rules! plain {
    ($($visit:ident: $Value:ty;)*) => {$(
        fn $visit<E: serde::de::Error>(self, value: $Value) -> Result<Self::Value, E> {
            P::deserialize(value.into_deserializer()).map(OneOf::Plain)
        }
    )*};
}

impl<'de, P, L, M> Visitor<'de> for ByShape<P, L, M>
where
    P: Deserialize<'de>,
    L: Deserialize<'de>,
    M: Deserialize<'de>,
{
    type Value = OneOf<P, L, M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    plain! {
        visit_bool: bool;
        visit_u64: u64;
        visit_i64: i64;
        visit_f64: f64;
        visit_str: &str;
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        L::deserialize(SeqAccessDeserializer::new(list)).map(OneOf::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        M::deserialize(MapAccessDeserializer::new(map)).map(OneOf::Map)
    }
}

/// Finds the key that says which of several kinds this is, as `kill` in `{kill: root, for: 5s}`: the only one but for
/// those `beside` it.
pub(crate) fn kind_of(fields: &Fields, beside: &[&str]) -> Read<String> {
    let mut kinds = fields.keys().filter(|it| !beside.contains(&it.as_str()));
    let message = match (kinds.next(), kinds.next()) {
        (Some(kind), None) => return Ok(kind.clone()),
        (None, _) => "does not say what or when it is".to_owned(),
        (Some(one), Some(other)) => format!("has both {one} and {other}; give one of them"),
    };
    refuse("", message)
}

/// Reads one of several kinds, which has its own name among its fields.
pub(crate) fn read_kind<T: Serialize + DeserializeOwned>(kind: &str, fields: Fields) -> Read<T> {
    let value = serde_json::from_value(json!({kind: &fields})).map_err(ScenarioError::from);
    let value: T = value.within(kind)?;
    let known = fields_of(&value)?;
    match fields.keys().find(|key| !known.contains_key(*key)) {
        Some(key) => refuse(key, format!("does not go with {kind}")),
        None => Ok(value),
    }
}

/// The fields of one of several kinds.
pub(crate) fn fields_of<T: Serialize>(kind: &T) -> Read<Fields> {
    let tagged: Fields = serde_json::from_value(serde_json::to_value(kind)?)?;
    match tagged.into_iter().next() {
        Some((_, Value::Object(fields))) => Ok(fields),
        _ => Ok(Fields::new()),
    }
}
