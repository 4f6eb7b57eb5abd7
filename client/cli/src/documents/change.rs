//! Commands that write: they show what will change, ask, and write on top of what they showed.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

use doorward_documents::Kind;
use doorward_etcd::documents::{DocumentEdit, VersionKind};
use serde_json::json;

use super::author::Author;
use super::flags::{ChangeFlags, Search};
use super::preview::Preview;
use super::show::{self, about};
use super::{Document, Shown, Standing, Store, WriteResult, lines};
use crate::common::Output;
use crate::failure::{Failure, Result};
use crate::output;
use doorward_clock::wall;
use doorward_pages::terminal::Tone;

pub(super) async fn apply<K: Shown>(store: Store<'_>, file: &Path, flags: &ChangeFlags) -> Result {
    let changer = Changer::new(store, flags)?;
    if file == Path::new("-") && !flags.yes {
        let problem =
            "standard input is the document, so no question can be asked there: give --yes";
        return Err(Failure::Usage(problem.to_owned()));
    }
    changer.check_terminal("diff")?;
    let new = Document::<K>::read(file)?;
    new.valid(": nothing was written")?;
    let standing = changer.store.read().await?;
    changer.put(&standing, &new, VersionKind::Apply).await
}

pub(super) async fn rollback<K: Shown>(
    store: Store<'_>,
    number: u64,
    flags: &ChangeFlags,
) -> Result {
    let changer = Changer::new(store, flags)?;
    let noun = K::NOUN;
    let show = format!("doorward {noun}s show --revision {number}");
    changer.check_terminal(&format!("{show} | doorward {noun}s diff -"))?;
    let standing = changer.store.read().await?;
    let version = changer.store.version(number).await?;
    let bytes = show::document_of(version)?.into_bytes();
    let new = Document::<K>::new(&format!("revision {number}"), bytes);
    new.valid(": nothing was written")?;
    let kind = VersionKind::Rollback { to: number };
    changer.put(&standing, &new, kind).await
}

/// Outcome of a change.
#[derive(Debug)]
pub(super) enum Changed<K: Kind> {
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
pub(super) struct Changer<'a> {
    pub(super) store: Store<'a>,
    author: Author,
    flags: &'a ChangeFlags,
}

