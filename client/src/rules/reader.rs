//! Documents: YAML in, rules or problems out.
//!
//! The YAML parser stops at text that is no YAML. All other problems of a document are reported together. An empty value
//! is a bare key. A number as a value is its text
//! (`0041`), but for fractions and whole numbers above 2⁶³ − 1, which need quotes. A field for a number takes no quotes.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use doorward_limits::headers::Dialect;
use doorward_yaml::{Format, PlacedValue, Value};
use indexmap::IndexSet;

use crate::rules::document::{DOCUMENT_BYTES_MAX, Domain, Rules};
use crate::rules::problem::{Problem, Problems};
use crate::rules::rank::{CALLERS_MAX, Rank, Ranks, WEIGHT_MAX};
use crate::rules::rule::{
    Action, Algorithm, Limit, MAX_WAIT, MAX_WAIT_MAX, OnFailure, PROCESSES_MAX, Rule, Scope,
};
use crate::rules::shared::{self, ID_BYTES_MAX};
use crate::rules::tree::Node;

mod fields;
pub(crate) mod limit;
mod scalar;

use scalar::{duration, written};

const FORMAT: Format = Format {
    bytes_max: DOCUMENT_BYTES_MAX,
    if_larger: "; write several domains",
    if_several: "write one file for each domain",
};

/// Largest number of problems that are told of a document.
const PROBLEMS_MAX: usize = 1_000;

/// Bytes of all paths that a document has for each byte of its text, and those that any document has. A key counts for
/// each descriptor below it.
const PATHS_OF_TEXT: usize = 16;
const PATHS_MIN: usize = 4 << 20;

/// Fields that have no effect in a descriptor without a limit.
const OF_LIMITS: [&str; 11] = [
    "ban",
    "shadow_mode",
    "cost",
    "action",
    "scope",
    "max_wait",
    "on_failure",
    "processes",
    "priority",
    "weight",
    "callers",
];

const LONG_PATHS: &str =
    "key: this one and those above it are too long for so many descriptors; write shorter ones";

impl Rules {
    /// Reads documents, each with the name of its file. All load, or none does.
    ///
    /// # Errors
    ///
    /// The problems of all documents, in their order and by line.
    pub fn load(documents: &[(&str, &str)]) -> Result<Self, Problems> {
        let documents = documents.iter();
        Self::load_bytes(documents.map(|(file, text)| (*file, text.as_bytes())))
    }

    /// The same, of texts that may not even be text.
    pub(crate) fn load_bytes<'d>(
        documents: impl Iterator<Item = (&'d str, &'d [u8])>,
    ) -> Result<Self, Problems> {
        let mut rules = Self::default();
        let (mut problems, mut without) = (Problems::default(), Vec::new());
        for (file, bytes) in documents {
            let document = FORMAT.read(bytes);
            let mut reader = Reader {
                file,
                // A document that is no text has no fields.
                text: str::from_utf8(bytes).unwrap_or_default(),
                rules: &mut rules,
                unclear: BTreeSet::new(),
                domain: String::new(),
                problems: Vec::new(),
                without: None,
                paths_left: PATHS_MIN + PATHS_OF_TEXT * bytes.len(),
            };
            match &document {
                Ok(document) => reader.document(document.as_ref()),
                Err((place, message)) => reader.problem(place.line, message.clone()),
            }
            reader.problems.sort_by_key(|problem| problem.line);
            problems.0.append(&mut reader.problems);
            without.extend(reader.without);
        }
        if problems.is_empty() {
            problems = Problems(without);
        }
        if problems.is_empty() {
            Ok(rules)
        } else {
            Err(problems)
        }
    }
}

/// Returns the domain that a line of the text names, also if the text is no valid document.
pub fn domain_of(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("domain:"))?;
    let fields = FORMAT.read(line.as_bytes()).ok()??;
    written(fields.get("domain")?, line).map(str::to_owned)
}

/// Reader of one document.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    rules: &'a mut Rules,
    /// Lines on which maps begin that have fields of a wrong name or shape.
    unclear: BTreeSet<u64>,
    /// Domain of the document.
    domain: String,
    problems: Vec<Problem>,
    /// Problem of a document that has no rule and does not say so. It is told if there is no other one.
    without: Option<Problem>,
    /// Bytes that further paths may have.
    paths_left: usize,
}

