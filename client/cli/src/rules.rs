//! `doorward rules`: the rules by which a service limits its callers.
//!
//! - `request`: a request as people write it;
//! - `try_requests`: the answers of rules to requests.

pub(crate) mod flags;
mod request;
mod try_requests;

use crate::failure::Failure;
use crate::flags::Common;
use crate::rules::flags::{RulesCommand, RulesFlags};

pub(crate) fn run(common: &Common, flags: &RulesFlags) -> Result<(), Failure> {
    match &flags.command {
        RulesCommand::Try(flags) => try_requests::run(common, flags),
    }
}
