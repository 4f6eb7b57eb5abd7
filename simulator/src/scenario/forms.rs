//! Values of a scenario file: how each is written, and in which range it must be. For `#[serde(with = "…")]`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use doorward_engine::amount::Amount as EngineAmount;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::scenario::fault::Span as TimeSpan;
use crate::scenario::source::{OneOf, OneOrMany};

/// The longest time in a scenario: a year.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The shortest time between two steps of anything: what is faster would do nothing but step.
pub(super) const STEP_MIN: Duration = Duration::from_millis(1);

/// A time that a file does not say, until its default is computed from other fields. No file can say it.
pub(super) const UNSAID: Duration = Duration::MAX;

pub(super) const fn unsaid() -> Duration {
    UNSAID
}

/// Says whether a file need not say a value.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// How a file writes a value.
pub(crate) trait Form: JsonSchema {
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

/// The JSON Schema of a form, without a name of its own.
macro_rules! schema {
    ([$($F:ident)?] $Form:ty: $schema:expr) => {
        impl $(<$F: Form>)? schemars::JsonSchema for $Form {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Form).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema = $schema;
                schema(generator)
            }
        }
    };
}

pub(crate) use schema;

schema!([F] As<F>: |generator| F::json_schema(generator));

/// A value that may be absent.
pub(crate) struct Maybe<F: Form>(PhantomData<F>);

schema!([F] Maybe<F>: |generator| F::json_schema(generator));

impl<F: Form> Form for Maybe<F> {
    type Value = Option<F::Value>;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Self::Value, D::Error> {
        Ok(Option::<As<F>>::deserialize(from)?.map(|value| value.0))
    }

    fn serialize<S: Serializer>(value: &Self::Value, to: S) -> Result<S::Ok, S::Error> {
        value.clone().map(As::<F>).serialize(to)
    }
}

/// A list of values.
pub(crate) struct Each<F: Form>(PhantomData<F>);

schema!([F] Each<F>: |generator| Vec::<As<F>>::json_schema(generator));

impl<F: Form> Form for Each<F> {
    type Value = Vec<F::Value>;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Self::Value, D::Error> {
        let values = Vec::<As<F>>::deserialize(from)?;
        Ok(values.into_iter().map(|value| value.0).collect())
    }

    fn serialize<S: Serializer>(values: &Self::Value, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(values.iter().cloned().map(As::<F>))
    }
}

/// An amount of a resource.
pub(crate) struct Amount;

schema!([] Amount: |_| json_schema!({"type": "number", "minimum": 0, "maximum": EngineAmount::MAX.get()}));

impl Form for Amount {
    type Value = f64;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        let amount = EngineAmount::new(f64::deserialize(from)?);
        amount.map(EngineAmount::get).map_err(D::Error::custom)
    }

    fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(*value)
    }
}

/// Numbers between two, both included.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])* $Form:ident: $least:literal, $most:literal;)*) => {$(
        $(#[doc = $doc])*
        pub(crate) struct $Form;

        schema!([] $Form: |_| json_schema!({"type": "number", "minimum": $least, "maximum": $most}));

        impl Form for $Form {
            type Value = f64;

            fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
                let number = f64::deserialize(from)?;
                if ($least..=$most).contains(&number) {
                    return Ok(number);
                }
                let expected = format!("a number from {} to {}", $least, $most);
                Err(D::Error::custom(format!("is {number}; give {expected}")))
            }

            fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_f64(*value)
            }
        }
    )*};
}

numbers! {
    /// A probability, or another part of a whole.
    Part: 0.0, 1.0;
    /// A factor of a random walk.
    Factor: 0.0, 1e6;
    /// A weight, compared with others.
    Weight: 0.0, 1e9;
    /// The cost of a request. With less, requests would come all the time.
    Cost: 1e-6, 1e15;
    /// Headroom of measured demand.
    Headroom: 1.0, 1e3;
    /// The speed of a clock. Anything beyond is no clock.
    ClockSpeed: 0.01, 100.0;
    /// The speed of a trace.
    TraceSpeed: 1e-6, 1e6;
    /// Events in an hour: from one in a century to a thousand in a second.
    PerHour: 1e-6, 3.6e6;
}