/// The levels above a descriptor: key, value, and whether values of requests are hashed.
type Levels<'f> = Vec<(&'f str, Option<&'f str>, bool)>;

impl<'a> Reader<'a> {
    /// Adds the rules of the document to the others.
    fn document(&mut self, document: Option<&'a PlacedValue>) {
        if let Some(document) = document {
            self.check_fields(document);
        }
        let domain = document.and_then(|form| Some((form, self.scalar(form, "domain")?)));
        let Some((form, (name, line))) = domain else {
            let domain = document.and_then(|form| form.get("domain"));
            let line = domain.map_or(1, |domain| domain.place.line);
            let message = "domain: is missing or empty; write the name of the domain";
            return self.missing(line, message.to_owned());
        };
        if self.rules.domain(name).is_some() {
            let other = self.rules.file(name).unwrap_or("another document");
            let message =
                format!("domain: {name} is in {other} too; put all of its rules into one");
            return self.problem(line, message);
        }
        let mut domain = Domain {
            number: self.rules.domains_in_order().count(),
            root: Node::default(),
            key_paths: IndexSet::new(),
            rejects_unmatched: self.choice(form, "unmatched", &["allow", "reject"]) == 1,
            counts_attempts: self.choice(form, "count", &["allowed", "attempts"]) == 1,
            dialect: match self.choice(form, "headers", &["draft-11", "next", "legacy"]) {
                1 => Dialect::Next,
                2 => Dialect::Legacy,
                _ => Dialect::Draft11,
            },
        };
        name.clone_into(&mut self.domain);
        let mut root = Node::default();
        self.level(name, &mut Levels::new(), form, &mut domain, &mut root);
        domain.root = root;
        match (self.truth(form, "empty"), domain.key_paths.is_empty()) {
            (true, false) => self.refuse(form, &["empty"], "there are rules; remove this field"),
            (false, true) => {
                self.without = Some(Problem {
                    file: self.file.to_owned(),
                    line,
                    message: "descriptors: there is no rule; write one, or empty: true if that is intended".to_owned(),
                });
            }
            (true, true) | (false, false) => {}
        }
        self.rules.add_domain(name, self.file, domain);
    }

    /// Reads the descriptors below a document or a descriptor.
    fn level(
        &mut self,
        parent: &str,
        levels: &mut Levels<'a>,
        above: &'a PlacedValue,
        domain: &mut Domain,
        node: &mut Node,
    ) {
        for form in items(above, "descriptors") {
            let Some((key, key_line)) = self.scalar(form, "key") else {
                let message = "key: is missing; write the key of the request's entry";
                self.missing(form.place.line, message.to_owned());
                continue;
            };
            if key.contains('*') {
                let message = format!("key: {key} has a star; a star is for values only");
                self.problem(key_line, message);
            }
            self.check_text(form, "key");
            self.check_text(form, "value");
            if key == "remote_address" {
                self.check_address(form);
            }
            let value = self.scalar(form, "value").map(|(value, _)| value);
            let path = match value {
                None => format!("{parent}.{key}"),
                Some(value) => format!("{parent}.{key}_{value}"),
            };
            let Some(left) = self.paths_left.checked_sub(path.len()) else {
                if self.problems.iter().all(|it| it.message != LONG_PATHS) {
                    self.problem(key_line, LONG_PATHS.to_owned());
                }
                return;
            };
            self.paths_left = left;
            levels.push((key, value, self.hashes(form)));
            let mut child = Node::default();
            if let Some(rule) = self.rule(&path, levels, form) {
                let keys = || levels.iter().map(|level| level.0);
                // Neighbours mostly have the same keys.
                if domain.key_paths.last().is_none_or(|last| !keys().eq(last)) {
                    domain.key_paths.insert(keys().map(str::to_owned).collect());
                }
                child.rule = Some(self.rules.add(rule));
            }
            self.level(&path, levels, form, domain, &mut child);
            levels.pop();
            if !node.insert(key, value, child) {
                let name = path.get(parent.len() + 1..).unwrap_or_default();
                let message = format!("key: {name} is twice on this level; merge the two");
                self.problem(key_line, message);
            }
        }
    }

