//! Templates: in the scenario itself as template files have them, or in a file of their own.

use doorward_documents::placed_value::{PlacedValue, Value};
use doorward_documents::{DocumentError, parse_bytes, parse_node};
use doorward_engine::template::{Algorithm, SafeCapacity, Shrink, Template, Templates};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value as Json, json};

use crate::scenario::forms::Form;
use crate::scenario::read::Files;
use crate::scenario::source::{Read, ReadError};

/// Templates as a scenario has them. `doorward_documents` reads them, with all that is wrong in them; serde passes them
/// by.
pub(super) struct TemplatesForm;

impl TemplatesForm {
    /// Reads `{resources: […]}`, or the name of a file in which this stands.
    pub(super) fn read(value: &PlacedValue, files: &Files) -> Read<Templates> {
        let (problems, file) = match &value.value {
            Value::Map(_) => match parse_node(value) {
                Ok(templates) => return Ok(templates),
                Err(problems) => (problems, None),
            },
            Value::Text(name) => {
                let bytes = files.bytes(name).map_err(|cause| {
                    ReadError::new("", format!("is {name:?}, which cannot be read: {cause}"))
                })?;
                match parse_bytes(&bytes.0, &bytes.1) {
                    Ok(templates) => return Ok(templates),
                    Err(DocumentError { file, problems }) => (problems, Some(file)),
                }
            }
            other => {
                let expected = "templates, as in {resources: […]}, or the name of a template file";
                let message = format!("is {}; give {expected}", other.described());
                return Err(ReadError::new("", message));
            }
        };
        Err(ReadError::of_templates(problems, file))
    }
}

impl Form for TemplatesForm {
    type Value = Templates;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Templates, D::Error> {
        IgnoredAny::deserialize(from).map(|_| Templates::default())
    }

    fn serialize<S: Serializer>(templates: &Templates, to: S) -> Result<S::Ok, S::Error> {
        let resources: Vec<Json> = templates.iter().map(|it| written(it)).collect();
        json!({"resources": resources}).serialize(to)
    }
}

impl JsonSchema for TemplatesForm {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Templates".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Templates, as in a template file, or the name of one.",
            "anyOf": [{"type": "object", "required": ["resources"]}, {"type": "string"}],
        })
    }
}

/// A template as a file has it.
fn written(template: &Template) -> Json {
    let algorithm = &template.algorithm;
    let mut parameters = Vec::new();
    if algorithm.decay_factor != Algorithm::default().decay_factor {
        let value = algorithm.decay_factor.to_string();
        parameters.push(json!({"name": "decay_factor", "value": value}));
    }
    if algorithm.shrink == Shrink::Immediate {
        parameters.push(json!({"name": "shrink", "value": "immediate"}));
    }
    for (priority, share) in &algorithm.min_shares {
        let name = format!("min_share.{priority}");
        parameters.push(json!({"name": name, "value": share.to_string()}));
    }
    let safe_capacity = template.safe_capacity.map(|safe| match safe {
        SafeCapacity::Unlimited => -1.0,
        SafeCapacity::Limited(amount) => amount.get(),
    });
    // A lease of another length, written into the file, has a learning mode of that length, too.
    let learning = Some(algorithm.learning_mode_duration);
    let learning = learning.filter(|learning| *learning != algorithm.lease_length);
    let duration = |duration| humantime::format_duration(duration).to_string();
    json!({
        "identifier_glob": template.identifier_glob,
        "capacity": template.capacity.get(),
        "safe_capacity": safe_capacity,
        "wants_max": template.holder_bounds.wants_max.map(|it| it.get()),
        "subclients_max": template.holder_bounds.subclients_max.map(|it| it.get()),
        "description": Some(&template.description).filter(|text| !text.is_empty()),
        "algorithm": {
            "kind": algorithm.kind.as_str(),
            "lease_length": duration(algorithm.lease_length),
            "refresh_interval": duration(algorithm.refresh_interval),
            "learning_mode_duration": learning.map(duration),
            "parameters": parameters,
        },
    })
}
