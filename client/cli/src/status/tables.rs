//! Tables of resources and of leases, for `doorward status` and `doorward top`.

use std::io::{self, Write};

use doorward_pages::terminal::{Cell, Column, Palette, Table, Tone, cell};
use doorward_proto::admin::v1::{LeaseStatus, ResourceStatus};

use crate::granted::{granted_cell, number, span};
use crate::status::{reasoned_table, tree};

/// Columns of resources after those of every table.
pub(crate) type Columns = [Column<ResourceStatus>];

/// The columns of every table of resources.
const RESOURCE: &Columns = &[
    ("resource", |it, palette| {
        palette.cell(Tone::Strong, &it.resource_id)
    }),
    ("algorithm", |it, _| cell(it.algorithm())),
    ("capacity", |it, _| cell(number(it.capacity))),
    ("wants", |it, _| cell(number(it.wants))),
    ("granted", |it, palette| {
        granted_cell(it.granted, it.wants, palette)
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
    let (tone, state) = match (own, resource.learning_remaining_ms, above) {
        (Some(own), ..) if own.refusal.is_some() => (Tone::Bad, "refused by the parent".to_owned()),
        (Some(own), ..) if own.expires_in_ms.is_none() => {
            (Tone::Partial, "waits for the parent".to_owned())
        }
        (None, ..) if resource.template.is_none() => (Tone::Bad, "template gone".to_owned()),
        (None, Some(left), _) => (Tone::Partial, format!("learning for {}", span(left))),
        (Some(_), Some(left), _) => (
            Tone::Partial,
            format!("learning for at most {}", span(left)),
        ),
        (_, None, Some(left)) => (
            Tone::Partial,
            format!("learning above for at most {}", span(left)),
        ),
        (_, None, None) => return cell(""),
    };
    palette.cell(tone, state)
}

/// A lease, and its resource if the table has several.
type Lease<'a> = (Option<&'a str>, &'a LeaseStatus);

/// Writes leases with their reasons, each behind the name of its resource if there is one.
pub(crate) fn write_leases(
    out: &mut impl Write,
    leases: &[Lease<'_>],
    palette: Palette,
) -> io::Result<()> {
    let columns: [Column<Lease<'_>>; 8] = [
        ("resource", |it, palette| {
            palette.cell(Tone::Strong, it.0.unwrap_or_default())
        }),
        ("holder", |(_, it), palette| {
            let holder = match it.kind.as_str() {
                "client" => it.holder.clone(),
                kind => format!("{kind} {}", it.holder),
            };
            palette.cell(Tone::Strong, holder)
        }),
        ("priority", |it, _| cell(it.1.priority)),
        ("wants", |it, _| cell(number(it.1.wants))),
        ("share", |it, _| cell(number(it.1.share))),
        ("granted", |it, palette| {
            granted_cell(it.1.granted, it.1.wants, palette)
        }),
        ("reserved", |it, _| cell(number(it.1.reserved))),
        ("expires in", |it, _| cell(span(it.1.expires_in_ms))),
    ];
    let skipped = usize::from(leases.first().is_some_and(|it| it.0.is_none()));
    let columns = columns.get(skipped..).unwrap_or_default();
    let numbers = 2 - skipped..8 - skipped;
    let why: Column<Lease<'_>> = ("why", |it, _| cell(&it.1.why));
    reasoned_table::write(out, columns, numbers, why, leases, palette)
}