/// A whole number between two, both included.
pub(crate) struct Whole<T, const LEAST: u64, const MOST: u64>(PhantomData<T>);

impl<T, const LEAST: u64, const MOST: u64> JsonSchema for Whole<T, LEAST, MOST> {
    fn schema_name() -> Cow<'static, str> {
        "Whole".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": LEAST, "maximum": MOST})
    }
}

impl<T, const LEAST: u64, const MOST: u64> Form for Whole<T, LEAST, MOST>
where
    T: TryFrom<u64> + Copy + Serialize,
{
    type Value = T;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        let number = u64::deserialize(from)?;
        let found = T::try_from(number).ok();
        let found = found.filter(|_| (LEAST..=MOST).contains(&number));
        found.ok_or_else(|| {
            let expected = format!("a whole number from {LEAST} to {MOST}");
            D::Error::custom(format!("is {number}; give {expected}"))
        })
    }

    fn serialize<S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
}

/// Durations of at least so much.
macro_rules! durations {
    ($($(#[doc = $doc:literal])* $Form:ident: $least:expr;)*) => {$(
        $(#[doc = $doc])*
        pub(crate) struct $Form;

        schema!([] $Form: |_| json_schema!({"type": ["string", "number"], "format": "duration"}));

        impl Form for $Form {
            type Value = Duration;

            fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
                let duration = from.deserialize_any(DurationVisitor)?;
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
struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("seconds, or a duration such as 15s or 2m")
    }

    fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<Duration, E> {
        self.visit_f64(seconds as f64)
    }

    fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<Duration, E> {
        self.visit_f64(seconds as f64)
    }

    fn visit_f64<E: serde::de::Error>(self, seconds: f64) -> Result<Duration, E> {
        let found = Unexpected::Float(seconds);
        let duration = Duration::try_from_secs_f64(seconds);
        let duration = duration.map_err(|_| E::invalid_value(found, &self))?;
        up_to_a_year(duration)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Duration, E> {
        let found = Unexpected::Str(text);
        let duration = humantime::parse_duration(text);
        let duration = duration.map_err(|_| E::invalid_value(found, &self))?;
        up_to_a_year(duration)
    }
}

fn up_to_a_year<E: serde::de::Error>(duration: Duration) -> Result<Duration, E> {
    match duration > DURATION_MAX {
        false => Ok(duration),
        true => Err(E::custom("is too long; give at most 365 days")),
    }
}

/// One duration, or two between which chance decides.
pub(crate) struct Span;

schema!([] Span: |generator| OneOrMany::<As<Time>>::json_schema(generator));

impl Form for Span {
    type Value = TimeSpan;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TimeSpan, D::Error> {
        let many = match OneOrMany::<As<Time>>::deserialize(from)? {
            OneOf::Plain(As(span)) => return Ok((span, span)),
            OneOf::List(many) => many,
            OneOf::Map(never) => match never {},
        };
        let [As(least), As(most)] = many.as_slice() else {
            let message = "give one duration, or the shortest and the longest, as in [10s, 60s]";
            return Err(D::Error::custom(message));
        };
        if least > most {
            let message = "goes backwards; give the shorter duration first";
            return Err(D::Error::custom(message));
        }
        Ok((*least, *most))
    }

    fn serialize<S: Serializer>(value: &TimeSpan, to: S) -> Result<S::Ok, S::Error> {
        match value {
            (least, most) if least == most => Time::serialize(least, to),
            (least, most) => [As::<Time>(*least), As(*most)].serialize(to),
        }
    }
}

/// The least and the largest factor of a walk.
pub(crate) struct Factors;

schema!([] Factors: |generator| Vec::<As<Factor>>::json_schema(generator));

impl Form for Factors {
    type Value = (f64, f64);

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<(f64, f64), D::Error> {
        match Vec::<As<Factor>>::deserialize(from)?.as_slice() {
            [As(least), As(most)] if least <= most => Ok((*least, *most)),
            _ => {
                let message = "give the least and the largest factor, as in [0.9, 1.1]";
                Err(D::Error::custom(message))
            }
        }
    }

    fn serialize<S: Serializer>(value: &(f64, f64), to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }
}
