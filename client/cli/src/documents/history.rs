//! Command `history`: versions in etcd, with author, time and reason.

use std::io::{self, Write};

use doorward_documents::Kind;
use doorward_etcd::documents::Recorded;
use serde_json::{Value, json};

use super::{Shown, Standing, Store, show};
use crate::common::Output;
use crate::failure::{Failure, Result};
use crate::output::{self, Out};
use doorward_pages::terminal::{Palette, Table, Tone, cell};

pub(super) async fn run<K: Shown>(store: &Store<'_>, count: usize) -> Result {
    if let Some(truth) = K::truth(store).await {
        return Err(Failure::No(truth));
    }
    let standing = store.read::<K>().await?;
    let stored = &standing.stored;
    let numbers: Vec<u64> = stored.numbers.iter().copied().take(count).collect();
    let versions = store.versions(&numbers).await?;
    let in_force = standing.revision();
    let is_empty = standing.document.is_none() && stored.newest.is_none();
    if is_empty && store.common.output != Output::Json {
        return Err(show::nothing(store, &standing));
    }
    let rows = versions.iter().map(|recorded| row(recorded, in_force));
    let listed = json!({
        "at": store.name,
        "in_force": in_force,
        "is_recorded": stored.is_recorded(),
        "versions_count": stored.numbers.len(),
        "versions": rows.collect::<Value>(),
    });
    output::print(store.common, &listed, |out| {
        if !versions.is_empty() {
            table(&versions, in_force, out.palette).write(out)?;
        }
        let more = stored.numbers.len().saturating_sub(versions.len());
        if more > 0 {
            writeln!(out, "and {more} more; -n lists more")?;
        }
        note(out, store, &standing)
    })
}

/// Prints remarks below the table.
fn note<K: Kind>(
    out: &mut Out<impl Write>,
    store: &Store<'_>,
    standing: &Standing<K>,
) -> io::Result<()> {
    let (noun, name) = (K::NOUN, &store.name);
    let Some(document) = &standing.document else {
        let removed = format!("nothing is in force: the {noun}s were removed");
        return out.say(Tone::Bad, &removed);
    };
    if !standing.stored.is_recorded() {
        let how = "it was not written by this command line; the next change records it";
        let other = format!("the document at {name} is none of these: {how}");
        out.say(Tone::Partial, &other)?;
    }
    if document.read.is_err() {
        let then = format!("servers keep the {noun}s they had; check says why");
        out.say(Tone::Bad, &format!("the document is INVALID: {then}"))?;
    }
    Ok(())
}

/// A version, or what is wrong with it, for programs. Its field names are an interface.
fn row(recorded: &Recorded, in_force: Option<u64>) -> Value {
    let number = recorded.number;
    match &recorded.version {
        Ok(version) => {
            let mut row = show::fields(Some(version), in_force == Some(number));
            let bytes = version.document.as_ref().map(String::len);
            output::extend(&mut row, json!({"bytes": bytes}));
            row
        }
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
                let text = |text: &str| cell(text.replace('\n', " "));
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
                cell(problem),
            ]),
        }
    }
    table
}
