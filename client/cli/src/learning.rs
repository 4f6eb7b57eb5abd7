//! `doorward learning`: an operator's word on leases that no server can know of.

use std::io::{self, IsTerminal, Write};

use doorward_proto::admin::v1::learning_client::LearningClient;
use doorward_proto::admin::v1::{SetLearningRequest, SetLearningResponse};
use doorward_proto::doorman::Mastership;
use doorward_tls::dialer::Dialed;
use serde_json::json;

use crate::caller::MasterCaller;
use crate::common::Common;
use crate::failure::{Failure, Result};
use crate::flags::{LearningFlags, LearningWord};
use crate::output;

pub(crate) async fn run(common: &Common, flags: &LearningFlags) -> Result {
    let learns = flags.word == LearningWord::Begin;
    let of = match flags.resources.as_slice() {
        [] => "all resources".to_owned(),
        some => some.join(", "),
    };
    if !flags.yes {
        let means = match learns {
            true => "newcomers and growth wait until all leases that may exist have ended",
            false => {
                "if clients have leases that they have not reported, more than the capacity is in use"
            }
        };
        confirm(&format!("{of}: {means}. Type yes: "))?;
    }
    let caller = MasterCaller::new(common)?;
    let request = SetLearningRequest {
        learns,
        resource_id: flags.resources.clone(),
    };
    let ask = async |channel: Dialed| LearningClient::new(channel).set(request.clone()).await;
    let unknown = caller.call(ask, elsewhere).await?.unknown;
    let answer = json!({"learns": learns, "unknown": unknown});
    let now = if learns { "begins" } else { "is over" };
    output::print(common, &answer, |out| {
        match unknown.len() < flags.resources.len() || flags.all {
            true => writeln!(out, "learning mode {now}: {of}"),
            false => Ok(()),
        }
    })?;
    match unknown.as_slice() {
        [] => Ok(()),
        unknown => Err(Failure::No(format!(
            "nobody holds {}; --all also concerns resources without a holder",
            unknown.join(", ")
        ))),
    }
}

/// Returns where the master is, if the server that answers is another one.
fn elsewhere(answer: &SetLearningResponse) -> Option<Mastership> {
    (!answer.is_master).then(|| Mastership {
        master_address: answer.master_address.clone(),
        epoch: None,
    })
}

/// Asks the operator.
fn confirm(question: &str) -> Result {
    if !io::stdin().is_terminal() {
        let problem = "nobody can be asked here; give --yes";
        return Err(Failure::Usage(problem.to_owned()));
    }
    match &*output::reply(question)? {
        "yes" => Ok(()),
        _ => Err(Failure::No("nothing was changed".to_owned())),
    }
}
