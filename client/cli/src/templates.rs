//! `doorward templates`: what operators say about resources.
//!
//! The commands are those for all documents. This folder has what only templates have:
//!
//! - `parts`: templates as parts to be compared;
//! - `plan`, `forecast`: what a change will do to leases, by the servers that hold them;
//! - `table`: templates as `check` lists them.

pub(crate) mod flags;
mod forecast;
mod parts;
mod plan;
pub(crate) mod table;

use std::io;

use doorward_documents::{Located, template_status};
use doorward_pages::terminal::{Palette, Table};
use serde_json::Value;

use crate::common::Common;
use crate::documents::parts::changes;
use crate::documents::{self, Change, ChangeLine, Effect, Shown, Store};
use crate::failure::Result;
use crate::templates::flags::TemplatesFlags;

pub(crate) async fn run(common: &Common, flags: &TemplatesFlags) -> Result {
    documents::run::<Located>(common, flags.at.as_ref(), &flags.command).await
}

impl Shown for Located {
    const IS_LEASED: bool = true;

    fn changes(old: &Self, new: &Self) -> Vec<ChangeLine> {
        changes(&parts::of(&old.templates), &parts::of(&new.templates), true)
    }

    async fn effect(change: Change<'_, Self>, asks: bool) -> io::Result<Effect> {
        forecast::effect(change, asks).await
    }

    async fn truth(store: &Store<'_>) -> Option<String> {
        plan::root_elsewhere(store).await
    }

    fn len(&self) -> usize {
        self.templates.len()
    }

    fn table(&self, palette: Palette) -> Table {
        let templates = self.templates.iter().map(|it| template_status(it));
        table::of(&templates.collect::<Vec<_>>(), palette)
    }

    fn to_json(&self) -> Value {
        table::to_json(&self.templates)
    }
}
