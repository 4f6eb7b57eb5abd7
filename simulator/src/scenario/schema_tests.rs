//! The JSON Schema of scenario files, which is made of the types that read them.

use std::fs;
use std::path::Path;

use schemars::schema_for;

use crate::scenario::Scenario;

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
