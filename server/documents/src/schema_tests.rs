//! The JSON Schema of templates, in `docs/schemas`, against the reader.

use crate::reader;

#[test]
fn the_published_schema_has_the_keys_and_kinds_that_are_read() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/schemas/templates.json"
    );
    let schema: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let check = |name: &str, keys: &[&str]| {
        let properties = schema["$defs"][name]["properties"].as_object().unwrap();
        let mut expected = keys.to_vec();
        expected.sort_unstable();
        let mut found: Vec<&str> = properties.keys().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{name}");
    };
    check("Template", &reader::TEMPLATE_KEYS);
    check("Algorithm", &reader::ALGORITHM_KEYS);
    let kinds = &schema["$defs"]["Algorithm"]["properties"]["kind"]["enum"];
    for (number, kind) in reader::KIND_NUMBERS {
        let has = |value: serde_json::Value| kinds.as_array().unwrap().contains(&value);
        assert!(has(kind.as_str().into()) && has(number.into()));
    }
}
