//! Commands that write: they show what will change, ask, and write on top of what they showed.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

use doorward_documents::Kind;
use doorward_etcd::DocumentPlace;
use doorward_etcd::documents::{DocumentEdit, VersionKind};
use serde_json::json;

use crate::caller::since_epoch;
use crate::documents::author::Author;
use crate::documents::document::Document;
use crate::documents::flags::ChangeFlags;
use crate::documents::preview::Preview;
use crate::documents::show::about;
use crate::documents::store::{Standing, Store, WriteResult};
use crate::documents::{Effect, Shown, lines, show};
use crate::failure::Failure;
use crate::flags::{Common, Output};
use crate::output;
use doorward_pages::terminal::palette::Tone;

pub(crate) async fn apply<K: Shown>(
    common: &Common,
    at: Option<&DocumentPlace>,
    file: &Path,
    flags: &ChangeFlags,
) -> Result<(), Failure> {
    let changer = Changer::new::<K>(common, at, flags)?;
    if file == Path::new("-") && !flags.yes {
        let problem =
            "standard input is the document, so no question can be asked there: give --yes";
        return Err(Failure::Usage(problem.to_owned()));
    }
    changer.check_terminal()?;
    let new = Document::<K>::read(file)?;
    check_order(&new)?;
    let standing = changer.store.read().await?;
    changer.put(&standing, &new, VersionKind::Apply).await
}

pub(crate) async fn rollback<K: Shown>(
    common: &Common,
    at: Option<&DocumentPlace>,
    number: u64,
    flags: &ChangeFlags,
) -> Result<(), Failure> {
    let changer = Changer::new::<K>(common, at, flags)?;
    changer.check_terminal()?;
    let standing = changer.store.read().await?;
    let version = changer.store.version(number).await?;
    let bytes = show::document_of(version)?.into_bytes();
    let new = Document::<K>::new(&format!("revision {number}"), bytes);
    check_order(&new)?;
    let kind = VersionKind::Rollback { to: number };
    changer.put(&standing, &new, kind).await
}

/// Answer to a change that was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EditAnswer {
    Yes,
    No,
    /// Edit again.
    Edit,
}

/// Outcome of a change.
#[derive(Debug)]
pub(crate) enum Changed<K: Kind> {
    /// It is done, or there was nothing to do.
    Done,
    /// The operator wants to edit it again.
    EditAgain,
    /// The operator does not want it.
    Refused,
    /// Another writer was faster; the operator has seen its change.
    Overtaken(Box<Standing<K>>),
    /// It needs to be forced, and was not: what is wrong, and what to do.
    Unforced(String),
}

/// Changes the document of a store.
#[derive(Debug)]
pub(crate) struct Changer<'a> {
    common: &'a Common,
    pub(crate) store: Store,
    author: Author,
    yes: bool,
    force: bool,
}

impl<'a> Changer<'a> {
    pub(crate) fn new<K: Kind>(
        common: &'a Common,
        at: Option<&DocumentPlace>,
        flags: &ChangeFlags,
    ) -> Result<Self, Failure> {
        let store = Store::open::<K>(common, at)?;
        if flags.why.is_some() && !store.is_in_etcd() {
            let problem = "--why needs etcd. For a file, write the reason in the commit message";
            return Err(Failure::Usage(problem.to_owned()));
        }
        Ok(Self {
            common,
            store,
            author: Author::of(flags)?,
            yes: flags.yes,
            force: flags.force,
        })
    }

    pub(crate) fn asks(&self) -> bool {
        !self.yes
    }

    pub(crate) fn check_terminal(&self) -> Result<(), Failure> {
        if self.yes || io::stdin().is_terminal() {
            return Ok(());
        }
        let problem = "no question can be asked: standard input is no terminal. Give \
                       --yes to write without asking; diff shows what would change";
        Err(Failure::Usage(problem.to_owned()))
    }

    async fn put<K: Shown>(
        &self,
        standing: &Standing<K>,
        new: &Document<K>,
        kind: VersionKind,
    ) -> Result<(), Failure> {
        match self.change(standing, new, kind, false).await? {
            Changed::Done => Ok(()),
            Changed::Refused | Changed::EditAgain => {
                Err(Failure::No("nothing was written".to_owned()))
            }
            Changed::Overtaken(_) => Err(Failure::No(
                "nothing was written. Look at what is there now, and repeat".to_owned(),
            )),
            Changed::Unforced(problem) => Err(Failure::Usage(problem)),
        }
    }

