//! Values out of a document, each checked where it stands.
//!
//! A reader gets the value, or notes the problem and goes on without it. So one reading finds all
//! problems. A key that is there without a value counts as absent.

use std::time::Duration;

use crate::keys::{Names, key_problems, near};
use crate::placed_value::{PlacedKey, PlacedValue, Value};
use crate::problem::{Position, Problem};

/// The problems of a document.
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
    /// The entries, in the order of the document.
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
    /// Returns the value of a key, if it has one.
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

    /// Notes the keys that are not among the known ones, or there twice.
    pub fn check_keys(&self, known: &[&Names], problems: &mut Problems) {
        for (place, name, message) in key_problems(self.entries, known) {
            problems.note(place, &self.path_of(&name), message);
        }
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

impl At<'_> {
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

    /// Seconds as a number, or a text such as `15s` or `1m 30s`.
    pub fn duration(&self, problems: &mut Problems) -> Option<Duration> {
        let duration = self.node.value.as_duration();
        if duration.is_none() {
            problems.refuse(self, "seconds, or a duration such as 15s or 2m");
        }
        duration
    }
}

/// Returns the known word that was probably meant, as the end of a message.
pub fn hint(written: &str, known: &[&str]) -> String {
    near(written, known).map_or_else(String::new, |word| format!("; did you mean {word}?"))
}
