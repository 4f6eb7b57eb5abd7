//! The demonstration in words: its tree, a line for each second, and the summary at the end.

use std::io::{self, Write};
use std::net::SocketAddr;

use crate::demo::demo_figures::DemoFigures;
use crate::demo::outline::{Outline, OutlineEntry, label_width};

/// The tree, with the status page of each server and the clients of each leaf.
pub(super) fn write_tree(
    out: &mut impl Write,
    outline: &Outline,
    pages: &[SocketAddr],
) -> io::Result<()> {
    // Clients stand beside their leaf: this is only to find one's way.
    let servers = Outline {
        servers: outline.servers.clone(),
        clients: Vec::new(),
    };
    let lines = servers.lines(usize::MAX);
    let width = label_width(&lines);
    for line in lines {
        let OutlineEntry::Server(server) = line.who else {
            continue;
        };
        let page = pages.get(server).map(|page| format!("http://{page}/"));
        let clients: Vec<&str> = outline
            .clients_of(server)
            .filter_map(|client| outline.clients.get(client))
            .map(|place| place.name.as_str())
            .collect();
        let line = format!(
            "  {:width$}  {:<24}  {}",
            line.label,
            page.unwrap_or_default(),
            clients.join(" ")
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
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
        let server = figures.servers.get(server);
        server.map_or(0.0, |server| server.last_second.has)
    };
    let outline = &figures.outline;
    for region in outline
        .children(None)
        .flat_map(|root| outline.children(Some(root)))
    {
        let name = outline.servers.get(region).map(|place| &place.name);
        let name = name.map_or("", String::as_str);
        let leaves = outline.children(Some(region));
        let leaves: Vec<String> = leaves.map(|leaf| format!("{:.1}", has(leaf))).collect();
        let leaves = format!("({})", leaves.join(" + "));
        line += &format!("   {name} {:>5.1} {leaves:13}", has(region));
    }
    if let Some(killed) = killed.and_then(|it| outline.servers.get(it)) {
        line += &format!("  {} killed", killed.name);
    }
    line.truncate(line.trim_end().len());
    line
}

/// The whole.
pub(super) fn write(out: &mut impl Write, figures: &DemoFigures) -> io::Result<()> {
    let seconds = figures.elapsed().as_secs_f64();
    writeln!(out)?;
    writeln!(
        out,
        "{seconds:.1} s, capacity {} requests/s",
        figures.capacity
    )?;
    let (granted, used) = (figures.most_granted, figures.most_used);
    if let Some(utilisation) = figures.utilisation() {
        writeln!(
            out,
            "  utilisation    {:>7.1} % of the usable amount (the demand, up to the capacity)",
            utilisation * 100.0
        )?;
    }
    writeln!(
        out,
        "  most granted   {granted:>7.1} at any moment, {}",
        of_capacity(granted, figures.capacity)
    )?;
    writeln!(
        out,
        "  most used      {used:>7.1} in any second, {}",
        of_capacity(used, figures.capacity)
    )?;
    writeln!(out)?;
    let lines = figures.outline.lines(usize::MAX);
    let title = "mean per second";
    let width = label_width(&lines).max(title.len());
    writeln!(
        out,
        "  {title:width$}  {:>8}  {:>8}  {:>8}",
        "wanted", "leased", "used"
    )?;
    let mean = |total: f64| if seconds > 0.0 { total / seconds } else { 0.0 };
    for line in lines {
        let part = match line.who {
            OutlineEntry::Server(server) => figures.servers.get(server),
            OutlineEntry::Client(client) => figures.clients.get(client),
            OutlineEntry::More(_) => None,
        };
        let total = part.map(|part| part.total).unwrap_or_default();
        writeln!(
            out,
            "  {:width$}  {:>8.2}  {:>8.2}  {:>8.2}",
            line.label,
            mean(total.wants),
            mean(total.has),
            mean(total.used),
        )?;
    }
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
