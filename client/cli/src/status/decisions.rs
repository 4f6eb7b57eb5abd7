//! The answers of rules to requests at a server.

use std::io::{self, Write};

use doorward_pages::numbers::count;
use doorward_pages::terminal::{Column, Table, Tone, cell};
use doorward_proto::admin::v1::RuleDecisions;

use crate::granted::span;
use crate::output::Out;

const COLUMNS: &[Column<RuleDecisions>] = &[
    ("rule", |it, palette| palette.cell(Tone::Strong, rule(it))),
    ("allowed", |it, _| cell(count(it.allowed_count))),
    ("waited", |it, _| cell(count(it.waited_count))),
    ("shadow", |it, _| cell(count(it.shadow_count))),
    ("refused", |it, _| cell(count(it.refused_count))),
    ("last refusal", |it, _| {
        let age = it.refused_age_ms;
        cell(age.map_or_else(String::new, |age| format!("{} ago", span(age))))
    }),
];

/// Writes a table, and an empty line. Without answers it writes nothing.
pub(super) fn write_table(
    out: &mut Out<impl Write>,
    decisions: &[RuleDecisions],
) -> io::Result<()> {
    if decisions.is_empty() {
        return Ok(());
    }
    Table::of(COLUMNS, 1..6, decisions, out.palette).write(out)?;
    writeln!(out)
}

fn rule(decisions: &RuleDecisions) -> String {
    match decisions.rule.as_str() {
        "unmatched" => format!("{}: unmatched", decisions.domain),
        rule => rule.to_owned(),
    }
}
