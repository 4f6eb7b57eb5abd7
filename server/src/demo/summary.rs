//! The demonstration in words: a line for a second, and the summary at the end.

use std::io::{self, Write};

use crate::demo::figures::Figures;

/// One second.
pub(super) fn line(figures: &Figures) -> String {
    let (wants, granted, used) = (figures.wants(), figures.granted(), figures.used());
    format!(
        "{:>4} s  capacity {:>6.1}  wanted {wants:>6.1}  granted {granted:>6.1}  used {used:>6.1}",
        figures.elapsed().as_secs(),
        figures.capacity,
    )
}

/// The whole.
pub(super) fn write(out: &mut impl Write, figures: &Figures) -> io::Result<()> {
    let seconds = figures.elapsed().as_secs_f64();
    let of_capacity = |amount: f64| match figures.capacity {
        0.0 => "of nothing".to_owned(),
        capacity => format!("{:.1} % of the capacity", amount / capacity * 100.0),
    };
    writeln!(out)?;
    writeln!(
        out,
        "{seconds:.1} s, capacity {} requests/s",
        figures.capacity
    )?;
    let (granted, used) = (figures.most_granted, figures.most_used);
    writeln!(
        out,
        "  utilisation    {:>7.1} % of what could have been used",
        figures.utilisation() * 100.0
    )?;
    writeln!(
        out,
        "  most granted   {granted:>7.1} at any moment, {}",
        of_capacity(granted)
    )?;
    writeln!(
        out,
        "  most used      {used:>7.1} in any second, {}",
        of_capacity(used)
    )?;
    writeln!(out)?;
    let width = figures
        .clients
        .iter()
        .map(|client| client.name.chars().count())
        .max();
    let width = width.unwrap_or(0).max("client".len());
    writeln!(
        out,
        "  {:width$}  {:>8}  {:>8}  {:>8}   (mean per second)",
        "client", "wanted", "granted", "used"
    )?;
    let mean = |total: f64| if seconds > 0.0 { total / seconds } else { 0.0 };
    for client in &figures.clients {
        writeln!(
            out,
            "  {:width$}  {:>8.2}  {:>8.2}  {:>8.2}",
            client.name,
            mean(client.wanted_total),
            mean(client.granted_total),
            mean(client.used_total),
        )?;
    }
    Ok(())
}
