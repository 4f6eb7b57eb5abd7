//! The JSON Schema of scenario files, which is made of the types that read them.

use std::fs;
use std::path::Path;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};

use crate::scenario::Scenario;
use crate::scenario::demand::traced::{Trace, TraceForm};
use crate::scenario::demand::{Demand, DemandForm};
use crate::scenario::fault::{Event, When};
use crate::scenario::forms::{
    Amount, As, Maybe, Never, OneOrMany, Span, SpanFile, Time, Times, Weight,
};
use crate::scenario::nodes::{NodeChoice, TreeFile, TreeForm};
use crate::scenario::source::OneOf;
use crate::scenario::templates::TemplatesForm;
use crate::scenario::usage::ResourceForm;

/// The JSON Schema of a form, without a name of its own.
macro_rules! schema {
    ([$($F:ident)?] $Form:ty: $schema:expr) => {
        impl $(<$F: crate::scenario::forms::Form + schemars::JsonSchema>)? schemars::JsonSchema for $Form {
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

pub(super) use schema;

schema!([F] As<F>: |generator| F::json_schema(generator));
schema!([F] Maybe<F>: |generator| F::json_schema(generator));
schema!([] Times: |generator| Vec::<As<Time>>::json_schema(generator));
schema!([] Never: |_| false.into());
schema!([] Span: |generator| SpanFile::json_schema(generator));
schema!([] TreeForm: |generator| TreeFile::json_schema(generator));
schema!([] NodeChoice: |generator| OneOrMany::<String>::json_schema(generator));
schema!([] DemandForm: |generator| OneOf::<As<Amount>, Never, Demand>::json_schema(generator));
schema!([] TraceForm: |generator| OneOf::<String, Never, Trace>::json_schema(generator));
schema!([] ResourceForm: |generator| String::json_schema(generator));
schema!([] TemplatesForm: |_| json_schema!({
    "description": "Templates, as in a template file, or the name of one.",
    "anyOf": [{"type": "object", "required": ["resources"]}, {"type": "string"}],
}));

/// A fault as files have it.
pub(super) struct FaultFile;

impl JsonSchema for FaultFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Fault".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let when = generator.subschema_for::<When>();
        let event = generator.subschema_for::<Event>();
        let weight = generator.subschema_for::<As<Weight>>();
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
