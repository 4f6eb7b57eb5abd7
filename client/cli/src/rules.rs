//! `doorward rules`: the rules by which a service limits its callers.
//!
//! The commands of all documents come from `documents`. This folder has what only rules have:
//!
//! - `document`, `fields`: rules as a document, and changes by rule;
//! - `instances`: the services that follow the rules of servers;
//! - `request`: a request as people write it;
//! - `try_requests`: the answers of rules to requests.

pub(crate) mod document;
mod fields;
pub(crate) mod flags;
mod instances;
mod request;
mod try_requests;

use crate::common::Common;
use crate::documents;
use crate::failure::Result;
use crate::rules::document::RuleDocument;
use crate::rules::flags::{RulesCommand, RulesFlags};

pub(crate) async fn run(common: &Common, flags: &RulesFlags) -> Result {
    let at = flags.at.as_ref();
    match &flags.command {
        RulesCommand::Document(command) => {
            documents::run::<RuleDocument>(common, at, command).await
        }
        RulesCommand::Instances => instances::run(common).await,
        RulesCommand::Try(flags) => try_requests::run(common, at, flags).await,
    }
}
