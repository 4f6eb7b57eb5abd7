//! Scalars of a document: numbers, truth values, durations and words, as they are written.

use std::time::Duration;

use doorward_limits::Units;
use doorward_yaml::{PlacedValue, Value};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;

use crate::rules::reader::Reader;

impl<'a> Reader<'a> {
    /// Returns a field's text, as it is written, and its line; `None` if it is missing or empty.
    pub(super) fn scalar(&self, form: &'a PlacedValue, field: &str) -> Option<(&'a str, u64)> {
        let node = form.get(field)?;
        Some((written(node, self.text)?, node.place.line))
    }

    /// Returns the line of a field that is there.
    pub(super) fn line(&self, form: &'a PlacedValue, field: &str) -> Option<u64> {
        self.scalar(form, field).map(|(_, line)| line)
    }

    pub(super) fn is_quoted(&self, form: &PlacedValue, field: &str) -> bool {
        let node = form.get(field);
        let first = node.and_then(|node| self.text.as_bytes().get(node.source.start as usize));
        matches!(first, Some(b'"' | b'\'' | b'|' | b'>'))
    }

    /// Returns the place of a word among those that a field has; the first is the default.
    pub(super) fn choice(&mut self, form: &'a PlacedValue, field: &str, words: &[&str]) -> usize {
        let Some((text, line)) = self.scalar(form, field) else {
            return 0;
        };
        let place = words.iter().position(|word| *word == text);
        place.unwrap_or_else(|| {
            let words = words.join(" or ");
            self.problem(line, format!("{field}: {text} is unknown; write {words}"));
            0
        })
    }

    pub(super) fn truth(&mut self, form: &'a PlacedValue, field: &str) -> bool {
        let read = self.unquoted(form, field, "true or false", |text| text.parse().ok());
        read.unwrap_or(false)
    }

    /// Reads a whole number, as YAML 1.2 has it: decimal, or with `0x` or `0o`.
    pub(super) fn number<T: TryFrom<i128>>(
        &mut self,
        form: &'a PlacedValue,
        field: &str,
        what: &str,
        is_valid: impl Fn(&T) -> bool,
    ) -> Option<T> {
        self.unquoted(form, field, what, |text| {
            T::try_from(whole(text)?).ok().filter(&is_valid)
        })
    }

    /// Reads a number or a truth value. In quotes it would be a text.
    pub(super) fn unquoted<T>(
        &mut self,
        form: &'a PlacedValue,
        field: &str,
        what: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let (text, line) = self.scalar(form, field)?;
        if self.is_quoted(form, field) {
            let message = format!("{field}: \"{text}\" is a text; write {what}, without quotes");
            self.problem(line, message);
            return None;
        }
        self.parsed(form, field, what, read)
    }

    pub(super) fn duration(&mut self, form: &'a PlacedValue, field: &str) -> Option<Duration> {
        self.parsed(form, field, "a duration such as 10min or 30days", duration)
    }

    pub(super) fn word<T: for<'de> Deserialize<'de>>(
        &mut self,
        form: &'a PlacedValue,
        field: &str,
    ) -> Option<T> {
        let (text, line) = self.scalar(form, field)?;
        let read = T::deserialize(IntoDeserializer::<ValueError>::into_deserializer(text));
        let read = read.map_err(|error| {
            let error = error.to_string().replace('`', "");
            let known = error.split_once("expected ").map_or("", |(_, known)| known);
            self.problem(line, format!("{field}: {text} is unknown; write {known}"));
        });
        read.ok()
    }

    /// Reads a value. `what` says what to write instead of an invalid one.
    pub(super) fn parsed<T>(
        &mut self,
        form: &'a PlacedValue,
        field: &str,
        what: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let (text, line) = self.scalar(form, field)?;
        let read = read(text);
        if read.is_none() {
            self.problem(line, format!("{field}: {text} is invalid; write {what}"));
        }
        read
    }

    pub(super) fn amount(&mut self, form: &'a PlacedValue, field: &str) -> Option<Units> {
        self.unquoted(form, field, "an amount such as 20", |text| {
            let whole = whole(text).and_then(|whole| u64::try_from(whole).ok());
            whole.map(Units::whole).or_else(|| text.parse().ok())
        })
    }
}

/// Returns a scalar as it is written; `None` if it is empty or no scalar.
pub(super) fn written<'a>(node: &'a PlacedValue, text: &'a str) -> Option<&'a str> {
    let written = match &node.value {
        Value::Text(text) => text,
        Value::Bool(_) | Value::Whole(_) | Value::Number(_) => {
            text.get(node.source.start as usize..node.source.end as usize)?
        }
        Value::Null | Value::List(_) | Value::Map(_) => return None,
    };
    Some(written).filter(|written| !written.is_empty())
}

/// Reads a whole number. A leading zero makes it octal to some readers and decimal to others, so it is no number.
fn whole(text: &str) -> Option<i128> {
    let based = [("0x", 16), ("0o", 8)].into_iter();
    let mut based = based.filter_map(|(prefix, base)| Some((text.strip_prefix(prefix)?, base)));
    if let Some((digits, base)) = based.next() {
        return u64::from_str_radix(digits, base).ok().map(i128::from);
    }
    let digits = text.trim_start_matches(['+', '-']);
    let is_clear = !digits.starts_with('0') || digits == "0";
    text.parse().ok().filter(|_| is_clear)
}

/// Reads a duration. A month or a year has no exact length.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut words = text.split(|letter: char| !letter.is_alphabetic());
    let is_inexact = |word: &str| {
        matches!(word, "M" | "y") || word.starts_with("month") || word.starts_with("year")
    };
    let span = humantime::parse_duration(text).ok();
    span.filter(|_| !words.any(is_inexact))
}
