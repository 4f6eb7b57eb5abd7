//! Values out of a document, each checked where it stands.
//!
//! Whoever asks for a value gets it, or the problem is noted and the reading goes on without: so
//! everything that is wrong is found at once. A key that is there without a value counts as absent.

use std::time::Duration;

use doorward_documents::keys::{key_problems, near};
use doorward_documents::tree::{Key, Node, Place, Value};
use doorward_documents::{Problem, shortened};
use doorward_engine::amount::Amount;

/// The longest time in a scenario: a year.
pub(super) const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// The shortest time between two steps of anything: what is faster would do nothing but step.
pub(super) const STEP_MIN: Duration = Duration::from_millis(1);

/// What was found to be wrong.
#[derive(Debug, Default)]
pub(super) struct Problems(pub(super) Vec<Problem>);

/// A value, where it stands and as what.
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    pub(super) node: &'a Node,
    /// The keys on the way to it: `network.clients.loss`. Empty: the document.
    pub(super) path: String,
}

/// A map: values by key.
#[derive(Clone, Debug)]
pub(super) struct Map<'a> {
    pub(super) place: Place,
    pub(super) path: String,
    pub(super) entries: &'a [(Key, Node)],
}

impl Problems {
    /// Notes what is wrong with something at a place.
    pub(super) fn note(&mut self, place: Place, path: &str, message: impl Into<String>) {
        self.0.push(Problem {
            field: (!path.is_empty()).then(|| path.to_owned()),
            ..Problem::of_document(place, message)
        });
    }

    /// Notes that a value is not what it should be.
    pub(super) fn refuse(&mut self, at: &At<'_>, expected: &str) {
        let message = format!("is {}; give {expected}", at.node.value.described());
        self.note(at.node.place, &at.path, message);
    }

    /// Notes that a value is wrong in another way.
    pub(super) fn wrong(&mut self, at: &At<'_>, message: impl Into<String>) {
        self.note(at.node.place, &at.path, message);
    }
}

impl<'a> Map<'a> {
    /// What stands under a key, if anything does.
    pub(super) fn get(&self, key: &str) -> Option<At<'a>> {
        let (_, node) = self.entries.iter().find(|(k, _)| k.text == key)?;
        (!matches!(node.value, Value::Null)).then(|| At {
            node,
            path: self.path_of(key),
        })
    }

    /// What must stand under a key; `what` says what it is for.
    pub(super) fn need(&self, key: &str, what: &str, problems: &mut Problems) -> Option<At<'a>> {
        let found = self.get(key);
        if found.is_none() {
            let message = format!("is missing; give {what}");
            problems.note(self.place, &self.path_of(key), message);
        }
        found
    }

    /// Notes the keys that are not among the known ones, or there twice.
    pub(super) fn check_keys(&self, known: &[&str], problems: &mut Problems) {
        for (place, name, message) in key_problems(self.entries, known) {
            problems.note(place, &self.path_of(&name), message);
        }
    }

    /// Which one of some keys is there. None, and noted, if there are none or several.
    pub(super) fn only_one(
        &self,
        keys: &[&'static str],
        problems: &mut Problems,
    ) -> Option<&'static str> {
        let mut found = keys.iter().filter(|key| self.has(key));
        match (found.next(), found.next()) {
            (Some(key), None) => Some(key),
            (None, _) => {
                let misspelt = |(key, _): &'a (Key, Node)| Some((key, near(&key.text, keys)?));
                if let Some((key, meant)) = self.entries.iter().find_map(misspelt) {
                    let message = format!("is unknown; did you mean {meant}?");
                    problems.note(key.place, &self.path_of(&key.text), message);
                } else {
                    let message = format!("has none of {}; give one", keys.join(", "));
                    problems.note(self.place, &self.path, message);
                }
                None
            }
            (Some(one), Some(other)) => {
                let message = format!("has both {one} and {other}; give one of them");
                problems.note(self.place, &self.path, message);
                None
            }
        }
    }

    /// Whether a key is there, with a value or without.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(k, _)| k.text == key)
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}

impl<'a> At<'a> {
    /// A map. `example` shows how one is written.
    pub(super) fn map(&self, example: &str, problems: &mut Problems) -> Option<Map<'a>> {
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
    pub(super) fn list(&self, example: &str, problems: &mut Problems) -> Option<Vec<At<'a>>> {
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