impl<'a> Changer<'a> {
    pub(super) fn new(store: Store<'a>, flags: &'a ChangeFlags) -> Result<Self> {
        if flags.why.is_some() && !store.is_in_etcd() {
            let problem = "--why needs etcd. For a file, write the reason in the commit message";
            return Err(Failure::Usage(problem.to_owned()));
        }
        if flags.expect.is_some() && !store.is_in_etcd() {
            let problem = "--expect needs etcd: a file has no versions here";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let author = Author::of(flags)?;
        Ok(Self {
            store,
            author,
            flags,
        })
    }

    pub(super) fn asks(&self) -> bool {
        !self.flags.yes
    }

    /// Fails if no question can be asked. `diff`: the command that shows the change.
    pub(super) fn check_terminal(&self, diff: &str) -> Result {
        if self.flags.yes || io::stdin().is_terminal() {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "no question can be asked: standard input is not a terminal. Give --yes to write without asking; \
             {diff} shows what would change"
        )))
    }

    async fn put<K: Shown>(
        &self,
        standing: &Standing<K>,
        new: &Document<K>,
        kind: VersionKind,
    ) -> Result {
        let problem = match self.change(standing, new, kind, false).await? {
            Changed::Done => return Ok(()),
            Changed::Unforced(problem) => return Err(Failure::Usage(problem)),
            Changed::Refused | Changed::EditAgain => "nothing was written",
            Changed::Overtaken(_) => "nothing was written. Look at what is there now, and repeat",
        };
        Err(Failure::No(problem.to_owned()))
    }

    /// Fails if another version is in force than the operator expects.
    fn check_expected<K: Kind>(&self, seen: &Standing<K>) -> Result {
        let number = seen.revision();
        let is_met = |it: &u64| *it == 0 || number == Some(*it);
        let Some(expected) = self.flags.expect.filter(|it| !is_met(it)) else {
            return Ok(());
        };
        let is = match number {
            None => "no version of the history".to_owned(),
            Some(number) => format!("revision {number}"),
        };
        Err(Failure::No(format!(
            "nothing was written: {is} is in force, and not revision {expected}; history says who \
             changed it"
        )))
    }

    /// Shows what will change, asks, and writes.
    pub(super) async fn change<K: Shown>(
        &self,
        seen: &Standing<K>,
        new: &Document<K>,
        kind: VersionKind,
        may_edit: bool,
    ) -> Result<Changed<K>> {
        if let (Some(0), Some(Document { name, .. })) = (self.flags.expect, &seen.document) {
            let words = format!("nothing was written: {name} has a document already");
            self.tell(false, None, &words)?;
            return Ok(Changed::Done);
        }
        self.check_expected(seen)?;
        let everybody = Search::default();
        let was_in_force = matches!(kind, VersionKind::Rollback { .. });
        let preview = Preview::new(&self.store, seen, new, &everybody, was_in_force).await?;
        if preview.is_same() {
            let number = seen.revision();
            let which = match number {
                Some(number) => format!("this is revision {number}, which is in force"),
                None => "this is what is in force".to_owned(),
            };
            self.tell(false, number, &format!("nothing changes: {which}"))?;
            return Ok(Changed::Done);
        }
        if self.store.common.output == Output::Json {
            // The output is for programs; what is shown is for people.
            preview.write(&mut output::stderr(), self.flags.force)?;
        } else {
            preview.write(&mut output::stdout(), self.flags.force)?;
        }
        if let (Some(refusal), false) = (preview.effect.refusal, self.flags.force) {
            return Ok(Changed::Unforced(refusal));
        }
        if self.asks()
            && let Some(other) = ask(may_edit)?
        {
            return Ok(other);
        }
        let change = DocumentEdit {
            document: &new.text(),
            kind,
            who: &self.author.who,
            why: self.author.why.as_deref(),
            when: UNIX_EPOCH + wall(),
        };
        match self.store.write(&seen.stored, &change).await? {
            WriteResult::Done(number) => {
                let name = &self.store.name;
                let written = match number {
                    Some(number) => format!("revision {number} is written to {name}"),
                    None => format!("{name} is written"),
                };
                self.tell(true, number, &written)?;
                Ok(Changed::Done)
            }
            WriteResult::Changed => {
                let now = self.store.read::<K>().await?;
                self.tell_overtaken(seen, &now)?;
                Ok(Changed::Overtaken(Box::new(now)))
            }
        }
    }

    fn tell(&self, written: bool, revision: Option<u64>, words: &str) -> Result {
        let message = json!({"written": written, "revision": revision, "at": self.store.name});
        output::print(self.store.common, &message, |out| writeln!(out, "{words}"))
    }

    /// Prints what another writer did meanwhile.
    fn tell_overtaken<K: Kind>(&self, seen: &Standing<K>, now: &Standing<K>) -> Result {
        let mut out = output::stderr();
        let how = match (&now.document, show::in_force(&now.stored)) {
            (None, _) => "were removed".to_owned(),
            (Some(_), Some(version)) => format!("were changed: {}", about(version)),
            (Some(_), None) if self.store.is_in_etcd() => {
                "were changed, not by this command line".to_owned()
            }
            (Some(_), None) => "were changed".to_owned(),
        };
        out.say(Tone::Bad, &format!("meanwhile the {}s {how}", K::NOUN))?;
        let before = ("what you saw", &*seen.text());
        let after = ("what is there now", &*now.text());
        Ok(lines::write(&mut out, before, after)?)
    }
}

/// Asks whether to write. None: yes.
fn ask<K: Kind>(may_edit: bool) -> Result<Option<Changed<K>>> {
    let question = match may_edit {
        true => "Apply? [y/N, e: edit again] ",
        false => "Apply? [y/N] ",
    };
    Ok(match &*output::reply(question)? {
        "y" | "yes" => None,
        "e" | "edit" if may_edit => Some(Changed::EditAgain),
        _ => Some(Changed::Refused),
    })
}
