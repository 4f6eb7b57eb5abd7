//! A template as a status lists it, of a server as of a document.

use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::templates::Template;
use doorward_proto::admin::v1::TemplateStatus;
use doorward_time::millis;

/// Returns what a status says of a template.
pub fn template_status(template: &Template) -> TemplateStatus {
    let algorithm = &template.algorithm;
    TemplateStatus {
        identifier_glob: template.identifier_glob.clone(),
        capacity: template.capacity.get(),
        safe_capacity: template.safe_capacity.map(f64::from),
        wants_max: template.holder_bounds.wants_max.map(Amount::get),
        subclients_max: template.holder_bounds.subclients_max.map(Subclients::get),
        share_floor: template.share_floor.map(Amount::get),
        description: template.description.clone(),
        kind: algorithm.kind.as_str().to_owned(),
        lease_length_ms: millis(algorithm.lease_length),
        refresh_interval_ms: millis(algorithm.refresh_interval),
        learning_mode_duration_ms: millis(algorithm.learning_mode_duration),
        parameters: algorithm.parameters().into_iter().collect(),
    }
}
