//! Fields of a document that are unknown, repeated or of a wrong shape: all of them, by the published schema.

use std::collections::BTreeSet;

use doorward_yaml::{PlacedValue, Value};
use serde_json::Value as Schema;

use crate::rules::document::Rules;
use crate::rules::reader::Reader;

impl Reader<'_> {
    /// Refuses the fields of a document that the schema does not have like this.
    pub(super) fn check_fields(&mut self, document: &PlacedValue) {
        // The schema is valid.
        let root = serde_json::from_str(Rules::schema()).unwrap_or_default();
        self.check_map(&root, &root, document, 1);
    }

    /// Checks a map, which begins at a line.
    fn check_map(&mut self, root: &Schema, schema: &Schema, map: &PlacedValue, begins: u64) {
        if !matches!(map.value, Value::Map(_)) {
            let message = "write fields, as in key: user".to_owned();
            return self.unclear_problem(begins, map.place.line, message);
        }
        let mut earlier = BTreeSet::new();
        for (key, value) in map.entries() {
            let (name, line) = (key.text.as_str(), key.place.line);
            let Some(field) = schema["properties"].get(name) else {
                let message = problem(root, schema, name);
                self.unclear_problem(begins, line, message);
                continue;
            };
            if !earlier.insert(name) {
                let message = format!("{name}: is there twice; remove one of the two");
                self.problem(line, message);
                continue;
            }
            let items = field.pointer("/items/$ref");
            let below = items.or_else(|| field.get("$ref")).and_then(Schema::as_str);
            let below = below.and_then(|path| root.pointer(path.strip_prefix('#')?));
            let expected = match (&value.value, below) {
                (Value::Null, _) => continue,
                (Value::List(list), Some(below)) if items.is_some() => {
                    for item in list {
                        self.check_map(root, below, item, item.place.line);
                    }
                    continue;
                }
                (_, Some(_)) if items.is_some() => {
                    "a list belongs here; begin each entry with a dash"
                }
                (Value::Map(_), Some(below)) => {
                    self.check_map(root, below, value, value.place.line);
                    continue;
                }
                (_, Some(_)) => "fields belong here; write them below it",
                (Value::List(_) | Value::Map(_), None) => {
                    "a single value belongs here, not a list or map"
                }
                _ => continue,
            };
            self.unclear_problem(begins, value.place.line, format!("{name}: {expected}"));
        }
    }

    /// Tells a problem of a map that makes it unclear which of its fields are missing.
    fn unclear_problem(&mut self, begins: u64, line: u64, message: String) {
        self.unclear.extend([begins, line]);
        self.problem(line, message);
    }
}

/// Returns the problem of an unknown field, with a remedy.
fn problem(root: &Schema, schema: &Schema, field: &str) -> String {
    let is_of = |form| {
        let fields = root.pointer(&format!("/$defs/{form}/properties"));
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
            let known = schema["properties"].as_object().into_iter().flatten();
            let known: Vec<_> = known.map(|(name, _)| name.as_str()).collect();
            return format!("{field}: is unknown; write one of {}", known.join(", "));
        }
    };
    format!("{field}: {advice}")
}