    /// Returns the rule of a descriptor; `None` without a limit, or with a problem.
    fn rule(&mut self, path: &str, levels: &Levels<'_>, form: &'a PlacedValue) -> Option<Rule> {
        let shadow = self.truth(form, "shadow_mode");
        let detailed_metric = self.truth(form, "detailed_metric");
        let action = self.word(form, "action").unwrap_or_default();
        let scope = self.word(form, "scope").unwrap_or_default();
        let on_failure = self.word(form, "on_failure");
        let what = "a duration up to 1min, such as 5ms";
        let max_wait = self.parsed(form, "max_wait", what, |text| {
            duration(text).filter(|wait| *wait <= MAX_WAIT_MAX)
        });
        let cost = self.number(form, "cost", "a whole number above 0", |cost| *cost > 0);
        let bans = form.get("ban").and_then(|ban| self.bans(ban));
        let ranks = self.ranks(form);
        let on_failure = on_failure.unwrap_or(match scope {
            Scope::Local => OnFailure::Open,
            Scope::Shared => OnFailure::Safe,
            Scope::Budget => OnFailure::Closed,
        });
        if (scope, on_failure) == (Scope::Budget, OnFailure::Safe) {
            let why = "a budget has no safe capacity; write open or closed";
            self.refuse(form, &["on_failure"], why);
        }
        let processes = self.processes(form, scope, on_failure);
        let Some(limit_form) = form.get("rate_limit") else {
            let why = "stands without rate_limit; write the limit too";
            self.refuse(form, &OF_LIMITS, why);
            return None;
        };
        let line = limit_form.place.line;
        if matches!(limit_form.value, Value::Null) {
            let message = "rate_limit: is empty; write unit and requests_per_unit, or rate";
            self.problem(line, message.to_owned());
            return None;
        }
        let cost = cost.unwrap_or(1);
        let limit = self.limit(limit_form, (cost, max_wait), bans);
        if action == Action::Wait
            && let Some(Limit::Counted(counted)) = &limit
            && (counted.algorithm != Algorithm::TokenBucket || scope.is_shared())
        {
            let message = "action: wait is for local rules with algorithm: token_bucket; write it, or leaky_queue";
            self.problem(line, message.to_owned());
        }
        let name = self.scalar(limit_form, "name").map(|(name, _)| name);
        let replaces = self.replaces(name, limit_form);
        let rule = Rule {
            domain: self.domain.clone(),
            path: path.to_owned(),
            levels: levels
                .iter()
                .map(|(key, value, _)| ((*key).to_owned(), value.map(str::to_owned)))
                .collect(),
            hashed: levels.iter().map(|level| level.2).collect(),
            limit: limit?,
            name: name.map(str::to_owned),
            replaces,
            shadow,
            detailed_metric,
            action,
            max_wait: max_wait.unwrap_or(MAX_WAIT),
            scope,
            on_failure,
            processes,
            cost,
            ranks,
        };
        self.check_id(&rule, line);
        Some(rule)
    }

    /// Refuses a shared rule whose resources have too long an id.
    fn check_id(&mut self, rule: &Rule, line: u64) {
        if !rule.scope.is_shared() {
            return;
        }
        let bytes = shared::id_bytes_max(rule);
        if bytes > ID_BYTES_MAX {
            let message = format!(
                "scope: its resource needs an id of {bytes} bytes for the domain, keys and values; {ID_BYTES_MAX} are the most"
            );
            self.problem(line, message);
        }
    }

    fn processes(&mut self, form: &'a PlacedValue, scope: Scope, on_failure: OnFailure) -> u32 {
        let what = format!("a whole number from 1 to {PROCESSES_MAX}");
        let read = self.parsed(form, "processes", &what, |text| {
            let number = text.parse().ok();
            number.filter(|number| (1..=PROCESSES_MAX).contains(number))
        });
        if (scope, on_failure) != (Scope::Shared, OnFailure::Safe) {
            let why = "needs scope: shared and on_failure: safe; remove it";
            self.refuse(form, &["processes"], why);
        }
        read.unwrap_or(1)
    }

    /// Returns the ranks of callers.
    fn ranks(&mut self, form: &'a PlacedValue) -> Ranks {
        let usual = self.rank(form, Rank::default());
        let callers = items(form, "callers");
        if let Some(beyond) = callers.get(CALLERS_MAX) {
            let message = format!("callers: has more than {CALLERS_MAX}; write stars in names");
            self.problem(beyond.place.line, message);
        }
        let mut listed = Vec::new();
        for caller in callers {
            let rank = self.rank(caller, usual);
            match self.scalar(caller, "name") {
                Some((name, _)) => listed.push((name.to_owned(), rank)),
                // An item of another shape has its problem already.
                None if !matches!(caller.value, Value::Map(_)) => {}
                None => {
                    let message = "callers: has an empty name; write it".to_owned();
                    self.problem(caller.place.line, message);
                }
            }
        }
        Ranks { usual, listed }
    }

