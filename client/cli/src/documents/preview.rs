//! Preview of a change: by line, by part of the document, and its effect.

use std::io::{self, Write};

use doorward_pages::terminal::palette::{Palette, Tone};
use serde_json::{Value, json};

use crate::documents::author::plain;
use crate::documents::document::Document;
use crate::documents::store::{Standing, Store};
use crate::documents::{Change, Effect, Shown, counted, lines};
use crate::flags::Common;

/// Change in meaning, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangeLine {
    /// `+`, `-`, `~`, or `>` for what takes another way.
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
    by_part: ByPart,
    pub(crate) effect: K::Effect,
}

/// Changes by part of the document.
#[derive(Debug)]
enum ByPart {
    Lines(Vec<ChangeLine>),
    /// The old document has this number of problems.
    OldUnknown(usize),
    /// The new document is invalid.
    NewUnknown,
}

impl<'a, K: Shown> Preview<'a, K> {
    /// Compares, and asks for the effect if anything changes in meaning.
    pub(crate) async fn new(
        common: &Common,
        store: &'a Store,
        seen: &'a Standing<K>,
        new: &'a Document<K>,
    ) -> Preview<'a, K> {
        let old = seen.document.as_ref();
        let was = old.map(|old| old.read.as_ref());
        let (by_part, effect) = match &new.read {
            Err(_) => (ByPart::NewUnknown, K::Effect::default()),
            Ok(is) => {
                let nothing = K::default();
                let by_part = match was.unwrap_or(Ok(&nothing)) {
                    Ok(was) => ByPart::Lines(K::changes(was, is)),
                    Err(error) => ByPart::OldUnknown(K::problems(error).len()),
                };
                let is_same = matches!(&by_part, ByPart::Lines(lines) if lines.is_empty());
                let change = Change {
                    name: &new.name,
                    new: is,
                    old: was.and_then(Result::ok),
                    store: Some(store),
                };
                let effect = K::effect(change, (!is_same).then_some(common)).await;
                (by_part, effect)
            }
        };
        Preview {
            old,
            new,
            by_part,
            effect,
        }
    }

    pub(crate) fn is_same(&self) -> bool {
        self.old.is_some_and(|old| old.bytes == self.new.bytes)
    }

    pub(crate) fn write(&self, out: &mut impl Write, palette: Palette) -> io::Result<()> {
        let old = self.old.map(|old| (old.name.as_str(), old.text()));
        let (old_name, old_text) = old.unwrap_or(("nothing", "".into()));
        let new = (self.new.name.as_str(), &*self.new.text());
        lines::write(out, (old_name, &old_text), new, palette)?;
        writeln!(out)?;
        self.write_parts(out, palette)?;
        self.effect.write_warnings(out, palette)?;
        write_need(&self.effect, &self.new.name, out, palette)?;
        self.effect.write(out, palette)
    }

    fn write_parts(&self, out: &mut impl Write, palette: Palette) -> io::Result<()> {
        let noun = K::NOUN;
        match &self.by_part {
            ByPart::Lines(lines) if lines.is_empty() => {
                writeln!(out, "no {noun} changes in meaning")
            }
            ByPart::Lines(lines) => {
                writeln!(out, "by {noun}:")?;
                for line in lines {
                    let text = format!("  {} {}", line.sign, plain(&line.text));
                    writeln!(out, "{}", palette.paint(line.tone(), &text))?;
                }
                Ok(())
            }
            ByPart::OldUnknown(problems) => {
                let name = self.old.map_or("", |old| &old.name);
                let (count, s) = counted(*problems);
                let message = format!(
                    "the document at {name} is invalid ({count} problem{s}): servers keep the {noun}s they \
                     had, and the changes by {noun} are unknown"
                );
                writeln!(out, "{}", palette.paint(Tone::Partial, &message))
            }
            ByPart::NewUnknown => {
                let message = format!("{} is invalid", self.new.name);
                writeln!(out, "{}", palette.paint(Tone::Bad, &message))
            }
        }
    }

    /// For programs. Its field names are an interface.
    pub(crate) fn to_json(&self) -> Value {
        let lines = match &self.by_part {
            ByPart::Lines(lines) => {
                let lines = lines.iter();
                let lines = lines.map(|line| format!("{} {}", line.sign, line.text));
                Some(lines.collect::<Vec<_>>())
            }
            _ => None,
        };
        let mut shown = self.effect.to_json();
        shown.insert("different".to_owned(), json!(!self.is_same()));
        shown.insert(format!("{}s", K::NOUN), json!(lines));
        Value::Object(shown)
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
    let message = format!("{name}: apply needs --force, which --yes does not imply");
    writeln!(out, "{}", palette.paint(Tone::Bad, &plain(&message)))
}
