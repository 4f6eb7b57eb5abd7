//! Templates as `doorward templates check` and `doorward status --templates` list them.

use doorward_pages::terminal::{Column, Palette, Table, Tone, cell};
use doorward_proto::admin::v1::TemplateStatus;

use crate::granted::{number, span};

const COLUMNS: &[Column<TemplateStatus>] = &[
    ("glob", |it, palette| {
        palette.cell(Tone::Strong, &it.identifier_glob)
    }),
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

/// Returns the capacity as text, with the most that one client can have, if that is limited.
fn capacity(template: &TemplateStatus) -> String {
    let capacity = number(template.capacity);
    match template.wants_max.map(number) {
        Some(most) => format!("{capacity} ({most} a client)"),
        None => capacity,
    }
}
