//! `doorward templates`: what operators say about resources, in etcd or in a file.
//!
//! - `place`, `store`, `file`: where the documents are, how they are read and written;
//! - `check`, `show`, `history`, `diff`: commands that look;
//! - `change`, `edit`: commands that write;
//! - `preview`, and what it is made of: what a change will do;
//! - `warnings`: what is in order, but hardly meant.
//!
//! A write succeeds only on top of the content that the preview compared with.

pub(crate) mod author;
mod change;
mod check;
mod diff;
pub(crate) mod document;
mod edit;
mod effect;
mod file;
pub(crate) mod flags;
mod history;
mod lines;
mod live;
mod marks;
mod meaning;
pub(crate) mod place;
mod preview;
mod sample;
mod show;
mod store;
mod warnings;

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
        TemplatesCommand::Check { files } => check::files(common, place, files).await,
        TemplatesCommand::Apply(apply) => change::apply(common, place, apply).await,
        TemplatesCommand::Diff(diff) => diff::run(common, place, diff).await,
        TemplatesCommand::Edit(edit) => edit::run(common, place, edit).await,
        TemplatesCommand::Rollback(rollback) => change::rollback(common, place, rollback).await,
        TemplatesCommand::History(history) => history::run(common, place, history).await,
    }
}
