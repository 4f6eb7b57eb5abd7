//! The demonstration in words: its tree, a line for each second, and the summary at the end.

use std::io::{self, Write};
use std::net::SocketAddr;

use crate::demo::demo_figures::DemoFigures;
use crate::demo::outline::{LEAVES, Outline, SERVERS, children};
use doorward_pages::terminal::{Palette, Table};

/// Returns the clients and the capacity.
pub(super) fn title(figures: &DemoFigures) -> String {
    let (clients, leaves) = (figures.outline.clients.len(), LEAVES.len());
    let capacity = figures.capacity;
    format!("{clients} clients at {leaves} leaves share {capacity} requests/s, fairly")
}

/// The tree, with the status page of each server and the clients of each leaf.
pub(super) fn write_tree(
    out: &mut impl Write,
    outline: &Outline,
    pages: &[SocketAddr],
) -> io::Result<()> {
    let mut table = Table::headless(0..0, Palette { on: false }).in_lines(2);
    for (index, (server, page)) in SERVERS.iter().zip(pages).enumerate() {
        let clients: Vec<&str> = outline.clients_of(index).map(|(_, name)| name).collect();
        let page = format!("http://{page}/");
        table.add([server.label(), page, clients.join(" ")]);
    }
    table.write(out)
}

/// Legend of [`line()`].
pub(super) const LEGEND: &str = "\
averages over each second: amounts wanted, granted and used by all clients; then the leases of each region and (of its
leaves), which may be more than their clients have";

/// The last second, on average: all clients, and the leases of each part of the tree. `killed`: the server that is down.
pub(super) fn line(figures: &DemoFigures, killed: Option<usize>) -> String {
    let whole = figures.whole.last_second;
    let mut line = format!(
        "{:>4} s  wanted {:>5.1}  granted {:>5.1}  used {:>5.1} of {}",
        figures.elapsed().as_secs(),
        whole.wants,
        whole.has,
        whole.used,
        figures.capacity,
    );
    let has = |server: usize| {
        let server = figures.parts.get(server);
        server.map_or(0.0, |server| server.last_second.has)
    };
    for region in children(0) {
        let name = SERVERS.get(region).map_or("", |place| place.name);
        let leaves = children(region).map(|leaf| format!("{:.1}", has(leaf)));
        let leaves: Vec<String> = leaves.collect();
        let leaves = format!("({})", leaves.join(" + "));
        line += &format!("   {name} {:>5.1} {leaves:13}", has(region));
    }
    if let Some(killed) = killed.and_then(|it| SERVERS.get(it)) {
        line += &format!("  {} killed", killed.name);
    }
    line.truncate(line.trim_end().len());
    line
}

/// The whole.
pub(super) fn write(out: &mut impl Write, figures: &DemoFigures) -> io::Result<()> {
    let seconds = figures.elapsed().as_secs_f64();
    let capacity = figures.capacity;
    writeln!(out, "\n{seconds:.1} s, capacity {capacity} requests/s")?;
    if let Some(utilisation) = figures.utilisation() {
        let percent = utilisation * 100.0;
        let usable = "the usable amount (the demand, up to the capacity)";
        writeln!(out, "  utilisation    {percent:>7.1} % of {usable}")?;
    }
    for (title, most, when) in [
        ("most granted", figures.most_granted, "at any moment"),
        ("most used", figures.most_used, "in any second"),
    ] {
        let part = of_capacity(most, capacity);
        writeln!(out, "  {title:<14} {most:>7.1} {when}, {part}")?;
    }
    writeln!(out)?;
    let header = ["mean per second", "wanted", "leased", "used"];
    let mut table = Table::new(header, 1..4, Palette { on: false }).in_lines(2);
    for (who, label) in figures.outline.lines() {
        let part = figures.parts.get(who);
        let total = part.map(|part| part.total).unwrap_or_default();
        let means = [total.wants, total.has, total.used]
            .map(|total| if seconds > 0.0 { total / seconds } else { 0.0 })
            .map(|mean| format!("{mean:.2}"));
        table.add([vec![label], means.into()].concat());
    }
    table.write(out)?;
    writeln!(
        out,
        "  The root owns the whole capacity. Any part that no child leases stays free."
    )
}

/// In words, how much of the capacity an amount is.
pub(super) fn of_capacity(amount: f64, capacity: f64) -> String {
    if capacity > 0.0 {
        format!("{:.1} % of the capacity", amount / capacity * 100.0)
    } else {
        "of nothing".to_owned()
    }
}

#[cfg(test)]
mod tests;
