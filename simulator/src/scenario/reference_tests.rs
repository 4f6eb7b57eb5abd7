//! The reference of scenario files and their JSON Schema, which are made of the types that read them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use schemars::schema_for;
use serde_json::{Map, Value};

use crate::scenario::Scenario;

const HEAD: &str = "# Scenario files: reference\n
The [guide](simulator.md) shows how scenario files are used. These lists are made of the source; a test holds them. An
editor can check files by the JSON Schema in [scenario.schema.json](scenario.schema.json).

| value | meaning |
| --- | --- |
| duration | Seconds as a number, or written out: `15s`, `2m`, `1m 30s`, `500ms`; at most 365 days. A time counts from the start. |
| duration or list | A duration, or the shortest and the longest of those from which chance chooses: `[10s, 60s]`. |
| amount | A number from 0 to 10¹⁵. |
| node | The name of a node. In `at`, also `leaves`, `all`, a key of the tree (all its nodes), or a list of these. In faults, also `any`, `below_root`, `leaves`, a key of the tree, or a list: chance chooses one. |
";

const FAULT: &str = "
A fault has a [time](#when) and an [event](#event). Instead of the event it may have `one_of`, a list of events, of which
chance chooses one. Each of them may have a `weight`, 1 without it.
";

/// Describes a value.
fn shape(schema: &Value) -> String {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    let number = |key: &str| schema.get(key).map(|it| it.to_string().replace(".0", ""));
    let each = |key: &str| schema.get(key).and_then(Value::as_array).map(Vec::as_slice);
    if let Some(name) = text("$ref").and_then(|it| it.rsplit_once('/')) {
        return format!("[{}](#{})", name.1, name.1.to_lowercase());
    }
    if let Some(kinds) = each("anyOf").or(each("oneOf")) {
        let mut shapes: Vec<String> = kinds.iter().map(shape).collect();
        shapes.retain(|it| !it.is_empty() && it != "null");
        shapes.dedup();
        if let [one, list] = &shapes[..]
            && *list == format!("list of {one}")
        {
            return format!("{one} or list");
        }
        return shapes.join(" or ");
    }
    if let Some(word) = text("const") {
        return format!("`{word}`");
    }
    if let Some(words) = each("enum") {
        let words = words.iter().filter_map(Value::as_str);
        let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
        return words.join(" or ");
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        kind => kind.and_then(Value::as_str),
    };
    match (
        kind.unwrap_or_default(),
        number("minimum"),
        number("maximum"),
    ) {
        _ if text("format") == Some("duration") => "duration".to_owned(),
        ("number", Some(least), Some(_)) if least == "0" && schema["maximum"] == 1e15 => {
            "amount".to_owned()
        }
        ("number" | "integer", Some(least), Some(most)) => format!("{least} … {most}"),
        ("integer", ..) => "whole number".to_owned(),
        ("string", ..) => "text".to_owned(),
        ("boolean", ..) => "`true` or `false`".to_owned(),
        ("array", ..) => match schema.get("items") {
            Some(Value::Object(items)) => format!("list of {}", shape(&items.clone().into())),
            _ => "list".to_owned(),
        },
        ("object", ..) => match schema.get("properties").and_then(Value::as_object) {
            Some(fields) => {
                let keys: Vec<String> = fields.keys().map(|key| format!("`{key}`")).collect();
                format!("map of {}", keys.join(", "))
            }
            None => "map".to_owned(),
        },
        (other, ..) => other.to_owned(),
    }
}

/// Documentation in one line.
fn doc(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str);
    text.unwrap_or_default().replace('\n', " ")
}

/// The list of the fields of a map.
fn fields(out: &mut String, schema: &Value) {
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required = schema.get("required").and_then(Value::as_array);
    out.push('\n');
    for (key, field) in fields {
        let is_required = required.is_some_and(|it| it.iter().any(|it| it == key));
        let absent = match field.get("default") {
            _ if is_required => ", needed".to_owned(),
            None | Some(Value::Null | Value::Object(_)) => String::new(),
            Some(default) => format!(
                ", default `{}`",
                default.to_string().replace('"', "").replace(".0", "")
            ),
        };
        let (shape, doc) = (shape(field), doc(field));
        writeln!(out, "- `{key}` ({shape}{absent}): {doc}").unwrap();
    }
}

/// A heading and its tables: one of fields, or one for each kind.
fn section(out: &mut String, name: &str, schema: &Value) {
    write!(out, "\n## {name}\n\n{}\n", doc(schema)).unwrap();
    fields(out, schema);
    if name == "Fault" {
        out.push_str(FAULT);
    }
    let kinds = ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|it| schema.get(it)?.as_array());
    for kind in kinds.flatten() {
        // The first key that is needed says which kind it is.
        let key = kind
            .get("required")
            .and_then(|it| it.get(0))
            .and_then(Value::as_str);
        let Some(key) = key else {
            continue;
        };
        write!(out, "\n### `{key}`\n\n{}\n", doc(kind)).unwrap();
        match kind.get("properties").and_then(Value::as_object) {
            Some(only) if only.len() == 1 && only[key].get("properties").is_some() => {
                fields(out, &only[key]);
            }
            Some(_) => fields(out, kind),
            None => {}
        }
    }
}

/// Compares a file of the docs with the expected text. To write it anew, set `DOORWARD_WRITE_REFERENCE`.
#[track_caller]
fn check_file(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name);
    if std::env::var_os("DOORWARD_WRITE_REFERENCE").is_some() {
        fs::write(&path, expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let differs = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
    assert_eq!(
        differs, None,
        "run this test with DOORWARD_WRITE_REFERENCE=1"
    );
    assert_eq!(found, expected);
}

#[test]
fn the_reference_and_the_schema_are_those_of_the_types() {
    let schema = schema_for!(Scenario).to_value();
    let text = serde_json::to_string_pretty(&schema).unwrap();
    check_file("scenario.schema.json", &format!("{text}\n"));
    let mut out = HEAD.to_owned();
    section(&mut out, "Scenario", &schema);
    let none = Map::new();
    let parts = schema
        .get("$defs")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    for (name, part) in parts {
        section(&mut out, name, part);
    }
    check_file("simulator-reference.md", &out);
}
