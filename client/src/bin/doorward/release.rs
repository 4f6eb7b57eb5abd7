//! `doorward release`: gives back what a client holds.

use std::io::{self, Write};

use doorward_proto::doorman;

use crate::caller::{Caller, sequence};
use crate::failure::Failure;
use crate::flags::{Common, Output, ReleaseFlags};

pub(crate) async fn run(common: &Common, flags: &ReleaseFlags) -> Result<(), Failure> {
    let caller = Caller::new(common)?;
    let request = doorman::ReleaseCapacityRequest {
        incarnation: None,
        client_id: flags.client.clone(),
        resource_id: flags.resources.clone(),
        sequence: Some(sequence()),
    };
    caller.release(request).await?;
    let mut out = io::stdout().lock();
    if common.output == Output::Json {
        let released = serde_json::json!({"client": flags.client, "released": flags.resources});
        writeln!(out, "{released}")?;
    } else {
        let (client, resources) = (&flags.client, flags.resources.join(", "));
        writeln!(out, "whatever {client} held of {resources} is released")?;
    }
    Ok(())
}
