//! The JSON Schema of scenario files, which is made of the types that read them.

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use doorward_engine::id::ResourceId;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::scenario::Scenario;
use crate::scenario::demand::traced::{Trace, TraceForm};
use crate::scenario::demand::{Demand, DemandForm};
use crate::scenario::fault::{Event, When};
use crate::scenario::forms::{Amount, Names, Span, Time, UNSAID, Weight};
use crate::scenario::nodes::{Node, NodeChoice, TreeFile, TreeForm};
use crate::scenario::usage::ResourceForm;

/// The JSON Schema of a form, without a name of its own.
macro_rules! schema {
    ($Form:ty: $schema:expr) => {
        impl schemars::JsonSchema for $Form {
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

/// The JSON Schema of a form that may be a default.
macro_rules! schema_with_default {
    ($Form:ty: $schema:expr) => {
        crate::scenario::schema_tests::schema!($Form: $schema);

        impl serde::Serialize for $Form {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                crate::scenario::schema_tests::write_default(self, to)
            }
        }
    };
}

pub(super) use {schema, schema_with_default};

schema!(Names: either::<String, Vec<String>>);
schema_with_default!(Span: either::<Time, (Time, Time)>);
schema!(TreeForm: |generator| TreeFile::json_schema(generator));
schema!(NodeChoice: |generator| Names::json_schema(generator));
schema!(DemandForm: either::<Amount, Demand>);
schema!(TraceForm: either::<String, Trace>);
schema!(ResourceForm: |generator| String::json_schema(generator));
schema!(TemplatesForm: |_| json_schema!({
    "description": "Templates, as in a template file, or the name of one.",
    "anyOf": [{"type": "object", "required": ["resources"]}, {"type": "string"}],
}));

fn either<A: JsonSchema, B: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let (a, b) = (
        generator.subschema_for::<A>(),
        generator.subschema_for::<B>(),
    );
    json_schema!({"anyOf": [a, b]})
}

/// Templates as files have them.
pub(super) struct TemplatesForm;

/// Writes a default of a value in its form: numbers and durations are read as they are debugged. A stand-in for an
/// absent value is none.
pub(super) fn write_default<S: Serializer>(value: &impl Debug, to: S) -> Result<S::Ok, S::Error> {
    // `Amount(1.0)`, `Time(5s)`, or `Span(1s, 1s)` with two equal ends.
    let text = format!("{value:?}");
    let text = text.trim_end_matches(')').rsplit(['(', ' ']).next();
    let text = text.unwrap_or_default();
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value != 0 => value.serialize(to),
        Err(_) if text != format!("{UNSAID:?}") => text.serialize(to),
        _ => to.serialize_none(),
    }
}

impl TreeForm {
    pub(super) fn serialize<S: Serializer>(nodes: &[Node], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(nodes.iter().map(|node| &node.name))
    }
}

impl ResourceForm {
    pub(super) fn serialize<S: Serializer>(_: &ResourceId, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_none()
    }
}

/// A fault as files have it.
pub(super) struct FaultFile;

impl JsonSchema for FaultFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Fault".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let when = generator.subschema_for::<When>();
        let event = generator.subschema_for::<Event>();
        let weight = generator.subschema_for::<Weight>();
        let weighted = json_schema!({"allOf": [event], "properties": {"weight": weight}});
        let one_of = json_schema!({"type": "array", "items": weighted});
        let several = json_schema!({"required": ["one_of"], "properties": {"one_of": one_of}});
        json_schema!({"type": "object", "allOf": [when, {"anyOf": [event, several]}]})
    }
}

/// `UPDATE_SCHEMA=1` writes the schema anew.
#[test]
fn the_published_schema_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schemas/scenario.json");
    let schema = schema_for!(Scenario).to_value();
    let expected = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let differs = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
    assert_eq!(differs, None, "run this test with UPDATE_SCHEMA=1");
    assert_eq!(found, expected);
}
