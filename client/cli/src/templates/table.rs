//! Templates as `doorward templates check` lists them.

use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::templates::{Template, Templates};
use doorward_pages::numbers::typed_span as span;
use doorward_pages::terminal::palette::{Palette, Tone};
use doorward_pages::terminal::table::{Table, cell};
use serde_json::{Value, json};

use crate::granted::number;

/// Returns a table with a line for each template.
pub(crate) fn of(templates: &Templates, palette: Palette) -> Table {
    let header = [
        "glob",
        "algorithm",
        "capacity",
        "safe",
        "lease",
        "refresh",
        "learning",
    ];
    let mut table = Table::new(header, 2..7, palette);
    for template in templates.iter() {
        let algorithm = &template.algorithm;
        table.add([
            palette.cell(Tone::Strong, &template.identifier_glob),
            cell(algorithm.kind),
            cell(capacity(template)),
            cell(safe(template).map_or_else(|| "dynamic".to_owned(), number)),
            cell(span(algorithm.lease_length)),
            cell(span(algorithm.refresh_interval)),
            cell(span(algorithm.learning_mode_duration)),
        ]);
    }
    table
}

/// Returns the templates for programs. Its field names are an interface.
pub(super) fn to_json(templates: &Templates) -> Value {
    let listed = templates.iter().map(|template| {
        json!({
            "identifier_glob": template.identifier_glob,
            "capacity": template.capacity.get(),
            "safe_capacity": safe(template),
            "wants_max": template.holder_bounds.wants_max.map(Amount::get),
            "subclients_max": template.holder_bounds.subclients_max.map(Subclients::get),
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
fn capacity(template: &Template) -> String {
    let capacity = number(template.capacity.get());
    match template.holder_bounds.wants_max {
        Some(most) => format!("{capacity} ({} a client)", number(most.get())),
        None => capacity,
    }
}

/// Returns the safe capacity; −1 if it is unlimited. None: dynamic.
fn safe(template: &Template) -> Option<f64> {
    template.safe_capacity.map(f64::from)
}