    /// A text; numbers need quotes, since YAML would take 1.10 for 1.1.
    pub(super) fn text(&self, problems: &mut Problems) -> Option<String> {
        match &self.node.value {
            Value::Text(text) => return Some(text.clone()),
            Value::List(_) | Value::Map(_) => problems.refuse(self, "a text"),
            _ => {
                let described = self.node.value.described();
                problems.wrong(self, format!("is {described}; put a text in quotes"));
            }
        }
        None
    }

    /// A whole number between two, both included.
    pub(super) fn whole(&self, least: i128, most: i128, problems: &mut Problems) -> Option<i128> {
        if let Value::Whole(number) = self.node.value
            && (least..=most).contains(&number)
        {
            return Some(number);
        }
        problems.refuse(self, &format!("a whole number from {least} to {most}"));
        None
    }

    /// How many: from 1 to `most`.
    pub(super) fn count(&self, most: usize, problems: &mut Problems) -> Option<usize> {
        let most = i128::try_from(most).unwrap_or(i128::MAX);
        usize::try_from(self.whole(1, most, problems)?).ok()
    }

    /// Finite, between two, both included.
    pub(super) fn number(&self, least: f64, most: f64, problems: &mut Problems) -> Option<f64> {
        let number = self.node.value.as_number();
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            problems.refuse(self, &format!("a number from {least} to {most}"));
        }
        number
    }

    /// What may be wanted.
    pub(super) fn amount(&self, problems: &mut Problems) -> Option<f64> {
        let Some(number) = self.node.value.as_number() else {
            problems.refuse(self, "a number");
            return None;
        };
        match Amount::new(number) {
            Ok(amount) => Some(amount.get()),
            Err(cause) => {
                problems.wrong(self, cause.to_string());
                None
            }
        }
    }

    /// A probability, or another part of a whole.
    pub(super) fn part(&self, problems: &mut Problems) -> Option<f64> {
        self.number(0.0, 1.0, problems)
    }

    /// Seconds, or written out; up to a year.
    pub(super) fn duration(&self, problems: &mut Problems) -> Option<Duration> {
        let Some(duration) = self.node.value.as_duration() else {
            problems.refuse(self, "seconds, or a duration such as 15s or 2m");
            return None;
        };
        if duration > DURATION_MAX {
            problems.refuse(self, "at most 365 days");
            return None;
        }
        Some(duration)
    }

    /// A duration in which something can happen.
    pub(super) fn step(&self, problems: &mut Problems) -> Option<Duration> {
        let duration = self.duration(problems)?;
        if duration < STEP_MIN {
            problems.refuse(self, "at least 1ms");
            return None;
        }
        Some(duration)
    }

    /// A time while it is played, which takes so long.
    pub(super) fn time_before(&self, end: Duration, problems: &mut Problems) -> Option<Duration> {
        let time = self.duration(problems)?;
        if time >= end {
            let message = format!(
                "is {}, but the simulation ends after {}; nothing would happen",
                humantime::format_duration(time),
                humantime::format_duration(end)
            );
            problems.wrong(self, message);
            return None;
        }
        Some(time)
    }

    /// One duration, or two between which chance decides.
    pub(super) fn span(&self, problems: &mut Problems) -> Option<(Duration, Duration)> {
        let Value::List(nodes) = &self.node.value else {
            let duration = self.duration(problems)?;
            return Some((duration, duration));
        };
        let each: Option<Vec<Duration>> = nodes
            .iter()
            .map(|node| At {
                node,
                path: self.path.clone(),
            })
            .map(|at| at.duration(problems))
            .collect();
        match each?.as_slice() {
            [least, most] if least <= most => Some((*least, *most)),
            [_, _] => {
                problems.wrong(self, "goes backwards; give the shorter one first");
                None
            }
            other => {
                let message = format!(
                    "is a list of {}; give one duration, or the shortest and the longest, as in \
                     [10s, 60s]",
                    other.len()
                );
                problems.wrong(self, message);
                None
            }
        }
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)], problems: &mut Problems) -> Option<T> {
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
pub(super) fn hint(written: &str, known: &[&str]) -> String {
    near(written, known).map_or_else(String::new, |word| format!("; did you mean {word}?"))
}

/// Some of many names, for a message.
pub(super) fn some_of<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
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
