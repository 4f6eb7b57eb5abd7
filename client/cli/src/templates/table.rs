//! Templates as `doorward templates check` and `doorward status --templates` list them.

use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::templates::Templates;
use doorward_pages::terminal::{Column, Palette, Table, cell};
use doorward_proto::admin::v1::TemplateStatus;
use serde_json::{Value, json};

use crate::granted::{number, span, strong};

const COLUMNS: &[Column<TemplateStatus>] = &[
    ("glob", |it, palette| strong(&it.identifier_glob, palette)),
    ("algorithm", |it, _| cell(&it.kind)),
    ("capacity", |it, _| cell(capacity(it))),
    ("safe", |it, _| {
        let safe = it.safe_capacity;
        cell(safe.map_or_else(|| "dynamic".to_owned(), number))
    }),
    ("lease", |it, _| cell(span(it.lease_length_ms))),
    ("refresh", |it, _| cell(span(it.refresh_interval_ms))),
    ("learning", |it, _| cell(span(it.learning_mode_duration_ms))),
];

/// Returns a table with a line for each template.
pub(crate) fn of(templates: &[TemplateStatus], palette: Palette) -> Table {
    Table::of(COLUMNS, 2..7, templates, palette)
}

/// Returns the templates for programs. Its field names are an interface.
pub(super) fn to_json(templates: &Templates) -> Value {
    let listed = templates.iter().map(|template| {
        json!({
            "identifier_glob": template.identifier_glob,
            "capacity": template.capacity.get(),
            "safe_capacity": template.safe_capacity.map(f64::from),
            "wants_max": template.holder_bounds.wants_max.map(Amount::get),
            "subclients_max": template.holder_bounds.subclients_max.map(Subclients::get),
            "share_floor": template.share_floor.map(Amount::get),
            "description": template.description,
            "kind": template.algorithm.kind.as_str(),
            "lease_length_s": template.algorithm.lease_length.as_secs_f64(),
            "refresh_interval_s": template.algorithm.refresh_interval.as_secs_f64(),
            "learning_mode_duration_s": template.algorithm.learning_mode_duration.as_secs_f64(),
        })
    });
    listed.collect()
}

/// Returns the capacity as text, with the most that one client can have, if that is limited.
fn capacity(template: &TemplateStatus) -> String {
    let capacity = number(template.capacity);
    match template.wants_max.map(number) {
        Some(most) => format!("{capacity} ({most} a client)"),
        None => capacity,
    }
}
