//! Preview of a change: by line, by part of the document, and its effect.

use std::io::{self, Write};

use doorward_pages::terminal::Tone;
use serde_json::{Value, json};

use super::flags::Search;
use super::parts::ChangeLine;
use super::{Change, Document, Effect, Shown, Standing, Store, counted, lines};
use crate::output::{self, Out};

/// Preview of a change.
#[derive(Debug)]
pub(crate) struct Preview<'a, K: Shown> {
    /// Document in force. None: there is none.
    old: Option<&'a Document<K>>,
    new: &'a Document<K>,
    /// Changes in meaning. None: unknown, since one of the documents is invalid.
    changes: Option<Vec<ChangeLine>>,
    pub(crate) effect: Effect,
}

impl<'a, K: Shown> Preview<'a, K> {
    /// Compares, and asks for the effect if anything changes in meaning.
    pub(crate) async fn new(
        store: &'a Store<'a>,
        seen: &'a Standing<K>,
        new: &'a Document<K>,
        search: &'a Search,
        was_in_force: bool,
    ) -> io::Result<Self> {
        let (old, nothing) = (seen.document.as_ref(), K::default());
        let was = old.map_or(Some(&nothing), |old| old.read.as_ref().ok());
        let is = new.read.as_ref().ok();
        let changes = was.zip(is).map(|(was, is)| K::changes(was, is));
        let effect = match is {
            None => Effect {
                json: json!({"warnings": []}),
                ..Effect::default()
            },
            Some(is) => {
                let change = Change {
                    document: new,
                    new: is,
                    old: was.filter(|_| old.is_some()),
                    store: Some(store),
                    search,
                    was_in_force,
                };
                let asks = changes.as_ref().is_none_or(|lines| !lines.is_empty());
                K::effect(change, asks).await?
            }
        };
        Ok(Self {
            old,
            new,
            changes,
            effect,
        })
    }

    pub(crate) fn is_same(&self) -> bool {
        self.old.is_some_and(|old| old.bytes == self.new.bytes)
    }

    /// Writes it. `is_forced`: the operator gave `--force`.
    pub(crate) fn write(&self, out: &mut Out<impl Write>, is_forced: bool) -> io::Result<()> {
        let old = self.old.map(|old| (old.name.as_str(), old.text()));
        let (old_name, old_text) = old.unwrap_or(("nothing", "".into()));
        let new = (self.new.name.as_str(), &*self.new.text());
        lines::write(out, (old_name, &old_text), new)?;
        writeln!(out)?;
        self.write_parts(out)?;
        self.effect.write_warnings(out)?;
        if !is_forced {
            self.effect.write_need(&self.new.name, out)?;
        }
        out.write_all(&self.effect.text)
    }

    fn write_parts(&self, out: &mut Out<impl Write>) -> io::Result<()> {
        let noun = K::NOUN;
        let (tone, message) = match (&self.changes, self.old) {
            (Some(lines), _) if lines.is_empty() => {
                return writeln!(out, "no {noun} changes in meaning");
            }
            (Some(lines), _) => {
                writeln!(out, "by {noun}:")?;
                let mut lines = lines.iter();
                return lines.try_for_each(|it| out.say(it.tone(), &format!("  {it}")));
            }
            (None, Some(old)) if self.new.read.is_ok() => {
                let (count, s) = counted(old.problems().len());
                let message = format!(
                    "the document at {} is invalid ({count} problem{s}): servers keep the {noun}s they \
                     had, and the changes by {noun} are unknown",
                    old.name
                );
                (Tone::Partial, message)
            }
            (None, _) => (Tone::Bad, format!("{} is invalid", self.new.name)),
        };
        out.say(tone, &message)
    }

    /// For programs. Its field names are an interface.
    pub(crate) fn to_json(&self) -> Value {
        let lines = |lines: &Vec<ChangeLine>| lines.iter().map(ToString::to_string).collect();
        let lines: Option<Vec<String>> = self.changes.as_ref().map(lines);
        let mut shown = self.effect.json.clone();
        let more = json!({
            "needs_force": self.effect.refusal.is_some(),
            "different": !self.is_same(),
            format!("{}s", K::NOUN): lines,
        });
        output::extend(&mut shown, more);
        shown
    }
}
