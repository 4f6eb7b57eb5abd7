//! Values of a scenario file: how each is written, and in which range it must be. For `#[serde(with = "…")]`.

use std::marker::PhantomData;
use std::time::Duration;

use doorward_engine::amount::Amount as EngineAmount;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

#[cfg(test)]
use crate::scenario::schema_tests::schema;
use crate::scenario::source::OneOf;
use crate::scenario::{CLIENTS_MAX, DURATION_MAX, Span as TimeSpan};

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

/// Says whether a file need not say a value.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// How a file writes a value.
pub(crate) trait Form {
    type Value: Clone;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Self::Value, D::Error>;

    fn serialize<S: Serializer>(value: &Self::Value, to: S) -> Result<S::Ok, S::Error>;
}

/// A value in its form.
pub(crate) struct As<F: Form>(pub(crate) F::Value);

impl<'de, F: Form> Deserialize<'de> for As<F> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        F::deserialize(from).map(Self)
    }
}

impl<F: Form> Serialize for As<F> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        F::serialize(&self.0, to)
    }
}

/// A value that may be absent.
pub(crate) struct Maybe<F: Form>(PhantomData<F>);

impl<F: Form> Form for Maybe<F> {
    type Value = Option<F::Value>;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Self::Value, D::Error> {
        Ok(Option::<As<F>>::deserialize(from)?.map(|value| value.0))
    }

    fn serialize<S: Serializer>(value: &Self::Value, to: S) -> Result<S::Ok, S::Error> {
        value.clone().map(As::<F>).serialize(to)
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

    fn serialize<S: Serializer>(times: &Vec<Duration>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(times.iter().map(|time| As::<Time>(*time)))
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

            fn serialize<S: Serializer>(value: &$Value, to: S) -> Result<S::Ok, S::Error> {
                value.serialize(to)
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

            fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
                match *value {
                    UNSAID => to.serialize_none(),
                    value => to.collect_str(&humantime::format_duration(value)),
                }
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

/// A shape that a value cannot have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Never {}

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom("is of a kind that does not belong here"))
    }
}

/// A value, or a list of values.
pub(crate) type OneOrMany<T> = OneOf<T, Vec<T>, Never>;

/// One duration, or two between which chance decides.
pub(crate) struct Span;

pub(super) type SpanFile = OneOf<As<Time>, (As<Time>, As<Time>), Never>;

impl Form for Span {
    type Value = TimeSpan;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TimeSpan, D::Error> {
        let problem = "goes backwards; give the shorter duration first";
        match SpanFile::deserialize(from)? {
            OneOf::Plain(As(span)) => Ok((span, span)),
            OneOf::List((As(least), As(most))) if least <= most => Ok((least, most)),
            _ => Err(D::Error::custom(problem)),
        }
    }

    fn serialize<S: Serializer>(value: &TimeSpan, to: S) -> Result<S::Ok, S::Error> {
        match value {
            (least, most) if least == most => Time::serialize(least, to),
            (least, most) => (As::<Time>(*least), As::<Time>(*most)).serialize(to),
        }
    }
}
