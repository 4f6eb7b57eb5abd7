//! Documents: YAML in, rules or problems out.
//!
//! The parser stops at its first problem: text that is no YAML, an unknown field, a field twice. All other problems of
//! a document are reported together. An empty value is a bare key. A number as a value is its text (`0041`), but for
//! fractions and whole numbers above 2⁶³ − 1, which need quotes.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::time::Duration;

use doorward_limits::{Rate, Units};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Location, Spanned};

use crate::form::{DescriptorForm, DocumentForm, LimitForm, ReplacesForm, Scalar};
use crate::problem::Problem;
use crate::rule::{Limit, MAX_WAIT, OnFailure, Rule, Scope};
use crate::tree::{Entry, Found, Node};

/// Largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most levels of maps and lists. A level of descriptors has two.
const DEPTH_MAX: usize = 64;

/// Units of envoyproxy/ratelimit, in seconds.
const UNITS: [(&str, u64); 7] = [
    ("second", 1),
    ("minute", 60),
    ("hour", 3_600),
    ("day", 86_400),
    ("week", 7 * 86_400),
    ("month", 30 * 86_400),
    ("year", 365 * 86_400),
];

/// The rules of all domains.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    domains: HashMap<String, Domain>,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Domain {
    root: Node,
    reject_unmatched: bool,
}

impl Rules {
    /// Reads documents, each with the name of its file. All load, or none does.
    ///
    /// # Errors
    ///
    /// The problems of all documents.
    pub fn load(documents: &[(&str, &str)]) -> Result<Self, Vec<Problem>> {
        let mut rules = Self::default();
        let mut problems = Vec::new();
        for (file, text) in documents {
            match parse(text) {
                Ok(form) => {
                    let mut reader = Reader {
                        file,
                        text,
                        rules: &mut rules,
                        problems: &mut problems,
                    };
                    reader.document(&form);
                }
                Err((line, message)) => problems.push(Problem {
                    file: (*file).to_owned(),
                    line,
                    message,
                }),
            }
        }
        if problems.is_empty() {
            Ok(rules)
        } else {
            Err(problems)
        }
    }

    /// Returns the JSON Schema of a document.
    pub fn schema() -> schemars::Schema {
        schemars::schema_for!(DocumentForm)
    }

