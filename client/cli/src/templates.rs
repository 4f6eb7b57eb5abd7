//! `doorward templates`: what operators say about resources.
//!
//! The commands are those for all documents. This folder has what only templates have:
//!
//! - `meaning`: changes by template;
//! - `forecast`, `live`, `effect`: what a change will do to leases;
//! - `warnings`: documents that are valid, but hardly meant;
//! - `table`: templates as `check` lists them.

mod effect;
pub(crate) mod flags;
mod forecast;
mod live;
mod meaning;
mod sample;
mod table;
mod warnings;

use doorward_documents::Located;
use doorward_pages::terminal::palette::Palette;
use doorward_pages::terminal::table::Table;
use serde_json::Value;

use crate::common::Common;
use crate::documents::{self, Change, ChangeLine, Shown};
use crate::failure::Failure;
use crate::templates::flags::TemplatesFlags;
use crate::templates::forecast::Forecast;

pub(crate) async fn run(common: &Common, flags: &TemplatesFlags) -> Result<(), Failure> {
    documents::run::<Located>(common, flags.at.as_ref(), &flags.command).await
}

impl Shown for Located {
    type Effect = Forecast;

    fn changes(old: &Self, new: &Self) -> Vec<ChangeLine> {
        meaning::changes(&old.templates, &new.templates)
    }

    async fn effect(change: Change<'_, Self>, asks: bool) -> Forecast {
        Forecast::new(change, asks).await
    }

    fn len(&self) -> usize {
        self.templates.len()
    }

    fn table(&self, palette: Palette) -> Table {
        table::of(&self.templates, palette)
    }

    fn to_json(&self) -> Value {
        table::to_json(&self.templates)
    }
}
