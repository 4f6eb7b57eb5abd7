//! The answers of rules to requests at a server.

use std::io::{self, Write};

use doorward_pages::numbers::count;
use doorward_pages::terminal::palette::{Palette, Tone};
use doorward_pages::terminal::table::{Table, cell};
use doorward_proto::admin::v1::RuleDecisions;

use crate::granted::span;

/// Writes a table, and an empty line. Without answers it writes nothing.
pub(super) fn write_table(
    out: &mut impl Write,
    decisions: &[RuleDecisions],
    palette: Palette,
) -> io::Result<()> {
    if decisions.is_empty() {
        return Ok(());
    }
    let header = [
        "rule",
        "allowed",
        "waited",
        "shadow",
        "refused",
        "last refusal",
    ];
    let mut table = Table::new(header, 1..6, palette);
    for it in decisions {
        let rule = match it.rule.as_str() {
            "unmatched" => format!("{}: unmatched", it.domain),
            rule => rule.to_owned(),
        };
        let age = it.refused_age_ms;
        table.add([
            palette.cell(Tone::Strong, rule),
            cell(count(it.allowed_count)),
            cell(count(it.waited_count)),
            cell(count(it.shadow_count)),
            cell(count(it.refused_count)),
            cell(age.map_or_else(String::new, |age| format!("{} ago", span(age)))),
        ]);
    }
    table.write(out)?;
    writeln!(out)
}