    /// Shows what will change, asks, and writes.
    pub(crate) async fn change<K: Shown>(
        &self,
        seen: &Standing<K>,
        new: &Document<K>,
        kind: VersionKind,
        may_edit: bool,
    ) -> Result<Changed<K>, Failure> {
        let preview = Preview::new(self.common, &self.store, seen, new).await;
        if preview.is_same() {
            self.tell_same(seen)?;
            return Ok(Changed::Done);
        }
        let (common, as_json) = (self.common, self.common.output == Output::Json);
        if as_json {
            // The output is for programs; what is shown is for people.
            preview.write(&mut output::stderr(), common.color.of_stderr())?;
        } else {
            preview.write(&mut output::stdout(), common.color.of_stdout())?;
        }
        if let (Some(refusal), false) = (preview.effect.refusal(), self.force) {
            return Ok(Changed::Unforced(refusal));
        }
        match if self.asks() {
            ask(may_edit)?
        } else {
            EditAnswer::Yes
        } {
            EditAnswer::Yes => {}
            EditAnswer::No => return Ok(Changed::Refused),
            EditAnswer::Edit => return Ok(Changed::EditAgain),
        }
        let change = DocumentEdit {
            document: &new.text(),
            kind,
            who: &self.author.who,
            why: self.author.why.as_deref(),
            when: UNIX_EPOCH + since_epoch(),
        };
        match self.store.write(&seen.stored, &change).await? {
            WriteResult::Done(number) => {
                let name = self.store.name();
                if as_json {
                    let message = json!({"written": true, "revision": number, "at": name});
                    output::json(&mut output::stdout(), &message)?;
                } else if let Some(number) = number {
                    writeln!(output::stdout(), "revision {number} is written to {name}")?;
                } else {
                    writeln!(output::stdout(), "{name} is written")?;
                }
                Ok(Changed::Done)
            }
            WriteResult::Changed => {
                let now = self.store.read::<K>().await?;
                self.tell_overtaken(seen, &now)?;
                Ok(Changed::Overtaken(Box::new(now)))
            }
        }
    }

    fn tell_same<K: Kind>(&self, seen: &Standing<K>) -> Result<(), Failure> {
        let number = show::in_force(&seen.stored).map(|version| version.number);
        if self.common.output == Output::Json {
            let name = self.store.name();
            let message = json!({"written": false, "revision": number, "at": name});
            output::json(&mut output::stdout(), &message)?;
            return Ok(());
        }
        let which = match number {
            Some(number) => format!("this is revision {number}, which is in force"),
            None => "this is what is in force".to_owned(),
        };
        Ok(writeln!(output::stdout(), "nothing changes: {which}")?)
    }

    /// Prints what another writer did meanwhile.
    fn tell_overtaken<K: Kind>(
        &self,
        seen: &Standing<K>,
        now: &Standing<K>,
    ) -> Result<(), Failure> {
        let mut out = output::stderr();
        let palette = self.common.color.of_stderr();
        let how = match (&now.document, show::in_force(&now.stored)) {
            (None, _) => "were removed".to_owned(),
            (Some(_), Some(version)) => format!("were changed: {}", about(version)),
            (Some(_), None) if self.store.is_in_etcd() => {
                "were changed, not by this command line".to_owned()
            }
            (Some(_), None) => "were changed".to_owned(),
        };
        let message = format!("meanwhile the {}s {how}", K::NOUN);
        writeln!(out, "{}", palette.paint(Tone::Bad, &message))?;
        let (before, after) = (seen.text(), now.text());
        let (before, after) = (("what you saw", &*before), ("what is there now", &*after));
        Ok(lines::write(&mut out, before, after, palette)?)
    }
}

/// Every problem, if there are any.
fn check_order<K: Kind>(new: &Document<K>) -> Result<(), Failure> {
    let Err(error) = &new.read else {
        return Ok(());
    };
    writeln!(output::stderr(), "{error}")?;
    Err(Failure::No(format!(
        "{} is invalid: nothing was written",
        new.name
    )))
}

fn ask(may_edit: bool) -> Result<EditAnswer, Failure> {
    let question = if may_edit {
        "Apply? [y/N, e: edit again] "
    } else {
        "Apply? [y/N] "
    };
    Ok(match &*reply(question)? {
        "y" | "yes" => EditAnswer::Yes,
        "e" | "edit" if may_edit => EditAnswer::Edit,
        _ => EditAnswer::No,
    })
}

/// Reads an answer, in lower case and trimmed.
pub(crate) fn reply(question: &str) -> Result<String, Failure> {
    let mut err = output::stderr();
    write!(err, "{question}")?;
    err.flush()?;
    let mut line = String::new();
    if io::stdin().read_line(&mut line)? == 0 {
        writeln!(err)?;
    }
    Ok(line.trim().to_lowercase())
}
