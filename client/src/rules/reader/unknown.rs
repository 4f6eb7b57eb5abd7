//! Unknown fields of a document: all of them, by the published schema.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{Error, Options, Spanned};

use crate::rules::document::Rules;

/// A problem, with its line.
pub(super) type AtLine = (u64, String);

/// An unknown field, and the line on which its map begins.
pub(super) type Unknown = (AtLine, u64);

/// Finds the fields that the schema lacks, in a document of the right form.
pub(super) fn fields(text: &str, options: Options) -> Result<Vec<Unknown>, Error> {
    // The schema is valid.
    let root = serde_json::from_str(Rules::schema()).unwrap_or_default();
    let mut found = Vec::new();
    let level = Level {
        root: &root,
        schema: &root,
        begins: Some(1),
        found: &mut found,
    };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |document| {
        level.deserialize(document)
    })?;
    Ok(found)
}

/// A map, or a list of maps.
struct Level<'a> {
    root: &'a Value,
    /// Schema of the map.
    schema: &'a Value,
    /// Line on which it begins. None: that of its first field.
    begins: Option<u64>,
    found: &'a mut Vec<Unknown>,
}

impl<'a> Level<'a> {
    fn with_schema<'b>(&'b mut self, schema: &'b Value) -> Level<'b> {
        Level {
            root: self.root,
            schema,
            begins: None,
            found: self.found,
        }
    }

    /// Returns the schema of a field's value, if it has fields of its own.
    fn below(&self, field: &Value) -> Option<&'a Value> {
        let reference = field.get("$ref").or_else(|| field.pointer("/items/$ref"))?;
        self.root.pointer(reference.as_str()?.strip_prefix('#')?)
    }

    /// Returns the problem of an unknown field, with a remedy.
    fn problem(&self, field: &str) -> String {
        let is_of = |form| {
            let fields = self.root.pointer(&format!("/$defs/{form}/properties"));
            fields.is_some_and(|fields| fields.get(field).is_some())
        };
        let advice = match field {
            "unit_multiplier" => "write a rate instead, such as rate: 20/5min",
            "quota_mode" | "share_threshold" | "value_to_metric" | "metadata" => {
                "envoyproxy/ratelimit has this field and Doorward does not; remove it"
            }
            _ if is_of("Descriptor") => "this field belongs to a descriptor; write it beside key",
            _ if is_of("RateLimit") => "this field belongs to the limit; write it below rate_limit",
            _ => {
                let known = self.schema["properties"].as_object().into_iter().flatten();
                let known: Vec<_> = known.map(|(name, _)| name.as_str()).collect();
                return format!("{field}: is unknown; write one of {}", known.join(", "));
            }
        };
        format!("{field}: {advice}")
    }
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fields")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let schema = self.schema;
        while let Some(()) = items.next_element_seed(self.with_schema(schema))? {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        while let Some(key) = fields.next_key::<Spanned<String>>()? {
            let line = key.referenced.line();
            let begins = *self.begins.get_or_insert(line);
            let field = self.schema["properties"].get(&key.value);
            if field.is_none() {
                let problem = self.problem(&key.value);
                self.found.push(((line, problem), begins));
            }
            match field.and_then(|field| self.below(field)) {
                Some(schema) => fields.next_value_seed(self.with_schema(schema))?,
                None => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}
