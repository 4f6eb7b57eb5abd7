//! Templates: in the scenario itself as template files have them, or in a file of their own.

use std::fs;
use std::path::Path;
use std::time::Duration;

use doorward_documents::{parse_bytes, parse_yaml};
use doorward_engine::id::ResourceId;
use doorward_engine::templates::{Algorithm, Template, Templates};
use serde_json::{Value as Json, json};

use crate::scenario::forms::{Read, ScenarioError};

/// Reads `{resources: […]}`, or the name of a file in which this stands.
pub(super) fn read(value: &Json, folder: &Path) -> Read<Templates> {
    if let Json::String(name) = value {
        let path = folder.join(name);
        let bytes = fs::read(&path).map_err(|cause| {
            ScenarioError::new("", format!("is {name:?}, which cannot be read: {cause}"))
        })?;
        let file = path.display().to_string();
        return parse_bytes(&bytes, &file).map_err(|error| ScenarioError::new("", error));
    }
    parsed(value)
}

fn parsed(document: &Json) -> Read<Templates> {
    // JSON is YAML.
    parse_yaml(&document.to_string(), "").map_err(|error| {
        let problems: Vec<String> = error.problems.iter().map(ToString::to_string).collect();
        ScenarioError::new("", problems.join("\n"))
    })
}

/// Returns the ids of the templates for a single resource.
pub fn ids(templates: &Templates) -> Vec<ResourceId> {
    let globs = templates.iter().map(|it| it.identifier_glob.as_str());
    let single = globs.filter(|glob| !glob.contains(['*', '?', '[', '{', '\\']));
    single.filter_map(|id| ResourceId::new(id).ok()).collect()
}

/// Returns templates as a file has them.
pub fn written(templates: &Templates) -> Json {
    let resources: Vec<Json> = templates.iter().map(|it| template(it, 1.0, None)).collect();
    json!({"resources": resources})
}

/// Returns templates with the capacity times a factor, and leases of another length. A learning mode as long as the
/// leases stays as long as the leases.
///
/// # Errors
///
/// If a changed template is invalid.
pub fn what_if<'a>(
    templates: impl Iterator<Item = &'a Template>,
    capacity_factor: f64,
    lease_length: Option<Duration>,
) -> Result<Templates, String> {
    let resources = templates.map(|it| template(it, capacity_factor, lease_length));
    let resources: Vec<Json> = resources.collect();
    parsed(&json!({"resources": resources})).map_err(|error| error.to_string())
}

/// A template as a file has it.
fn template(template: &Template, capacity_factor: f64, lease_length: Option<Duration>) -> Json {
    let algorithm = &template.algorithm;
    let usual = Algorithm::default().parameters();
    let parameters = algorithm.parameters().into_iter();
    let parameters = parameters.filter(|it| !usual.contains(it));
    let parameters = parameters.map(|(name, value)| json!({"name": name, "value": value}));
    let parameters: Vec<Json> = parameters.collect();
    // A lease of another length, here or written into the file, has a learning mode of that length, too.
    let learning = Some(algorithm.learning_mode_duration);
    let learning = learning.filter(|learning| *learning != algorithm.lease_length);
    let duration = |duration| humantime::format_duration(duration).to_string();
    json!({
        "identifier_glob": template.identifier_glob,
        "capacity": template.capacity.get() * capacity_factor,
        "safe_capacity": template.safe_capacity.map(f64::from),
        "wants_max": template.holder_bounds.wants_max.map(|it| it.get()),
        "subclients_max": template.holder_bounds.subclients_max.map(|it| it.get()),
        "share_floor": template.share_floor.map(|it| it.get()),
        "description": Some(&template.description).filter(|text| !text.is_empty()),
        "algorithm": {
            "kind": algorithm.kind.as_str(),
            "lease_length": duration(lease_length.unwrap_or(algorithm.lease_length)),
            "refresh_interval": duration(algorithm.refresh_interval),
            "learning_mode_duration": learning.map(duration),
            "parameters": parameters,
        },
    })
}
