//! `doorward templates`: what operators say about resources, in etcd or in a file.
//!
//! - `place`, `store`, `file`: where the documents are, how they are read and written;
//! - `check`, `show`, `history`, `diff`: commands that look;
//! - `change`, `edit`: commands that write;
//! - `preview`, and what it is made of: what a change will do.
//!
//! Nothing is written that was not looked at: a write goes through only on top of what it was
//! compared with.

mod author;
mod change;
mod check;
mod document;
pub(crate) mod flags;
mod history;
mod place;
mod show;
mod store;

use crate::failure::Failure;
use crate::flags::Common;
use crate::templates::flags::{TemplatesCommand, TemplatesFlags};

pub(crate) async fn run(common: &Common, flags: &TemplatesFlags) -> Result<(), Failure> {
    let place = &flags.place;
    match &flags.command {
        TemplatesCommand::Show(show) => show::run(common, place, show).await,
        TemplatesCommand::Check { files } if files.is_empty() => {
            check::in_force(common, place).await
        }
        TemplatesCommand::Check { files } => check::files(common, files),
        TemplatesCommand::Apply(apply) => change::apply(common, place, apply).await,
        TemplatesCommand::Diff(_) | TemplatesCommand::Edit(_) | TemplatesCommand::Rollback(_) => {
            Err(Failure::Usage("not there yet".to_owned()))
        }
        TemplatesCommand::History(history) => history::run(common, place, history).await,
    }
}
