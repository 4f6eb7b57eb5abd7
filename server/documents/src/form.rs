//! Values out of a document, each checked where it stands.
//!
//! Whoever asks for a value gets it, or the problem is noted and the reading goes on without it: so
//! everything that is wrong is found at once. A key that is there without a value counts as absent.

use std::time::Duration;

use doorward_engine::amount::Amount;

use crate::keys::{key_problems, near};
use crate::placed_value::{PlacedKey, PlacedValue, Position, Value};
use crate::problem::{Problem, shortened};

/// How a key may be written: its name, and the names that it had before.
pub type Names = [&'static str];

/// What was found to be wrong.
#[derive(Debug, Default)]
pub struct Problems(pub Vec<Problem>);

/// A value, where it stands and as what.
#[derive(Clone, Debug)]
pub struct At<'a> {
    /// The value and its place.
    pub node: &'a PlacedValue,
    /// The keys on the way to it: `network.clients.loss`. Empty: the document.
    pub path: String,
}

/// A map: values by key.
#[derive(Clone, Debug)]
pub struct Map<'a> {
    /// Where it starts.
    pub place: Position,
    /// The keys on the way to it. Empty: the document.
    pub path: String,
    /// What is in it, in its order.
    pub entries: &'a [(PlacedKey, PlacedValue)],
}

impl Problems {
    /// Notes what is wrong with something at a place.
    pub fn note(&mut self, place: Position, path: &str, message: impl Into<String>) {
        self.0.push(Problem {
            field: (!path.is_empty()).then(|| path.to_owned()),
            ..Problem::of_document(place, message)
        });
    }

    /// Notes that a value is not what it should be.
    pub fn refuse(&mut self, at: &At<'_>, expected: &str) {
        let message = format!("is {}; give {expected}", at.node.value.described());
        self.note(at.node.place, &at.path, message);
    }

    /// Notes that a value is wrong in another way.
    pub fn wrong(&mut self, at: &At<'_>, message: impl Into<String>) {
        self.note(at.node.place, &at.path, message);
    }
}

