//! Tables of resources and of leases, for `doorward status` and `doorward top`.

use doorward_pages::terminal::palette::{Palette, Tone};
use doorward_pages::terminal::table::{Cell, Table, cell};
use doorward_proto::admin::v1::{LeaseStatus, ResourceStatus};

use crate::granted::{number, span, tone_of};
use crate::status::reasoned_table::ReasonedTable;
use crate::status::tree;

/// Columns of a table of resources after those of every one.
pub(crate) type Columns = [(&'static str, fn(&ResourceStatus) -> Cell)];

/// The columns of `--output wide`.
pub(crate) const WIDE: &Columns = &[
    ("leases", |it| cell(it.leases_count)),
    ("template", |it| cell(it.template())),
    ("lease length", |it| cell(span(it.lease_length_ms))),
];

/// Resources, each with its child servers.
pub(crate) fn resources_table<'a>(
    resources: impl Iterator<Item = &'a ResourceStatus>,
    extra: &Columns,
    palette: Palette,
) -> Table {
    let mut header = vec![
        "resource",
        "algorithm",
        "capacity",
        "wants",
        "granted",
        "reserved",
        "clients",
        "waiting",
        "state",
    ];
    header.extend(extra.iter().map(|(title, _)| title));
    let mut table = Table::new(header, 2..8, palette);
    for resource in resources {
        let state = state(resource);
        let state = state.map_or_else(|| cell(""), |(tone, state)| palette.cell(tone, state));
        let waiting = match resource.waiting_count {
            0 => cell(0),
            waiting => palette.cell(Tone::Partial, waiting),
        };
        let mut row = vec![
            palette.cell(Tone::Strong, &resource.resource_id),
            cell(resource.algorithm()),
            cell(number(resource.capacity)),
            cell(number(resource.wants)),
            palette.cell(
                tone_of(resource.granted, resource.wants),
                number(resource.granted),
            ),
            cell(number(resource.reserved)),
            cell(resource.clients_count),
            waiting,
            state,
        ];
        row.extend(extra.iter().map(|(_, of)| of(resource)));
        table.add(row);
        for child in &resource.children {
            table.add(tree::row(child, palette));
        }
    }
    table
}

/// Returns the state of a resource, if it needs a word.
fn state(resource: &ResourceStatus) -> Option<(Tone, String)> {
    let (partial, bad) = (Tone::Partial, Tone::Bad);
    Some(
        match (&resource.own_lease, resource.learning_remaining_ms) {
            (Some(own), _) if own.refusal.is_some() => (bad, "refused by the parent".to_owned()),
            (Some(own), _) if own.expires_in_ms.is_none() => {
                (partial, "waits for the parent".to_owned())
            }
            (None, _) if resource.template.is_none() => (bad, "template gone".to_owned()),
            (None, Some(left)) => (partial, format!("learning for {}", span(left))),
            (Some(_), Some(left)) => (partial, format!("learning for at most {}", span(left))),
            (Some(own), None) => {
                let left = own.parent_learning_remaining_ms?;
                (
                    partial,
                    format!("learning above for at most {}", span(left)),
                )
            }
            (None, None) => return None,
        },
    )
}

/// Leases with their reasons, each behind the name of its resource if there is one.
pub(crate) fn leases_table<'a>(
    leases: impl IntoIterator<Item = (Option<&'a str>, &'a LeaseStatus)>,
    palette: Palette,
) -> ReasonedTable {
    let columns = [
        "resource",
        "holder",
        "priority",
        "wants",
        "share",
        "granted",
        "reserved",
        "expires in",
    ];
    let mut leases = leases.into_iter().peekable();
    let skipped = usize::from(leases.peek().is_some_and(|it| it.0.is_none()));
    let columns = columns.get(skipped..).unwrap_or_default();
    let mut table = ReasonedTable::new(columns, 2 - skipped..8 - skipped, palette);
    for (resource, lease) in leases {
        let holder = match lease.kind.as_str() {
            "client" => lease.holder.clone(),
            kind => format!("{kind} {}", lease.holder),
        };
        let holder = palette.cell(Tone::Strong, holder);
        let resource = resource.map(|it| palette.cell(Tone::Strong, it));
        let amounts = [
            cell(lease.priority),
            cell(number(lease.wants)),
            cell(number(lease.share)),
            palette.cell(tone_of(lease.granted, lease.wants), number(lease.granted)),
            cell(number(lease.reserved)),
            cell(span(lease.expires_in_ms)),
        ];
        let mut cells = resource.into_iter().chain([holder]).chain(amounts);
        if let Some(first) = cells.next() {
            table.add(first, cells, &lease.why);
        }
    }
    table
}
