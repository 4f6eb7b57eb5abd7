//! Tables of resources and of leases, for `doorward status`.

use std::io::{self, Write};

use doorward_pages::terminal::{Cell, Column, Palette, Table, Tone, cell};
use doorward_proto::admin::v1::{BudgetStatus, LeaseStatus, OwnLeaseStatus, ResourceStatus};
use doorward_session::visible::line;

use crate::granted::{gets_cell, number, span, strong};
use crate::output::Out;
use crate::status::{reasoned_table, tree};

/// Columns of resources after those of every table.
pub(crate) type Columns = [Column<ResourceStatus>];

/// The columns of every table of resources.
const RESOURCE: &Columns = &[
    ("resource", |it, palette| strong(&it.resource_id, palette)),
    ("algorithm", |it, _| cell(it.algorithm())),
    ("capacity", |it, _| cell(number(it.capacity))),
    ("wants", |it, _| cell(number(it.wants))),
    ("granted", |it, palette| {
        gets_cell(it.granted, it.wants, palette)
    }),
    ("reserved", |it, _| cell(number(it.reserved))),
    ("clients", |it, _| cell(it.clients_count)),
    ("waiting", |it, palette| match it.waiting_count {
        0 => cell(0),
        waiting => palette.cell(Tone::Partial, waiting),
    }),
    ("state", state),
];

/// The columns of `--output wide`.
pub(crate) const WIDE: &Columns = &[
    ("leases", |it, _| cell(it.leases_count)),
    ("template", |it, _| cell(it.template())),
    ("lease length", |it, _| cell(span(it.lease_length_ms))),
];

/// Resources, each with its child servers.
pub(crate) fn resources_table<'a>(
    resources: impl Iterator<Item = &'a ResourceStatus>,
    extra: &Columns,
    palette: Palette,
) -> Table {
    let columns = [RESOURCE, extra].concat();
    let mut table = Table::of(&columns, 2..8, [], palette);
    for resource in resources {
        table.add_of(&columns, resource, palette);
        for child in &resource.children {
            table.add(tree::row(child, palette));
        }
    }
    table
}

/// Returns the state of a resource, if it needs a word.
fn state(resource: &ResourceStatus, palette: Palette) -> Cell {
    let own = resource.own_lease.as_ref();
    let above = own.and_then(|it| it.parent_learning_remaining_ms);
    let learning = resource.learning_remaining_ms.or(above).map(span);
    let (tone, state) = match (own, resource.learning_remaining_ms, learning) {
        (Some(own), ..) if own.refusal.is_some() => (Tone::Bad, "refused by the parent".to_owned()),
        _ if waits_for_parent(resource) => (Tone::Partial, "waits for the parent".to_owned()),
        (None, ..) if resource.template.is_none() => (Tone::Bad, "template gone".to_owned()),
        (None, _, Some(left)) => (Tone::Partial, format!("learning for {left}")),
        (_, Some(_), Some(left)) => (Tone::Partial, format!("learning for at most {left}")),
        (_, None, Some(left)) => (Tone::Partial, format!("learning above for at most {left}")),
        (.., None) => {
            let budget = resource.budget.as_ref();
            return cell(budget.map_or_else(String::new, |it| used(it, resource.capacity)));
        }
    };
    palette.cell(tone, state)
}

/// Whether a server below the root has no lease. That of a budget that never ends has no end either.
pub(crate) fn waits_for_parent(resource: &ResourceStatus) -> bool {
    let has_end = |own: &OwnLeaseStatus| own.expires_in_ms.is_some();
    let is_endless = resource.budget.is_some() && resource.algorithm.is_some();
    !is_endless && !resource.own_lease.as_ref().is_none_or(has_end)
}

/// Used part of a budget with that capacity, in its unit, and the time until its window ends.
pub(crate) fn used(budget: &BudgetStatus, capacity: f64) -> String {
    let scale = 10_f64.powi(i32::try_from(budget.decimals).unwrap_or_default());
    let [used, all] = [budget.used as f64, capacity].map(|it| number(it / scale));
    let unit = line(&budget.unit);
    let space = if unit.is_empty() { "" } else { " " };
    let ends = budget.window_remaining_ms.map(span);
    let ends = ends.map(|left| format!(", window ends in {left}"));
    format!(
        "{used} of {all}{space}{unit} used{}",
        ends.unwrap_or_default()
    )
}

/// A lease, and its resource if the table has several.
type Lease<'a> = (Option<&'a str>, &'a LeaseStatus);

/// Writes leases with their reasons, each behind the name of its resource if there is one.
pub(crate) fn write_leases(out: &mut Out<impl Write>, leases: &[Lease<'_>]) -> io::Result<()> {
    let columns: [Column<Lease<'_>>; 8] = [
        ("resource", |it, palette| {
            strong(it.0.unwrap_or_default(), palette)
        }),
        ("holder", |(_, it), palette| {
            let holder = match it.kind.as_str() {
                "client" => it.holder.clone(),
                kind => format!("{kind} {}", it.holder),
            };
            strong(holder, palette)
        }),
        ("priority", |it, _| cell(it.1.priority)),
        ("wants", |it, _| cell(number(it.1.wants))),
        ("share", |it, _| cell(number(it.1.share))),
        ("granted", |(_, it), palette| {
            gets_cell(it.granted, it.wants, palette)
        }),
        ("reserved", |it, _| cell(number(it.1.reserved))),
        ("expires in", |it, _| cell(span(it.1.expires_in_ms))),
    ];
    let skipped = usize::from(leases.first().is_some_and(|it| it.0.is_none()));
    let columns = columns.get(skipped..).unwrap_or_default();
    let numbers = 2 - skipped..8 - skipped;
    let why: Column<Lease<'_>> = ("why", |it, _| cell(&it.1.why));
    reasoned_table::write(out, columns, numbers, why, leases)
}
