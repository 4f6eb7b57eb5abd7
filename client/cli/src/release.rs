//! `doorward release`: gives back what a client holds, and says what became of it.
//!
//! It is not the process that holds the name, so a server frees at once only what is overdue, and the rest
//! unless the client is heard before. That is success: there is nothing more to do.

use std::io::{self, Write};

use doorward_proto::doorman;
use doorward_proto::doorman::release_result::Outcome;
use serde::Serialize;

use crate::caller::{MasterCaller, sequence};
use crate::common::{Common, Output};
use crate::failure::Failure;
use crate::flags::ReleaseFlags;
use crate::output;

/// Outcome of a release, as `--output json` prints it. Its field names are an interface.
#[derive(Default, Serialize)]
struct ReleaseOutput<'a> {
    client: &'a str,
    /// Resources whose leases are free.
    released: Vec<&'a str>,
    /// It held nothing of these.
    not_held: Vec<&'a str>,
    /// Resources whose leases become free after a while, unless the client asks before.
    unless_heard: Vec<UnlessHeard<'a>>,
    /// Of these nothing was changed: a newer request of the client was seen.
    out_of_order: Vec<&'a str>,
    /// Resources of which the server says nothing: its version is older, or these are no ids.
    unknown: Vec<&'a str>,
}

/// A release that frees something after so long.
#[derive(Serialize)]
struct UnlessHeard<'a> {
    resource: &'a str,
    free_in_ms: u64,
}

pub(crate) async fn run(common: &Common, flags: &ReleaseFlags) -> Result<(), Failure> {
    let caller = MasterCaller::new(common)?;
    let request = doorman::ReleaseCapacityRequest {
        budget: Vec::new(),
        // Not a process: the release concerns the newest process of the client.
        incarnation: None,
        client_id: flags.client.clone(),
        resource_id: flags.resources.clone(),
        sequence: Some(sequence()),
    };
    let response = caller.release(request).await?;
    let released = ReleaseOutput::of(flags, &response);
    let mut out = output::stdout();
    if common.output == Output::Json {
        output::json(&mut out, &released)?;
    } else {
        released.write(&mut out)?;
    }
    if released.out_of_order.is_empty() {
        Ok(())
    } else {
        Err(Failure::Printed(1))
    }
}

impl<'a> ReleaseOutput<'a> {
    fn of(flags: &'a ReleaseFlags, response: &doorman::ReleaseCapacityResponse) -> Self {
        let mut all = Self {
            client: &flags.client,
            ..Self::default()
        };
        for resource in &flags.resources {
            let result = response
                .result
                .iter()
                .find(|result| result.resource_id() == resource);
            let list = match result.map(doorman::ReleaseResult::outcome) {
                Some(Outcome::Released) => &mut all.released,
                Some(Outcome::NotHeld) => &mut all.not_held,
                Some(Outcome::OutOfOrder) => &mut all.out_of_order,
                Some(Outcome::UnlessHeard) => {
                    let free_in_ms = result.map_or(0, doorman::ReleaseResult::unless_heard_ms);
                    all.unless_heard.push(UnlessHeard {
                        resource,
                        free_in_ms,
                    });
                    continue;
                }
                Some(Outcome::Unspecified) | None => &mut all.unknown,
            };
            list.push(resource);
        }
        all
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let client = self.client;
        write_each(
            out,
            &self.released,
            &format!("what {client} held is released"),
        )?;
        for it in &self.unless_heard {
            let free_in = it.free_in_ms.div_ceil(1_000);
            let what = format!(
                "what {client} held is free in {free_in} s, unless {client} lives and asks before"
            );
            write_each(out, &[it.resource], &what)?;
        }
        write_each(out, &self.not_held, &format!("{client} held nothing"))?;
        let newer = format!("NOT released, since a newer request of {client} was seen; try again");
        write_each(out, &self.out_of_order, &newer)?;
        let unknown = "the server does not say what became of it: it is of an older version, or this is not a \
                       resource id";
        write_each(out, &self.unknown, unknown)
    }
}

fn write_each(out: &mut impl Write, resources: &[&str], what: &str) -> io::Result<()> {
    let mut resources = resources.iter();
    resources.try_for_each(|resource| writeln!(out, "{resource}: {what}"))
}
