//! Command `history`: versions in etcd, with author, time and reason.

use std::io::Write;

use doorward_documents::Kind;
use doorward_etcd::documents::Recorded;
use serde_json::{Value, json};

use super::author::plain;
use super::{Shown, Standing, Store, show};
use crate::common::Output;
use crate::failure::Failure;
use crate::output;
use doorward_pages::terminal::{Cell, Palette, Table, Tone, cell};

pub(super) async fn run<K: Shown>(store: &Store<'_>, count: usize) -> Result<(), Failure> {
    if let Some(truth) = K::truth(store).await {
        return Err(Failure::No(truth));
    }
    let standing = store.read::<K>().await?;
    let stored = &standing.stored;
    let numbers: Vec<u64> = stored.numbers.iter().copied().take(count).collect();
    let versions = store.versions(&numbers).await?;
    let in_force = standing.revision();
    let mut out = output::stdout();
    if store.common.output == Output::Json {
        let versions = versions.iter().map(|recorded| row(recorded, in_force));
        let versions: Vec<Value> = versions.collect();
        let listed = json!({
            "at": store.name(),
            "in_force": in_force,
            "is_recorded": stored.is_recorded(),
            "versions_count": stored.numbers.len(),
            "versions": versions,
        });
        return Ok(output::json(&mut out, &listed)?);
    }
    let palette = store.common.color.of_stdout();
    if !versions.is_empty() {
        table(&versions, in_force, palette).write(&mut out)?;
        let more = stored.numbers.len().saturating_sub(versions.len());
        if more > 0 {
            writeln!(out, "and {more} more; -n lists more")?;
        }
    }
    note(&mut out, store, &standing, palette)
}

/// Prints remarks below the table.
fn note<K: Kind>(
    out: &mut impl Write,
    store: &Store<'_>,
    standing: &Standing<K>,
    palette: Palette,
) -> Result<(), Failure> {
    let noun = K::NOUN;
    match (&standing.document, &standing.stored.newest) {
        (None, None) => return Err(show::nothing(store, standing)),
        (None, Some(_)) => {
            let removed = format!("nothing is in force: the {noun}s were removed");
            writeln!(out, "{}", palette.paint(Tone::Bad, &removed))?;
        }
        (Some(_), _) if !standing.stored.is_recorded() => {
            let name = store.name();
            let other = format!(
                "the document at {name} is none of these: it was not written by this command line; the \
                 next change records it"
            );
            writeln!(out, "{}", palette.paint(Tone::Partial, &other))?;
        }
        _ => {}
    }
    let document = standing.document.as_ref();
    if document.is_some_and(|it| it.read.is_err()) {
        let problem =
            format!("the document is INVALID: servers keep the {noun}s they had; check says why");
        writeln!(out, "{}", palette.paint(Tone::Bad, &problem))?;
    }
    Ok(())
}

fn row(recorded: &Recorded, in_force: Option<u64>) -> Value {
    let number = recorded.number;
    match &recorded.version {
        Ok(version) => json!({
            "revision": number,
            "in_force": in_force == Some(number),
            "kind": version.kind.to_string(),
            "who": version.who,
            "when": version.when,
            "when_unix_ms": version.when_unix_ms,
            "why": version.why,
            "bytes": version.document.as_ref().map(String::len),
        }),
        Err(problem) => json!({"revision": number, "in_force": false, "problem": problem}),
    }
}

fn table(versions: &[Recorded], in_force: Option<u64>, palette: Palette) -> Table {
    let header = ["revision", "", "when", "who", "kind", "why"];
    let mut table = Table::new(header, 0..1, palette);
    for recorded in versions {
        let number = palette.cell(Tone::Strong, recorded.number);
        match &recorded.version {
            Ok(version) => {
                let mark = match in_force == Some(recorded.number) {
                    true => palette.cell(Tone::Good, "in force"),
                    false => cell(""),
                };
                let text = |text: &str| cell(plain(text).replace('\n', " "));
                table.add([
                    number,
                    mark,
                    text(&version.when),
                    text(version.who.as_deref().unwrap_or("?")),
                    cell(version.kind),
                    text(version.why.as_deref().unwrap_or("")),
                ]);
            }
            Err(problem) => table.add([
                number,
                palette.cell(Tone::Bad, "broken"),
                cell(""),
                cell("?"),
                cell(""),
                Cell::new(plain(problem)),
            ]),
        }
    }
    table
}
