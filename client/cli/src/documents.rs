//! Commands for documents of all kinds, `doorward templates` and `doorward rules`.
//!
//! - `store`, `file`: the place of a document, reads and writes;
//! - `check`, `show`, `history`, `diff`: commands that only read;
//! - `change`, `edit`: commands that write;
//! - `preview`: what a change will do; `parts`: which of its parts change.
//!
//! A write succeeds only on top of the content that the preview compared with.

pub(crate) mod author;
mod change;
mod check;
mod diff;
mod document;
mod edit;
mod file;
pub(crate) mod flags;
mod history;
mod lines;
mod marks;
pub(crate) mod parts;
mod preview;
mod show;
mod store;

use std::io::{self, Write};

use doorward_documents::Kind;
use doorward_etcd::DocumentPlace;
use doorward_pages::terminal::{Palette, Table, Tone};
use serde_json::Value;

pub(crate) use self::document::Document;
use self::flags::{DocumentCommand, Search};
pub(crate) use self::parts::ChangeLine;
pub(crate) use self::show::counted;
pub(crate) use self::store::Store;
use self::store::{Standing, WriteResult};
use crate::common::Common;
use crate::failure::{Failure, Result};
use crate::output::Out;

/// A kind of document, as the commands show it.
pub(crate) trait Shown: Kind {
    /// Whether clients hold leases by it.
    const IS_LEASED: bool = false;

    /// Returns the changes in meaning; none if both documents mean the same.
    fn changes(old: &Self, new: &Self) -> Vec<ChangeLine>;

    /// Returns the effect of a change. With `asks`, asks servers for what is in use.
    async fn effect(change: Change<'_, Self>, asks: bool) -> io::Result<Effect>;

    /// Returns where the truth is, if servers do not read what is at a place.
    async fn truth(_store: &Store<'_>) -> Option<String> {
        None
    }

    /// Returns the field and name of a part that both documents have, though only one may.
    fn clash(&self, _other: &Self) -> Option<String> {
        None
    }

    /// Returns the number of parts.
    fn len(&self) -> usize;

    /// Returns a table of the parts.
    fn table(&self, palette: Palette) -> Table;

    /// Returns the list of the parts, for programs. Its field names are an interface.
    fn to_json(&self) -> Value;
}

/// A change to a valid document.
#[derive(Debug)]
pub(crate) struct Change<'a, K: Kind> {
    pub(crate) document: &'a Document<K>,
    /// Content of the document.
    pub(crate) new: &'a K,
    /// Document in force. None: there is none, or it is invalid or unknown.
    pub(crate) old: Option<&'a K>,
    /// Place of the document in force. None: unknown.
    pub(crate) store: Option<&'a Store<'a>>,
    /// Clients to be listed.
    pub(crate) search: &'a Search,
    /// Whether the new document was in force before, so that its numbers are no typos.
    pub(crate) was_in_force: bool,
}

/// Effect of a change, and warnings about it. The default is that of an invalid document.
#[derive(Debug, Default)]
pub(crate) struct Effect {
    /// A line for each warning.
    pub(crate) warnings: Vec<(Tone, String)>,
    /// The reason why the change needs `--force`. None: it needs none.
    pub(crate) refusal: Option<String>,
    /// All but the warnings.
    pub(crate) text: Vec<u8>,
    /// An object with all of it for programs; `warnings` is a list. Field names are an interface.
    pub(crate) json: Value,
}

impl Effect {
    pub(crate) fn write_warnings(&self, out: &mut Out<impl Write>) -> io::Result<()> {
        let mut warnings = self.warnings.iter();
        warnings.try_for_each(|(tone, it)| out.say(*tone, it))
    }

    /// Writes that the change of a document needs `--force`, if it does.
    pub(crate) fn write_need(&self, name: &str, out: &mut Out<impl Write>) -> io::Result<()> {
        if self.refusal.is_none() {
            return Ok(());
        }
        let need = "this change needs --force, which --yes does not imply";
        out.say(Tone::Bad, &format!("{name}: {need}"))
    }
}

/// Returns the reason why a change needs `--force`, and the way out.
pub(crate) fn refusal(warning: &str) -> String {
    format!(
        "nothing was written. {warning}. Correct it; or, if it is intended, give --force, which --yes does not imply"
    )
}

/// Runs a command on the document at a place. None: the default place.
pub(crate) async fn run<K: Shown>(
    common: &Common,
    at: Option<&DocumentPlace>,
    command: &DocumentCommand,
) -> Result {
    let store = || Store::open::<K>(common, at);
    match command {
        DocumentCommand::Show { revision } => show::run::<K>(&store()?, *revision).await,
        DocumentCommand::Check { files } if files.is_empty() => {
            check::in_force::<K>(&store()?).await
        }
        DocumentCommand::Check { files } => check::files::<K>(common, at, files).await,
        DocumentCommand::Diff { file, search } => {
            if search.resource.is_some() && !K::IS_LEASED {
                let problem = "--resource is for templates: clients hold no leases by rules";
                return Err(Failure::Usage(problem.to_owned()));
            }
            diff::run::<K>(&store()?, file, search).await
        }
        DocumentCommand::Apply { file, change } => change::apply::<K>(store()?, file, change).await,
        DocumentCommand::Edit { change } => edit::run::<K>(store()?, change).await,
        DocumentCommand::History { count } => history::run::<K>(&store()?, *count).await,
        DocumentCommand::Rollback { number, change } => {
            change::rollback::<K>(store()?, *number, change).await
        }
    }
}
