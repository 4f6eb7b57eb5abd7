//! `doorward templates`: what operators say about resources.
//!
//! The commands are those for all documents. This folder has what only templates have:
//!
//! - `parts`: templates as parts that are compared;
//! - `plan`, `forecast`: what a change will do to leases, by the servers that hold them;
//! - `table`: templates as `check` lists them.

pub(crate) mod flags;
mod forecast;
mod parts;
mod plan;
pub(crate) mod table;

use doorward_documents::{DocumentError, Located, locate_bytes, status};
use doorward_pages::terminal::{Palette, Table};
use serde_json::{Value, json};

use crate::common::Common;
use crate::documents::parts::changes;
use crate::documents::{self, Change, ChangeLine, Effect, Shown, Store};
use crate::failure::Failure;
use crate::templates::flags::TemplatesFlags;

pub(crate) async fn run(common: &Common, flags: &TemplatesFlags) -> Result<(), Failure> {
    documents::run::<Located>(common, flags.at.as_ref(), &flags.command).await
}

impl Shown for Located {
    const NOUN: &'static str = "template";
    const KEY: &'static str = doorward_documents::KEY;
    const VARIABLE: &'static str = "DOORWARD_TEMPLATES";
    const EXAMPLE: &'static str = doorward_documents::BUILT_IN;
    const IS_LEASED: bool = true;
    type Error = DocumentError;

    fn parse(name: &str, bytes: &[u8]) -> Result<Self, DocumentError> {
        locate_bytes(bytes, name)
    }

    fn problems(error: &DocumentError) -> Vec<(u64, String)> {
        error.by_line()
    }

    fn changes(old: &Self, new: &Self) -> Vec<ChangeLine> {
        changes(&parts::of(&old.templates), &parts::of(&new.templates), true)
    }

    async fn effect(change: Change<'_, Self>, asks: bool) -> Effect {
        forecast::effect(change, asks).await
    }

    async fn truth(store: &Store<'_>) -> Option<String> {
        plan::root_elsewhere(store).await
    }

    fn len(&self) -> usize {
        self.templates.len()
    }

    fn table(&self, palette: Palette) -> Table {
        let templates = self.templates.iter().map(|it| status(it));
        table::of(&templates.collect::<Vec<_>>(), palette)
    }

    fn to_json(&self) -> Value {
        let templates = self.templates.iter();
        templates.map(|it| json!(status(it))).collect()
    }
}
