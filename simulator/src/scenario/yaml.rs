//! YAML as it is written: in one line what fits into one, everything else in a block.

use std::fmt::{Display, Write};
use std::time::Duration;

use crate::scenario::fault::Span;

/// What fits into a line of this many characters is written into one.
const LINE_MAX: usize = 110;

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Yaml {
    /// As it is written.
    Plain(String),
    List(Vec<Yaml>),
    /// In the order in which it was put in.
    Map(Vec<(String, Yaml)>),
}

impl Yaml {
    pub(crate) const fn map() -> Self {
        Self::Map(Vec::new())
    }

    /// What is written as it is: a number, or a word of this program.
    pub(crate) fn plain(value: impl Display) -> Self {
        Self::Plain(value.to_string())
    }

    /// A text, in quotes where YAML might take it for something else. In quotes YAML understands what
    /// JSON does.
    pub(crate) fn text(text: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        // What begins with two letters, and is of these, is no number; truth values and nothing are
        // shorter.
        let is_word = text.chars().take(2).all(|c| c.is_ascii_alphabetic())
            && text.len() > 5
            && text.chars().all(is_plain);
        if is_word || text == "root" {
            return Self::Plain(text.to_owned());
        }
        Self::Plain(serde_json::Value::from(text).to_string())
    }

    pub(crate) fn duration(duration: Duration) -> Self {
        Self::Plain(humantime::format_duration(duration).to_string())
    }

    pub(crate) fn span((least, most): Span) -> Self {
        if least == most {
            return Self::duration(least);
        }
        Self::List(vec![Self::duration(least), Self::duration(most)])
    }

    /// Puts a value under a key of a map, behind all others; a name stands first.
    pub(crate) fn put(&mut self, key: &str, value: Self) {
        if let Self::Map(entries) = self {
            let place = if key == "name" { 0 } else { entries.len() };
            entries.insert(place, (key.to_owned(), value));
        }
    }

    /// Puts all of another map behind what is there.
    pub(crate) fn extend(&mut self, other: Self) {
        if let (Self::Map(entries), Self::Map(others)) = (self, other) {
            entries.extend(others);
        }
    }

    /// A map as a whole document.
    pub(crate) fn document(&self) -> String {
        let mut out = String::new();
        self.block(&mut out, 0);
        out
    }

    /// In one line.
    pub(crate) fn flow(&self) -> String {
        let join = |parts: Vec<String>| parts.join(", ");
        match self {
            Self::Plain(text) => text.clone(),
            Self::List(values) => format!("[{}]", join(values.iter().map(Self::flow).collect())),
            Self::Map(entries) => {
                let entry = |(key, value): &(String, Self)| format!("{key}: {}", value.flow());
                format!("{{{}}}", join(entries.iter().map(entry).collect()))
            }
        }
    }

    /// In one line, if it fits behind so many characters.
    fn line(&self, behind: usize) -> Option<String> {
        let line = self.flow();
        let is_plain = matches!(self, Self::Plain(_));
        (is_plain || self.is_empty() || behind + line.chars().count() <= LINE_MAX).then_some(line)
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::List(values) => values.is_empty(),
            Self::Map(entries) => entries.is_empty(),
        }
    }

    /// In lines of its own, from a line that begins here; each line indented by so much.
    fn block(&self, out: &mut String, indent: usize) {
        let before = " ".repeat(indent);
        // Writing into a string does not fail.
        match self {
            Self::Plain(text) => {
                let _ = writeln!(out, "{before}{text}");
            }
            Self::List(values) => {
                for value in values {
                    if let Some(line) = value.line(indent + 2) {
                        let _ = writeln!(out, "{before}- {line}");
                    } else {
                        let mut block = String::new();
                        value.block(&mut block, indent + 2);
                        let rest = block.get(indent + 2..).unwrap_or_default();
                        let _ = write!(out, "{before}- {rest}");
                    }
                }
            }
            Self::Map(entries) => {
                for (key, value) in entries {
                    if let Some(line) = value.line(indent + key.len() + 2) {
                        let _ = writeln!(out, "{before}{key}: {line}");
                        continue;
                    }
                    let _ = writeln!(out, "{before}{key}:");
                    let deeper = if matches!(value, Self::List(_)) { 0 } else { 2 };
                    value.block(out, indent + deeper);
                }
            }
        }
    }
}
