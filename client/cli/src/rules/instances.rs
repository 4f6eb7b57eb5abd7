//! `doorward rules instances`: the services that follow the rules of servers, and the versions that they run.

use std::io::Write;

use doorward_pages::terminal::{Palette, Table, Tone, cell};
use doorward_proto::admin::v1::RunningRules;

use crate::caller::MasterCaller;
use crate::caller::instances::Instance;
use crate::common::Common;
use crate::failure::{Failure, Result};
use crate::granted::span;
use crate::output;

pub(super) async fn run(common: &Common) -> Result {
    let (listed, failures) = MasterCaller::new(common)?.instances().await?;
    output::print(common, &listed, |out| match listed.as_slice() {
        [] => writeln!(out, "no service follows the rules of this server"),
        listed => table(listed, out.palette).write(out),
    })?;
    if failures.is_empty() {
        return Ok(());
    }
    // The others are printed, and scripts see that some are missing.
    let failures: Vec<String> = failures.iter().map(ToString::to_string).collect();
    Err(Failure::No(failures.join("\n")))
}

/// Returns a row for each domain of an instance.
fn table(listed: &[Instance], palette: Palette) -> Table {
    let header = [
        "instance", "address", "server", "domain", "version", "since", "problem",
    ];
    let mut table = Table::new(header, 5..6, palette);
    for Instance { server, instance } in listed {
        let none = [RunningRules::default()];
        let running = match instance.running.as_slice() {
            [] => &none,
            running => running,
        };
        for RunningRules { domain, version } in running {
            table.add([
                palette.cell(Tone::Strong, &instance.name),
                cell(&instance.peer),
                cell(server),
                cell(if domain.is_empty() { "-" } else { domain }),
                cell(if version.is_empty() { "-" } else { version }),
                cell(span(instance.since_ms)),
                palette.cell(Tone::Bad, instance.problem().replace('\n', " ")),
            ]);
        }
    }
    table
}
