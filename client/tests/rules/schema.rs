//! The schema of a document, which editors use.

use doorward::rules::Rules;
use serde_json::Value;

use crate::documents::TWO;

/// Returns whether a value fits a schema, by the words that the published one has.
fn fits(root: &Value, schema: &Value, value: &Value) -> bool {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is_kind = |word: &Value| word == kind || (word == "integer" && value.is_u64());
    let any = |word: &str| {
        let mut choices = schema[word].as_array().into_iter().flatten();
        schema.get(word).is_none() || choices.any(|choice| fits(root, choice, value))
    };
    let fields = value.as_object().into_iter().flatten();
    let of_field = |name: &str| schema["properties"].get(name);
    fields.clone().all(|(name, value)| match of_field(name) {
        Some(field) => fits(root, field, value),
        None => schema.get("additionalProperties") != Some(&Value::Bool(false)),
    }) && any("anyOf")
        && any("oneOf")
        && schema["type"].as_array().map_or(
            schema["type"].is_null() || is_kind(&schema["type"]),
            |kinds| kinds.iter().any(is_kind),
        )
        && schema.get("const").is_none_or(|it| it == value)
        && schema["enum"]
            .as_array()
            .is_none_or(|all| all.contains(value))
        && schema["minimum"]
            .as_f64()
            .is_none_or(|least| value.as_f64().is_none_or(|it| it >= least))
        && schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .all(|name| name.as_str().is_some_and(|name| value.get(name).is_some()))
        && value
            .as_array()
            .into_iter()
            .flatten()
            .all(|it| fits(root, &schema["items"], it))
        && schema["$ref"].as_str().is_none_or(|path| {
            let target = root.pointer(path.trim_start_matches('#'));
            target.is_some_and(|target| fits(root, target, value))
        })
}

#[test]
fn the_schema_accepts_documents_that_load_and_no_others() {
    let schema = serde_json::from_str(Rules::schema()).unwrap();
    let check = |text: &str| {
        let value: Value = serde_saphyr::from_str(text).unwrap();
        let loads = Rules::load(&[("a.yaml", text)]);
        assert_eq!(
            fits(&schema, &schema, &value),
            loads.is_ok(),
            "{text} {loads:?}"
        );
    };
    let page = include_str!("../../../docs/rules.md");
    let (_, page) = page.split_once("```yaml\n").unwrap();
    check(page.split_once("```").unwrap().0);
    let bans = "ban: {threshold: 1, interval: 1min, length: 1min";
    for (limit, beside) in [
        (TWO, "value: 404"),
        (TWO, "value: true"),
        ("{rate: 2/s, algorithm: gcra}", "cost: 1"),
        ("{rate: 2/s, algorithm: magic}", ""),
        ("{unit: Minute, requests_per_unit: 2}", ""),
        ("{unit: minute}", ""),
        ("{unlimited: true, name: 1}", ""),
        ("{}", ""),
        (TWO, "cost: 0"),
        (TWO, "ban:"),
        (TWO, &format!("{bans}, growing: true}}")),
        (TWO, &format!("{bans}, growing: 1h}}")),
        (TWO, "action: perhaps"),
        (TWO, "scope: shared"),
        (TWO, "callers: [{name: web-*, priority: 1, weight: 3}]"),
        (TWO, "callers: [{name: a, share: 3}]"),
    ] {
        check(&format!(
            "domain: 1\ndescriptors:\n- key: user\n  rate_limit: {limit}\n  {beside}\n"
        ));
    }
    for field in [
        "unmatched: deny",
        "unmatched: reject",
        "count: all",
        "count: attempts",
    ] {
        check(&format!("domain: shop\nempty: true\n{field}\n"));
        check(&format!("domain: shop\n{field}\n"));
    }
}