    /// Returns the rule of one descriptor. `None`: no limit, by this descriptor.
    pub fn find_one(&self, domain: &str, entries: &[Entry<'_>]) -> Option<&Rule> {
        let number = self.domains.get(domain)?.root.find(entries)?;
        self.rules.get(number)
    }

    /// Returns the rules of a request's descriptors, in their order.
    pub fn find(&self, domain: &str, descriptors: &[&[Entry<'_>]]) -> Vec<Option<Found<'_>>> {
        let found = |found: Option<(usize, bool)>| {
            let (number, replaced) = found?;
            let rule = self.rules.get(number)?;
            Some(Found { rule, replaced })
        };
        let numbers = self.find_numbers(domain, descriptors);
        numbers.into_iter().map(found).collect()
    }

    /// Returns the numbers of the rules, and whether another rule replaces each.
    pub(crate) fn find_numbers(
        &self,
        domain: &str,
        descriptors: &[&[Entry<'_>]],
    ) -> Vec<Option<(usize, bool)>> {
        let root = self.domains.get(domain).map(|domain| &domain.root);
        let find = |entries: &&[Entry<'_>]| root?.find(entries);
        let numbers: Vec<_> = descriptors.iter().map(find).collect();
        let rules = || {
            numbers
                .iter()
                .flatten()
                .filter_map(|number| self.rules.get(*number))
        };
        let replaces = |name: &String| rules().any(|rule| rule.replaces.contains(name));
        let is_replaced = |number: usize| {
            let rule = self.rules.get(number);
            let rule = rule.filter(|rule| rule.limit != Limit::Unlimited);
            rule.and_then(|rule| rule.name.as_ref())
                .is_some_and(replaces)
        };
        let found = |number: &Option<usize>| number.map(|number| (number, is_replaced(number)));
        numbers.iter().map(found).collect()
    }

    /// Returns whether a request without a rule is refused, with 503. False for an unknown domain.
    pub fn rejects_unmatched(&self, domain: &str) -> bool {
        (self.domains.get(domain)).is_some_and(|domain| domain.reject_unmatched)
    }

    /// Returns all rules, in the order of the documents.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

fn parse(text: &str) -> Result<DocumentForm, (u64, String)> {
    if text.len() > DOCUMENT_BYTES_MAX {
        let message = format!(
            "the document is larger than {DOCUMENT_BYTES_MAX} bytes; write several domains"
        );
        return Err((1, message));
    }
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: DEPTH_MAX },
        duplicate_keys: DuplicateKeyPolicy::Error,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(1, |place| place.line().max(1));
        let message = error.render();
        let message = message.lines().next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let message = message
            .split_once(" at line ")
            .map_or(message, |(start, _)| start);
        (line, message.to_owned())
    })
}

/// Reader of one document.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    rules: &'a mut Rules,
    problems: &'a mut Vec<Problem>,
}

/// The levels above a descriptor.
type Levels = Vec<(String, Option<String>)>;

impl Reader<'_> {
    fn document(&mut self, form: &DocumentForm) {
        let Some((domain, line)) = scalar(&form.domain) else {
            self.problem(
                1,
                "domain: is missing; write the name of the domain".to_owned(),
            );
            return;
        };
        if self.rules.domains.contains_key(domain) {
            let message =
                format!("domain: {domain} is in another document; put all of its rules into one");
            self.problem(line, message);
            return;
        }
        let reject_unmatched = match scalar(&form.unmatched) {
            None | Some(("allow", _)) => false,
            Some(("reject", _)) => true,
            Some((other, line)) => {
                self.problem(
                    line,
                    format!("unmatched: {other} is unknown; write allow or reject"),
                );
                false
            }
        };
        let mut root = Node::default();
        self.level(
            domain,
            &mut Levels::new(),
            form.descriptors.as_deref(),
            &mut root,
        );
        let domain = domain.to_owned();
        let content = Domain {
            root,
            reject_unmatched,
        };
        self.rules.domains.insert(domain, content);
    }

    fn level(
        &mut self,
        path: &str,
        levels: &mut Levels,
        forms: Option<&[Spanned<DescriptorForm>]>,
        node: &mut Node,
    ) {
        for form in forms.unwrap_or_default() {
            let line = form.referenced.line();
            let form = &form.value;
            let Some((key, key_line)) = scalar(&form.key) else {
                self.problem(
                    line,
                    "key: is missing; write the key of the request's entry".to_owned(),
                );
                continue;
            };
            if key.contains('*') {
                self.problem(
                    key_line,
                    format!("key: {key} has a star; a star is for values only"),
                );
            }
            self.check_text("key", &form.key);
            self.check_text("value", &form.value);
            let value = scalar(&form.value).map(|(value, _)| value);
            let name = value.map_or_else(|| key.to_owned(), |value| format!("{key}_{value}"));
            let path = format!("{path}.{name}");
            levels.push((key.to_owned(), value.map(str::to_owned)));
            let mut child = Node::default();
            if let Some(rule) = self.rule(&path, levels, form) {
                child.rule = Some(self.rules.rules.len());
                self.rules.rules.push(rule);
            }
            self.level(&path, levels, form.descriptors.as_deref(), &mut child);
            levels.pop();
            if !node.insert(key, value, child) {
                self.problem(
                    key_line,
                    format!("key: {name} is twice on this level; merge the two"),
                );
            }
        }
    }

    /// Returns the rule of a descriptor; `None` without a limit, or with a problem.
    fn rule(&mut self, path: &str, levels: &Levels, form: &DescriptorForm) -> Option<Rule> {
        let shadow = self.truth("shadow_mode", &form.shadow_mode);
        let detailed_metric = self.truth("detailed_metric", &form.detailed_metric);
        let action = self.word("action", &form.action).unwrap_or_default();
        let scope = self.word("scope", &form.scope).unwrap_or_default();
        let on_failure = self
            .word("on_failure", &form.on_failure)
            .unwrap_or(match scope {
                Scope::Local => OnFailure::Open,
                Scope::Shared => OnFailure::Safe,
            });
        let max_wait = self.parsed(
            "max_wait",
            &form.max_wait,
            "a duration such as 5ms",
            |text| humantime::parse_duration(text).ok(),
        );
        let cost = self.parsed("cost", &form.cost, "a whole number above 0", |text| {
            text.parse().ok().map(NonZeroU64::get)
        });
        let limit_form = form.rate_limit.as_ref()?;
        let line = limit_form.referenced.line();
        let Some(limit_form) = &limit_form.value else {
            self.problem(
                line,
                "rate_limit: is empty; write unit and requests_per_unit".to_owned(),
            );
            return None;
        };
        let limit = self.limit(limit_form, line);
        let name = scalar(&limit_form.name);
        let replaces = self.replaces(
            name.map(|(name, _)| name),
            limit_form.replaces.as_deref(),
            line,
        );
        Some(Rule {
            path: path.to_owned(),
            levels: levels.clone(),
            limit: limit?,
            name: name.map(|(name, _)| name.to_owned()),
            replaces,
            shadow,
            detailed_metric,
            action,
            max_wait: max_wait.unwrap_or(MAX_WAIT),
            scope,
            on_failure,
            cost: cost.unwrap_or(1),
        })
    }

    fn limit(&mut self, form: &LimitForm, line: u64) -> Option<Limit> {
        if self.truth("unlimited", &form.unlimited) {
            for (field, value) in [
                ("unit", &form.unit),
                ("requests_per_unit", &form.requests_per_unit),
                ("rate", &form.rate),
            ] {
                if let Some((_, line)) = scalar(value) {
                    self.problem(
                        line,
                        format!("{field}: stands beside unlimited; remove one of the two"),
                    );
                }
            }
            return Some(Limit::Unlimited);
        }
        if let Some((_, line)) = scalar(&form.rate) {
            if scalar(&form.unit)
                .or(scalar(&form.requests_per_unit))
                .is_some()
            {
                let message =
                    "rate: stands beside unit or requests_per_unit; remove one of the two";
                self.problem(line, message.to_owned());
            }
            let rate = self.parsed("rate", &form.rate, "a rate such as 2000/20min", |text| {
                text.parse().ok()
            });
            return rate.map(Limit::Window);
        }
        let unit = self.parsed(
            "unit",
            &form.unit,
            "second, minute, hour, day, week, month or year",
            seconds,
        );
        let what = "a whole number from 0 to 4294967295";
        let amount = self.parsed("requests_per_unit", &form.requests_per_unit, what, |text| {
            text.parse::<u32>().ok()
        });
        for (field, value) in [
            ("unit", &form.unit),
            ("requests_per_unit", &form.requests_per_unit),
        ] {
            if scalar(value).is_none() {
                self.problem(
                    line,
                    format!("{field}: is missing; write it, or a rate such as 10/min"),
                );
            }
        }
        let amount = Units::whole(amount?.into());
        Rate::new(amount, Duration::from_secs(unit?))
            .ok()
            .map(Limit::Window)
    }

    fn replaces(
        &mut self,
        own: Option<&str>,
        forms: Option<&[ReplacesForm]>,
        line: u64,
    ) -> Vec<String> {
        let mut names = Vec::new();
        for form in forms.unwrap_or_default() {
            match scalar(&form.name) {
                None => self.problem(
                    line,
                    "replaces: has an empty name; write the rule's name".to_owned(),
                ),
                Some((name, line)) if own == Some(name) => {
                    self.problem(
                        line,
                        format!("replaces: {name} is the rule itself; remove it"),
                    );
                }
                Some((name, _)) => names.push(name.to_owned()),
            }
        }
        names
    }

    /// Refuses an unquoted number whose text YAML readers change.
    fn check_text(&mut self, field: &str, value: &Scalar) {
        let Some((text, line)) = scalar(value) else {
            return;
        };
        let is_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        let changes = is_number && text.parse::<f64>().is_ok() && text.parse::<i64>().is_err();
        if changes
            && !value
                .as_ref()
                .is_some_and(|value| self.is_quoted(value.defined))
        {
            self.problem(
                line,
                format!("{field}: {text} is a number that may be changed; write \"{text}\""),
            );
        }
    }

    fn is_quoted(&self, place: Location) -> bool {
        let line = (place.line() as usize)
            .checked_sub(1)
            .and_then(|n| self.text.lines().nth(n));
        let first = line.and_then(|line| {
            line.chars()
                .nth((place.column() as usize).saturating_sub(1))
        });
        matches!(first, Some('"' | '\'' | '|' | '>'))
    }

    fn truth(&mut self, field: &str, value: &Scalar) -> bool {
        let read = self.parsed(field, value, "true or false", |text| text.parse().ok());
        read.unwrap_or(false)
    }

    fn word<T: for<'de> Deserialize<'de>>(&mut self, field: &str, value: &Scalar) -> Option<T> {
        let (text, line) = scalar(value)?;
        let read = T::deserialize(IntoDeserializer::<ValueError>::into_deserializer(text));
        (read.map_err(|error| self.problem(line, format!("{field}: {error}")))).ok()
    }

    fn parsed<T>(
        &mut self,
        field: &str,
        value: &Scalar,
        what: &str,
        read: fn(&str) -> Option<T>,
    ) -> Option<T> {
        let (text, line) = scalar(value)?;
        let read = read(text);
        if read.is_none() {
            self.problem(line, format!("{field}: {text} is invalid; write {what}"));
        }
        read
    }

    fn problem(&mut self, line: u64, message: String) {
        let file = self.file.to_owned();
        self.problems.push(Problem {
            file,
            line,
            message,
        });
    }
}

/// Returns a scalar's text and line; `None` if it is missing or empty.
fn scalar(value: &Scalar) -> Option<(&str, u64)> {
    let value = value.as_ref().filter(|value| !value.value.is_empty())?;
    Some((value.value.as_str(), value.referenced.line()))
}

fn seconds(unit: &str) -> Option<u64> {
    let mut units = UNITS.iter();
    let found = units.find(|(name, _)| name.eq_ignore_ascii_case(unit));
    found.map(|(_, seconds)| *seconds)
}