    fn rank(&mut self, form: &'a PlacedValue, usual: Rank) -> Rank {
        let priority = self.number(form, "priority", "a whole number", |_| true);
        let what = "a whole number from 1 to 100";
        let weight = self.number(form, "weight", what, |weight| {
            (1..=WEIGHT_MAX).contains(weight)
        });
        Rank {
            priority: priority.unwrap_or(usual.priority),
            weight: weight.unwrap_or(usual.weight),
        }
    }

    fn replaces(&mut self, own: Option<&str>, limit: &'a PlacedValue) -> Vec<String> {
        let mut names = Vec::new();
        for form in items(limit, "replaces") {
            match self.scalar(form, "name") {
                None if !matches!(form.value, Value::Map(_)) => {}
                None => {
                    let message = "replaces: has an empty name; write the rule's name";
                    self.problem(limit.place.line, message.to_owned());
                }
                Some((name, line)) if own == Some(name) => {
                    let message = format!("replaces: {name} is the rule itself; remove it");
                    self.problem(line, message);
                }
                Some((name, _)) => names.push(name.to_owned()),
            }
        }
        names
    }

    /// Refuses an unquoted number whose text YAML readers change.
    fn check_text(&mut self, form: &'a PlacedValue, field: &str) {
        let Some((text, line)) = self.scalar(form, field) else {
            return;
        };
        let is_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        let changes = is_number && text.parse::<f64>().is_ok() && text.parse::<i64>().is_err();
        if changes && !self.is_quoted(form, field) {
            let message =
                format!("{field}: {text} is a number that may be changed; write \"{text}\"");
            self.problem(line, message);
        }
    }

    /// Returns whether the values of requests are hashed.
    fn hashes(&mut self, form: &'a PlacedValue) -> bool {
        let hashes = self.truth(form, "hash");
        if let Some((value, _)) = self.scalar(form, "value")
            && let (true, false, Some(line)) =
                (hashes, value.contains('*'), self.line(form, "hash"))
        {
            let message = format!(
                "hash: hides no value that the document has; remove it, or the value {value}"
            );
            self.problem(line, message);
        }
        hashes
    }

    /// Refuses an IPv6 address without a prefix: the address of a client has one.
    fn check_address(&mut self, form: &'a PlacedValue) {
        let value = self.scalar(form, "value");
        let parsed = value.map(|(text, line)| (text.parse::<Ipv6Addr>(), line));
        if let Some((Ok(address), line)) = parsed {
            let network = Ipv6Addr::from_bits(address.to_bits() >> 64 << 64);
            let message = format!(
                "value: {address} matches no client, because IPv6 addresses count by prefix; write \"{network}/64\""
            );
            self.problem(line, message);
        }
    }

    /// Refuses those of the fields that are there.
    fn refuse(&mut self, form: &PlacedValue, fields: &[&str], why: &str) {
        for field in fields {
            let there = form.get(field);
            if let Some(it) = there.filter(|it| !matches!(it.value, Value::Null)) {
                self.problem(it.place.line, format!("{field}: {why}"));
            }
        }
    }

    /// Tells which of the fields are missing.
    fn require(&mut self, form: &'a PlacedValue, fields: &[&str], advice: &str) {
        for field in fields {
            if self.scalar(form, field).is_none() {
                let message = format!("{field}: is missing; write it, {advice}");
                self.missing(form.place.line, message);
            }
        }
    }

    /// Tells a missing field of the map at a line, unless it may be an unknown one with a mistake in its name.
    fn missing(&mut self, line: u64, message: String) {
        if self.problems.len() < PROBLEMS_MAX && !self.unclear.contains(&line) {
            self.problem(line, message);
        }
    }

    fn problem(&mut self, line: u64, message: String) {
        if self.problems.len() >= PROBLEMS_MAX {
            return;
        }
        let file = self.file.to_owned();
        self.problems.push(Problem {
            file,
            line,
            message,
        });
    }
}

/// Returns the items of a list that a field may have.
fn items<'a>(form: &'a PlacedValue, field: &str) -> &'a [PlacedValue] {
    form.get(field).map(PlacedValue::items).unwrap_or_default()
}
