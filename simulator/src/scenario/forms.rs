//! Values of a scenario file, each of a type that says how it is written and in which range it is. And what is wrong
//! with them.

use std::time::Duration;

use doorward_engine::amount::Amount as EngineAmount;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

#[cfg(test)]
use crate::scenario::schema_tests::schema_with_default;
use crate::scenario::{CLIENTS_MAX, DURATION_MAX};

/// A problem of a scenario file, or of a file that it names. It has the keys on the way to it, as `clients[0].wants`, and
/// a message.
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
pub(super) fn is_within(time: Time, end: Step) -> Read<()> {
    if time.0 < end.0 {
        return Ok(());
    }
    let [time, end] = [time.0, end.0].map(humantime::format_duration);
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
pub(crate) fn read_kind<T: DeserializeOwned>(kind: &str, fields: Fields) -> Read<T> {
    let value = serde_json::from_value(json!({kind: fields})).map_err(ScenarioError::from);
    value.within(kind)
}

/// The shortest time between two steps of anything: what is faster would do nothing but step.
pub(super) const STEP_MIN: Duration = Duration::from_millis(1);

/// A time that a file does not say, until its default is computed from other fields. No file can say it.
pub(super) const UNSAID: Duration = Duration::MAX;

pub(super) const fn unsaid() -> Time {
    Time(UNSAID)
}

pub(super) const fn unsaid_step() -> Step {
    Step(UNSAID)
}

/// Returns the default of a duration.
pub(super) const fn seconds<const SECONDS: u64>() -> Step {
    Step(Duration::from_secs(SECONDS))
}

/// Returns the default of a count or factor.
pub(super) fn one<T: From<u8>>() -> T {
    T::from(1)
}

/// Numbers between two, both included.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])* $Form:ident: $Value:ty as $kind:literal, $least:expr, $most:expr;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $Form(pub $Value);

        impl From<u8> for $Form {
            fn from(number: u8) -> Self {
                Self(number.into())
            }
        }

        #[cfg(test)]
        schema_with_default!($Form: |_| schemars::json_schema!({"type": $kind, "minimum": $least, "maximum": $most}));

        impl<'de> Deserialize<'de> for $Form {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let number = <$Value>::deserialize(from)?;
                if ($least..=$most).contains(&number) {
                    return Ok(Self(number));
                }
                let expected = format!("a number from {} to {}", $least, $most);
                Err(D::Error::custom(format!("is {number}; give {expected}")))
            }
        }
    )*};
}

numbers! {
    /// An amount of a resource.
    Amount: f64 as "number", 0.0, EngineAmount::MAX.get();
    /// A probability, or another part of a whole.
    Part: f64 as "number", 0.0, 1.0;
    /// A weight, compared with others.
    Weight: f64 as "number", 0.0, 1e9;
    /// The cost of a request. With less, requests would come all the time.
    Cost: f64 as "number", 1e-6, 1e15;
    /// Headroom of measured demand.
    Headroom: f64 as "number", 1.0, 1e3;
    /// The speed of a clock. Anything beyond is no clock.
    ClockSpeed: f64 as "number", 0.01, 100.0;
    /// The speed of a trace.
    TraceSpeed: f64 as "number", 1e-6, 1e6;
    /// Events in an hour: from one in a century to a thousand in a second.
    PerHour: f64 as "number", 1e-6, 3.6e6;
    /// The number of candidates of a node.
    Candidates: u32 as "integer", 1, 100;
    /// The number of nodes of a key.
    NodeCount: u32 as "integer", 1, 10_000;
    /// The number of clients of a group.
    ClientCount: usize as "integer", 1, CLIENTS_MAX;
    /// A number of permits.
    Count: u32 as "integer", 1, 1_000_000;
}

/// Durations of at least so much.
macro_rules! durations {
    ($($(#[doc = $doc:literal])* $Form:ident: $least:expr;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $Form(pub Duration);

        #[cfg(test)]
        schema_with_default!($Form: |_| schemars::json_schema!({"type": ["string", "number"], "format": "duration"}));

        impl<'de> Deserialize<'de> for $Form {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let duration = duration(from)?;
                if duration < $least {
                    let least = humantime::format_duration($least);
                    return Err(D::Error::custom(format!("is too short; give at least {least}")));
                }
                Ok(Self(duration))
            }
        }
    )*};
}

durations! {
    /// A duration, or a time from the start.
    Time: Duration::ZERO;
    /// A duration in which something can happen.
    Step: STEP_MIN;
    /// The time over which demand is measured. A shorter one would measure noise.
    Window: Duration::from_millis(100);
}

/// Seconds, or written out; up to a year.
fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let duration = match Value::deserialize(from)? {
        Value::String(text) => humantime::parse_duration(&text).ok(),
        seconds => seconds
            .as_f64()
            .and_then(|it| Duration::try_from_secs_f64(it).ok()),
    };
    let duration = duration.filter(|duration| *duration <= DURATION_MAX);
    let message = "give seconds, or a duration such as 15s or 2m, up to 365 days";
    duration.ok_or_else(|| D::Error::custom(message))
}

/// A name, or a list of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let names = match Value::deserialize(from)? {
            Value::Array(names) => names,
            name => vec![name],
        };
        let names = serde_json::from_value(names.into());
        names.map(Self).map_err(D::Error::custom)
    }
}

/// A duration between these two, by chance. A file may give one duration for both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span(pub Duration, pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let span = match Value::deserialize(from)? {
            two @ Value::Array(_) => <(Time, Time)>::deserialize(two),
            one => Time::deserialize(one).map(|it| (it, it)),
        };
        let message = "goes backwards; give the shorter duration first";
        match span.map_err(D::Error::custom)? {
            (Time(least), Time(most)) if least <= most => Ok(Self(least, most)),
            _ => Err(D::Error::custom(message)),
        }
    }
}
