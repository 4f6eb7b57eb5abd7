//! `doorward status --templates`: the templates that a server goes by, wherever it has them from.

use std::time::Duration;

use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_proto::admin::v1::{GetStatusResponse as Status, TemplateStatus};

use super::does_not_say;
use crate::documents::author::plain;
use crate::failure::Failure;

/// Reads the templates in force.
///
/// # Errors
///
/// If the server does not say them, or this release does not know what they say.
pub(super) fn in_force(status: &Status) -> Result<Templates, Failure> {
    if status.templates.is_empty() && status.templates_count > 0 {
        return Err(does_not_say(status, "templates"));
    }
    let specs: Vec<TemplateSpec> = status.templates.iter().map(spec).collect();
    Templates::parse(&specs).map_err(|problems| {
        let first = problems.into_iter().next();
        let first = first.map(|it| it.message).unwrap_or_default();
        let (node, version) = (&status.node, &status.version);
        let problem =
            format!("{node} {version} has a template that this release cannot read: {first}");
        Failure::No(plain(&problem).into_owned())
    })
}

fn spec(template: &TemplateStatus) -> TemplateSpec {
    let parameters = template.parameters.iter();
    let mut kinds = AlgorithmKind::ALL.into_iter();
    let kind = kinds.find(|kind| kind.as_str() == template.kind);
    TemplateSpec {
        identifier_glob: Some(template.identifier_glob.clone()),
        capacity: Some(template.capacity),
        safe_capacity: template.safe_capacity,
        wants_max: template.wants_max,
        subclients_max: template.subclients_max,
        share_floor: template.share_floor,
        description: Some(template.description.clone()),
        kind,
        lease_length: Some(Duration::from_millis(template.lease_length_ms)),
        refresh_interval: Some(Duration::from_millis(template.refresh_interval_ms)),
        learning_mode_duration: Some(Duration::from_millis(template.learning_mode_duration_ms)),
        parameters: parameters
            .map(|(name, value)| (name.clone(), Some(value.clone())))
            .collect(),
    }
}
