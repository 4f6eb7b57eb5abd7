//! Values of a scenario file: how each is written, and in which range it must be. For `#[serde(with = "…")]`. And what
//! is wrong with them.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::time::Duration;

use doorward_engine::amount::Amount as EngineAmount;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

#[cfg(test)]
use crate::scenario::schema_tests::schema;
use crate::scenario::{CLIENTS_MAX, DURATION_MAX, Span as TimeSpan};

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
pub(crate) fn is_within(time: Duration, end: Duration) -> Read<()> {
    if time < end {
        return Ok(());
    }
    let [time, end] = [time, end].map(humantime::format_duration);
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

pub(super) const fn unsaid() -> Duration {
    UNSAID
}

/// Returns the default of a duration.
pub(super) const fn seconds<const SECONDS: u64>() -> Duration {
    Duration::from_secs(SECONDS)
}

/// Returns the default of a count or factor.
pub(super) fn one<T: From<u8>>() -> T {
    T::from(1)
}

/// How a file writes a value.
pub(crate) trait Form {
    type Value: Debug;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Self::Value, D::Error>;

    /// Writes a default into the schema.
    #[cfg(test)]
    fn serialize<S: serde::Serializer>(value: &Self::Value, to: S) -> Result<S::Ok, S::Error> {
        crate::scenario::schema_tests::write_default(value, to)
    }
}

/// A value in its form.
pub(crate) struct As<F: Form>(pub(crate) F::Value);

impl<'de, F: Form> Deserialize<'de> for As<F> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        F::deserialize(from).map(Self)
    }
}

/// A value that may be absent.
pub(crate) struct Maybe<F: Form>(PhantomData<F>);

impl<F: Form> Form for Maybe<F> {
    type Value = Option<F::Value>;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Self::Value, D::Error> {
        Ok(Option::<As<F>>::deserialize(from)?.map(|value| value.0))
    }
}

/// Times from the start.
pub(crate) struct Times;

impl Form for Times {
    type Value = Vec<Duration>;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Duration>, D::Error> {
        let times = Vec::<As<Time>>::deserialize(from)?;
        Ok(times.into_iter().map(|time| time.0).collect())
    }
}

/// Numbers between two, both included.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])* $Form:ident: $Value:ty as $kind:literal, $least:expr, $most:expr;)*) => {$(
        $(#[doc = $doc])*
        pub(crate) struct $Form;

        #[cfg(test)]
        schema!([] $Form: |_| schemars::json_schema!({"type": $kind, "minimum": $least, "maximum": $most}));

        impl Form for $Form {
            type Value = $Value;

            fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$Value, D::Error> {
                let number = <$Value>::deserialize(from)?;
                if ($least..=$most).contains(&number) {
                    return Ok(number);
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
        pub(crate) struct $Form;

        #[cfg(test)]
        schema!([] $Form: |_| schemars::json_schema!({"type": ["string", "number"], "format": "duration"}));

        impl Form for $Form {
            type Value = Duration;

            fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
                let duration = duration(from)?;
                if duration < $least {
                    let least = humantime::format_duration($least);
                    return Err(D::Error::custom(format!("is too short; give at least {least}")));
                }
                Ok(duration)
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
pub(crate) struct Names;

impl Form for Names {
    type Value = Vec<String>;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        let names = match Value::deserialize(from)? {
            Value::Array(names) => names,
            name => vec![name],
        };
        serde_json::from_value(names.into()).map_err(D::Error::custom)
    }
}

/// One duration, or two between which chance decides.
pub(crate) struct Span;

impl Form for Span {
    type Value = TimeSpan;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TimeSpan, D::Error> {
        let span = match Value::deserialize(from)? {
            two @ Value::Array(_) => <(As<Time>, As<Time>)>::deserialize(two),
            one => duration(one).map(|it| (As(it), As(it))),
        };
        match span.map_err(D::Error::custom)? {
            (As(least), As(most)) if least <= most => Ok((least, most)),
            _ => Err(D::Error::custom(
                "goes backwards; give the shorter duration first",
            )),
        }
    }
}
