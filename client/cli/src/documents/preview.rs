//! Preview of a change: by line, by part of the document, and its effect.

use std::io::{self, Write};

use doorward_pages::terminal::{Palette, Tone};
use serde_json::{Value, json};

use super::author::plain;
use super::flags::Search;
use super::{Change, Document, Effect, Shown, Standing, Store, counted, lines};

/// Change in meaning, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangeLine {
    /// `+`, `-` or `~`.
    pub(crate) sign: char,
    pub(crate) text: String,
}

impl ChangeLine {
    pub(crate) fn new(sign: char, text: String) -> Self {
        Self { sign, text }
    }

    fn tone(&self) -> Tone {
        match self.sign {
            '+' => Tone::Good,
            '-' => Tone::Bad,
            _ => Tone::Partial,
        }
    }
}

/// Preview of a change.
#[derive(Debug)]
pub(crate) struct Preview<'a, K: Shown> {
    /// Document in force. None: there is none.
    old: Option<&'a Document<K>>,
    new: &'a Document<K>,
    /// Changes in meaning. None: unknown, since one of the documents is invalid.
    changes: Option<Vec<ChangeLine>>,
    pub(crate) effect: K::Effect,
}

impl<'a, K: Shown> Preview<'a, K> {
    /// Compares, and asks for the effect if anything changes in meaning.
    pub(crate) async fn new(
        store: &'a Store<'a>,
        seen: &'a Standing<K>,
        new: &'a Document<K>,
        search: &'a Search,
        was_in_force: bool,
    ) -> Preview<'a, K> {
        let (old, nothing) = (seen.document.as_ref(), K::default());
        let was = old.map_or(Some(&nothing), |old| old.read.as_ref().ok());
        let is = new.read.as_ref().ok();
        let changes = was.zip(is).map(|(was, is)| K::changes(was, is));
        let effect = match is {
            None => K::Effect::default(),
            Some(is) => {
                let change = Change {
                    name: &new.name,
                    text: new.text(),
                    new: is,
                    old: was.filter(|_| old.is_some()),
                    store: Some(store),
                    search,
                    was_in_force,
                };
                let asks = changes.as_ref().is_none_or(|lines| !lines.is_empty());
                K::effect(change, asks).await
            }
        };
        Preview {
            old,
            new,
            changes,
            effect,
        }
    }

    pub(crate) fn is_same(&self) -> bool {
        self.old.is_some_and(|old| old.bytes == self.new.bytes)
    }

    /// Writes it. `is_forced`: the operator gave `--force`.
    pub(crate) fn write(
        &self,
        out: &mut impl Write,
        palette: Palette,
        is_forced: bool,
    ) -> io::Result<()> {
        let old = self.old.map(|old| (old.name.as_str(), old.text()));
        let (old_name, old_text) = old.unwrap_or(("nothing", "".into()));
        let new = (self.new.name.as_str(), &*self.new.text());
        lines::write(out, (old_name, &old_text), new, palette)?;
        writeln!(out)?;
        self.write_parts(out, palette)?;
        self.effect.write_warnings(out, palette)?;
        if !is_forced {
            write_need(&self.effect, &self.new.name, out, palette)?;
        }
        self.effect.write(out, palette)
    }

    fn write_parts(&self, out: &mut impl Write, palette: Palette) -> io::Result<()> {
        let noun = K::NOUN;
        let (tone, message) = match (&self.changes, self.old) {
            (Some(lines), _) if lines.is_empty() => {
                return writeln!(out, "no {noun} changes in meaning");
            }
            (Some(lines), _) => {
                writeln!(out, "by {noun}:")?;
                for line in lines {
                    let text = format!("  {} {}", line.sign, plain(&line.text));
                    writeln!(out, "{}", palette.paint(line.tone(), &text))?;
                }
                return Ok(());
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
        writeln!(out, "{}", palette.paint(tone, &message))
    }

    /// For programs. Its field names are an interface.
    pub(crate) fn to_json(&self) -> Value {
        let text = |line: &ChangeLine| format!("{} {}", line.sign, line.text);
        let lines = self.changes.as_ref();
        let lines: Option<Vec<String>> = lines.map(|lines| lines.iter().map(text).collect());
        let mut shown = self.effect.to_json();
        if let Some(fields) = shown.as_object_mut() {
            fields.insert("different".to_owned(), json!(!self.is_same()));
            fields.insert(format!("{}s", K::NOUN), json!(lines));
        }
        shown
    }
}

/// Says that a change needs `--force`, if it does.
pub(crate) fn write_need(
    effect: &impl Effect,
    name: &str,
    out: &mut impl Write,
    palette: Palette,
) -> io::Result<()> {
    if effect.refusal().is_none() {
        return Ok(());
    }
    let message = format!("{name}: this change needs --force, which --yes does not imply");
    writeln!(out, "{}", palette.paint(Tone::Bad, &plain(&message)))
}
