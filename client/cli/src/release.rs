//! `doorward release`: gives back what a client holds, and says what became of it.
//!
//! It is not the process that holds the name, so a server frees at once only what is overdue, and the rest
//! unless the client is heard before. That is success: there is nothing more to do.

use std::io::Write;

use doorward_proto::doorman::ReleaseResult;
use doorward_proto::doorman::release_result::Outcome;
use serde_json::{Value, json};

use crate::caller::MasterCaller;
use crate::common::Common;
use crate::failure::{Failure, Result};
use crate::output;

pub(crate) async fn run(common: &Common, client: &str, resources: &[String]) -> Result {
    let caller = MasterCaller::new(common)?;
    let response = caller.release(client, resources).await?;
    let results = resources.iter().map(|resource| {
        let mut results = response.result.iter();
        let result = results.find(|result| result.resource_id() == resource);
        // An older server says nothing.
        let outcome = result.map_or(Outcome::Unspecified, ReleaseResult::outcome);
        let free_in_ms = result.map_or(0, ReleaseResult::unless_heard_ms);
        (resource, outcome, free_in_ms)
    });
    let results: Vec<_> = results.collect();
    let of = |wanted| results.iter().filter(move |it| it.1 == wanted);
    let names = |wanted| of(wanted).map(|it| it.0.as_str()).collect::<Value>();
    let unless_heard = of(Outcome::UnlessHeard);
    let unless_heard = unless_heard.map(|it| json!({"resource": it.0, "free_in_ms": it.2}));
    // The field names are an interface.
    let fields = json!({
        "client": client,
        "released": names(Outcome::Released),
        "not_held": names(Outcome::NotHeld),
        "unless_heard": unless_heard.collect::<Value>(),
        "out_of_order": names(Outcome::OutOfOrder),
        "unknown": names(Outcome::Unspecified),
    });
    output::print(common, &fields, |out| {
        let mut results = results.iter();
        results.try_for_each(|(resource, outcome, free_in_ms)| {
            let what = words(client, *outcome, *free_in_ms);
            writeln!(out, "{resource}: {what}")
        })
    })?;
    match of(Outcome::OutOfOrder).next() {
        None => Ok(()),
        Some(_) => Err(Failure::Printed(1)),
    }
}

fn words(client: &str, outcome: Outcome, free_in_ms: u64) -> String {
    match outcome {
        Outcome::Released => format!("what {client} held is released"),
        Outcome::NotHeld => format!("{client} held nothing"),
        Outcome::UnlessHeard => {
            let free_in = free_in_ms.div_ceil(1_000);
            format!("what {client} held is free in {free_in} s, unless {client} lives and asks before")
        }
        Outcome::OutOfOrder => {
            format!("NOT released, since a newer request of {client} was seen; try again")
        }
        Outcome::Unspecified => {
            "the server does not say what became of it: it is of an older version, or this is not a resource id"
                .to_owned()
        }
    }
}