impl<'a> Map<'a> {
    /// What stands under a key, if anything does.
    pub fn get(&self, names: &Names) -> Option<At<'a>> {
        let mut found = self
            .entries
            .iter()
            .filter(|(key, _)| names.contains(&key.text.as_str()));
        let (key, node) = found.next()?;
        (!matches!(node.value, Value::Null)).then(|| At {
            node,
            path: self.path_of(&key.text),
        })
    }

    /// What must stand under a key; `what` says what it is for.
    pub fn need(&self, names: &Names, what: &str, problems: &mut Problems) -> Option<At<'a>> {
        let found = self.get(names);
        if found.is_none() {
            let message = format!("is missing; give {what}");
            let key = names.first().copied().unwrap_or_default();
            problems.note(self.place, &self.path_of(key), message);
        }
        found
    }

    /// Notes the keys that are not among the known ones, or there twice.
    pub fn check_keys(&self, known: &[&Names], problems: &mut Problems) {
        for (place, name, message) in key_problems(self.entries, known) {
            problems.note(place, &self.path_of(&name), message);
        }
    }

    /// Which one of some keys is there. None: there are none, or several.
    pub fn chosen(&self, keys: &[&'static str]) -> Option<&'static str> {
        let mut found = keys.iter().filter(|key| self.has(key));
        match (found.next(), found.next()) {
            (Some(key), None) => Some(key),
            _ => None,
        }
    }

    /// Which one of some keys is there. None, and noted, if there are none or several.
    pub fn only_one(&self, keys: &[&'static str], problems: &mut Problems) -> Option<&'static str> {
        let mut found = keys.iter().filter(|key| self.has(key));
        match (found.next(), found.next()) {
            (Some(key), None) => return Some(key),
            (Some(one), Some(other)) => {
                let message = format!("has both {one} and {other}; give one of them");
                problems.note(self.place, &self.path, message);
            }
            (None, _) => {
                let misspelt =
                    |(key, _): &'a (PlacedKey, PlacedValue)| Some((key, near(&key.text, keys)?));
                if let Some((key, meant)) = self.entries.iter().find_map(misspelt) {
                    let message = format!("is unknown; did you mean {meant}?");
                    problems.note(key.place, &self.path_of(&key.text), message);
                } else {
                    let message = format!("has none of {}; give one", keys.join(", "));
                    problems.note(self.place, &self.path, message);
                }
            }
        }
        None
    }

    /// Whether a key is there, with a value or without.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(k, _)| k.text == key)
    }

    /// The keys on the way to what stands under a key.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}

impl<'a> At<'a> {
    /// A map. `example` shows how one is written.
    pub fn map(&self, example: &str, problems: &mut Problems) -> Option<Map<'a>> {
        if let Value::Map(entries) = &self.node.value {
            return Some(Map {
                place: self.node.place,
                path: self.path.clone(),
                entries,
            });
        }
        problems.refuse(self, &format!("a map, as in {example}"));
        None
    }

    /// A list. `example` shows how one is written.
    pub fn list(&self, example: &str, problems: &mut Problems) -> Option<Vec<At<'a>>> {
        if let Value::List(nodes) = &self.node.value {
            let path = &self.path;
            let at = |node| At {
                node,
                path: path.clone(),
            };
            return Some(nodes.iter().map(at).collect());
        }
        problems.refuse(self, &format!("a list, as in {example}"));
        None
    }

    /// A text, and nothing that YAML takes for something else: an unquoted 1.10 would be "1.1".
    pub fn text(&self, problems: &mut Problems) -> Option<String> {
        let described = self.node.value.described();
        let message = match &self.node.value {
            Value::Text(text) => return Some(text.clone()),
            Value::Bool(_) => format!("is the truth value {described}; put a text in quotes"),
            Value::Whole(_) | Value::Number(_) => {
                format!("is the number {described}; put a text in quotes")
            }
            Value::Null | Value::List(_) | Value::Map(_) => {
                format!("is {described}; give a text")
            }
        };
        problems.wrong(self, message);
        None
    }

    /// Any number.
    pub fn any_number(&self, problems: &mut Problems) -> Option<f64> {
        let number = self.node.value.as_number();
        if number.is_none() {
            problems.refuse(self, "a number");
        }
        number
    }

    /// A finite number between two, both included.
    pub fn number(&self, least: f64, most: f64, problems: &mut Problems) -> Option<f64> {
        let number = self.node.value.as_number();
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            problems.refuse(self, &format!("a number from {least} to {most}"));
        }
        number
    }

    /// A whole number between two, both included.
    pub fn whole(&self, least: i128, most: i128, problems: &mut Problems) -> Option<i128> {
        if let Value::Whole(number) = self.node.value
            && (least..=most).contains(&number)
        {
            return Some(number);
        }
        problems.refuse(self, &format!("a whole number from {least} to {most}"));
        None
    }

    /// An amount of a resource.
    pub fn amount(&self, problems: &mut Problems) -> Option<f64> {
        match Amount::new(self.any_number(problems)?) {
            Ok(amount) => Some(amount.get()),
            Err(cause) => {
                problems.wrong(self, cause.to_string());
                None
            }
        }
    }

    /// Seconds as a number, or a text such as `15s` or `1m 30s`.
    pub fn duration(&self, problems: &mut Problems) -> Option<Duration> {
        let duration = self.node.value.as_duration();
        if duration.is_none() {
            problems.refuse(self, "seconds, or a duration such as 15s or 2m");
        }
        duration
    }

    /// One of some words.
    pub fn word<T: Copy>(&self, words: &[(&str, T)], problems: &mut Problems) -> Option<T> {
        let written = self.node.value.as_text();
        let written = written.as_deref().unwrap_or_default();
        let found = words.iter().find(|(word, _)| *word == written);
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let hint = hint(written, &names);
            problems.refuse(self, &format!("one of {}{hint}", names.join(", ")));
        }
        found.map(|(_, meaning)| *meaning)
    }
}

/// What may have been meant, as the end of a message.
pub fn hint(written: &str, known: &[&str]) -> String {
    near(written, known).map_or_else(String::new, |word| format!("; did you mean {word}?"))
}

/// Some of many names, for a message.
pub fn some_of<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let shown: Vec<String> = names
        .take(SHOWN)
        .map(|name| {
            let (name, cut) = shortened(name);
            format!("{name}{cut}")
        })
        .collect();
    let shown = shown.join(", ");
    if more == 0 {
        shown
    } else {
        format!("{shown} and {more} more")
    }
}
