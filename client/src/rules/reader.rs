//! Documents: YAML in, rules or problems out.
//!
//! The YAML parser stops at its first problem: text that is no YAML, a field twice, a list in place of a value. All
//! other problems of a document are reported together. An empty value is a bare key. A number as a value is its text
//! (`0041`), but for fractions and whole numbers above 2⁶³ − 1, which need quotes. A field for a number takes no quotes.

use std::net::Ipv6Addr;

use doorward_limits::headers::Dialect;
use indexmap::IndexSet;

use crate::rules::document::{Domain, Rules};
use crate::rules::form::{DescriptorForm, DocumentForm, Placed, ReplacesForm, Scalar};
use crate::rules::problem::{Problem, Problems};
use crate::rules::rank::{CALLERS_MAX, Rank, Ranks, WEIGHT_MAX};
use crate::rules::rule::{
    Action, Algorithm, Limit, MAX_WAIT, MAX_WAIT_MAX, OnFailure, PROCESSES_MAX, Rule, Scope,
};
use crate::rules::shared::{self, ID_BYTES_MAX};
use crate::rules::tree::Node;

pub(crate) mod limit;
mod parse;
mod scalar;
mod unknown;

pub use parse::domain_of;
use scalar::{duration, line, scalar};

/// Largest number of problems that are told of a document.
const PROBLEMS_MAX: usize = 1_000;

/// Bytes of all paths that a document has for each byte of its text, and those that any document has. A key counts for
/// each descriptor below it.
const PATHS_OF_TEXT: usize = 16;
const PATHS_MIN: usize = 4 << 20;

const LONG_PATHS: &str =
    "key: this one and those above it are too long for so many descriptors; write shorter ones";

impl Rules {
    /// Reads documents, each with the name of its file. All load, or none does.
    ///
    /// # Errors
    ///
    /// The problems of all documents, in their order and by line.
    pub fn load(documents: &[(&str, &str)]) -> Result<Self, Problems> {
        let mut rules = Self::default();
        let (mut problems, mut without) = (Problems::default(), Vec::new());
        for (file, text) in documents {
            let mut reader = Reader {
                file,
                text,
                rules: &mut rules,
                unclear: Vec::new(),
                domain: String::new(),
                problems: Vec::new(),
                without: None,
                paths_left: PATHS_MIN + PATHS_OF_TEXT * text.len(),
            };
            reader.read();
            reader.problems.sort_by_key(|problem| problem.line);
            problems.append(&mut reader.problems);
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

/// Reader of one document.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    rules: &'a mut Rules,
    /// Lines on which maps with unknown fields begin.
    unclear: Vec<u64>,
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

impl Reader<'_> {
    /// Adds the rules of the document to the others.
    fn read(&mut self) {
        match parse::parse(self.text) {
            Ok((form, unknown)) => {
                for ((line, message), begins) in unknown {
                    self.unclear.push(begins);
                    self.problem(line, message);
                }
                self.document(&form);
            }
            Err((line, message)) => self.problem(line, message),
        }
    }

    fn document(&mut self, form: &DocumentForm) {
        let Some((name, line)) = scalar(&form.domain) else {
            let line = form.domain.as_ref().map_or(1, |domain| domain.line);
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
            rejects_unmatched: self.choice("unmatched", &form.unmatched, &["allow", "reject"]) == 1,
            counts_attempts: self.choice("count", &form.count, &["allowed", "attempts"]) == 1,
            has_shared: false,
            dialect: match self.choice("headers", &form.headers, &["draft-11", "next", "legacy"]) {
                1 => Dialect::Next,
                2 => Dialect::Legacy,
                _ => Dialect::Draft11,
            },
        };
        name.clone_into(&mut self.domain);
        let before = self.rules.rules().len();
        let (mut root, forms) = (Node::default(), form.descriptors.as_deref());
        self.level(name, &mut Levels::new(), forms, &mut domain, &mut root);
        domain.root = root;
        let mut own = self.rules.rules().iter().skip(before);
        domain.has_shared = own.any(|rule| rule.scope == Scope::Shared);
        match (
            self.truth("empty", &form.empty),
            domain.key_paths.is_empty(),
        ) {
            (true, false) => {
                let message = "empty: there are rules; remove this field";
                self.problem(self::line(&form.empty).unwrap_or(line), message.to_owned());
            }
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

    fn level<'d>(
        &mut self,
        parent: &str,
        levels: &mut Levels<'d>,
        forms: Option<&'d [Placed<DescriptorForm>]>,
        domain: &mut Domain,
        node: &mut Node,
    ) {
        for form in forms.unwrap_or_default() {
            let line = form.line;
            let form = &form.value;
            let Some((key, key_line)) = scalar(&form.key) else {
                let message = "key: is missing; write the key of the request's entry";
                self.missing(line, message.to_owned());
                continue;
            };
            if key.contains('*') {
                let message = format!("key: {key} has a star; a star is for values only");
                self.problem(key_line, message);
            }
            self.check_text("key", &form.key);
            self.check_text("value", &form.value);
            if key == "remote_address" {
                self.check_address(&form.value);
            }
            let value = scalar(&form.value).map(|(value, _)| value);
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
            self.level(
                &path,
                levels,
                form.descriptors.as_deref(),
                domain,
                &mut child,
            );
            levels.pop();
            if !node.insert(key, value, child) {
                let name = path.get(parent.len() + 1..).unwrap_or_default();
                let message = format!("key: {name} is twice on this level; merge the two");
                self.problem(key_line, message);
            }
        }
    }

    /// Returns the rule of a descriptor; `None` without a limit, or with a problem.
    fn rule(&mut self, path: &str, levels: &Levels<'_>, form: &DescriptorForm) -> Option<Rule> {
        let shadow = self.truth("shadow_mode", &form.shadow_mode);
        let detailed_metric = self.truth("detailed_metric", &form.detailed_metric);
        let action = self.word("action", &form.action).unwrap_or_default();
        let scope = self.word("scope", &form.scope).unwrap_or_default();
        let on_failure = self.word("on_failure", &form.on_failure);
        let what = "a duration up to 1min, such as 5ms";
        let max_wait = self.parsed("max_wait", &form.max_wait, what, |text| {
            duration(text).filter(|wait| *wait <= MAX_WAIT_MAX)
        });
        let cost = self.number("cost", &form.cost, "a whole number above 0", |cost| {
            *cost > 0
        });
        let bans = form.ban.as_ref().and_then(|ban| self.bans(ban));
        let ranks = self.ranks(form);
        let on_failure = on_failure.unwrap_or(match scope {
            Scope::Local => OnFailure::Open,
            Scope::Shared => OnFailure::Safe,
        });
        let processes = self.processes(form, scope, on_failure);
        let Some(limit_form) = &form.rate_limit else {
            self.without_limit(form);
            return None;
        };
        let line = limit_form.line;
        let Some(limit_form) = &limit_form.value else {
            let message = "rate_limit: is empty; write unit and requests_per_unit, or rate";
            self.problem(line, message.to_owned());
            return None;
        };
        let cost = cost.unwrap_or(1);
        let limit = self.limit(limit_form, line, (cost, max_wait), bans);
        if action == Action::Wait
            && let Some(Limit::Counted(counted)) = &limit
            && (counted.algorithm != Algorithm::TokenBucket || scope == Scope::Shared)
        {
            let message = "action: wait is for local rules with algorithm: token_bucket; write it, or leaky_queue";
            self.problem(line, message.to_owned());
        }
        let name = scalar(&limit_form.name).map(|(name, _)| name);
        let replaces = self.replaces(name, limit_form.replaces.as_deref(), line);
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
        if rule.scope != Scope::Shared {
            return;
        }
        let bytes = shared::id_bytes_max(rule);
        if bytes > ID_BYTES_MAX {
            let message = format!(
                "scope: shared needs an id of {bytes} bytes for the domain, keys and values; {ID_BYTES_MAX} are the most"
            );
            self.problem(line, message);
        }
    }

    fn processes(&mut self, form: &DescriptorForm, scope: Scope, on_failure: OnFailure) -> u32 {
        let what = format!("a whole number from 1 to {PROCESSES_MAX}");
        let read = self.parsed("processes", &form.processes, &what, |text| {
            let number = text.parse().ok();
            number.filter(|number| (1..=PROCESSES_MAX).contains(number))
        });
        if let Some(line) = line(&form.processes)
            && (scope, on_failure) != (Scope::Shared, OnFailure::Safe)
        {
            let message = "processes: needs scope: shared and on_failure: safe; remove it";
            self.problem(line, message.to_owned());
        }
        read.unwrap_or(1)
    }

    /// Returns the ranks of callers.
    fn ranks(&mut self, form: &DescriptorForm) -> Ranks {
        let usual = self.rank(&form.priority, &form.weight, Rank::default());
        let forms = form.callers.as_deref().unwrap_or_default();
        if let Some(beyond) = forms.get(CALLERS_MAX) {
            let message = format!("callers: has more than {CALLERS_MAX}; write stars in names");
            self.problem(beyond.line, message);
        }
        let mut listed = Vec::new();
        for Placed { value, line, .. } in forms {
            let rank = self.rank(&value.priority, &value.weight, usual);
            match scalar(&value.name) {
                Some((name, _)) => listed.push((name.to_owned(), rank)),
                None => self.problem(*line, "callers: has an empty name; write it".to_owned()),
            }
        }
        Ranks { usual, listed }
    }

    fn rank(&mut self, priority: &Scalar, weight: &Scalar, usual: Rank) -> Rank {
        let priority = self.number("priority", priority, "a whole number", |_| true);
        let what = "a whole number from 1 to 100";
        let weight = self.number("weight", weight, what, |weight| {
            (1..=WEIGHT_MAX).contains(weight)
        });
        Rank {
            priority: priority.unwrap_or(usual.priority),
            weight: weight.unwrap_or(usual.weight),
        }
    }

    /// Refuses the fields that have no effect in a descriptor without a limit.
    fn without_limit(&mut self, form: &DescriptorForm) {
        let callers = form.callers.as_deref().and_then(|all| all.first());
        let callers = callers.map(|caller| caller.line);
        let fields = [
            ("ban", form.ban.as_ref().map(|ban| ban.line)),
            ("shadow_mode", line(&form.shadow_mode)),
            ("cost", line(&form.cost)),
            ("action", line(&form.action)),
            ("scope", line(&form.scope)),
            ("max_wait", line(&form.max_wait)),
            ("on_failure", line(&form.on_failure)),
            ("processes", line(&form.processes)),
            ("priority", line(&form.priority)),
            ("weight", line(&form.weight)),
            ("callers", callers),
        ];
        for (field, line) in fields {
            if let Some(line) = line {
                let message = format!("{field}: stands without rate_limit; write the limit too");
                self.problem(line, message);
            }
        }
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
                None => {
                    let message = "replaces: has an empty name; write the rule's name";
                    self.problem(line, message.to_owned());
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
    fn check_text(&mut self, field: &str, value: &Scalar) {
        let Some((text, line)) = scalar(value) else {
            return;
        };
        let is_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        let changes = is_number && text.parse::<f64>().is_ok() && text.parse::<i64>().is_err();
        let is_quoted = || {
            value
                .as_ref()
                .is_some_and(|value| self.is_quoted(value.defined))
        };
        if changes && !is_quoted() {
            let message =
                format!("{field}: {text} is a number that may be changed; write \"{text}\"");
            self.problem(line, message);
        }
    }

    /// Returns whether the values of requests are hashed.
    fn hashes(&mut self, form: &DescriptorForm) -> bool {
        let hashes = self.truth("hash", &form.hash);
        if let Some((value, _)) = scalar(&form.value)
            && let (true, false, Some(line)) = (hashes, value.contains('*'), line(&form.hash))
        {
            let message = format!(
                "hash: hides no value that the document has; remove it, or the value {value}"
            );
            self.problem(line, message);
        }
        hashes
    }

    /// Refuses an IPv6 address without a prefix: the address of a client has one.
    fn check_address(&mut self, value: &Scalar) {
        let parsed = scalar(value).map(|(text, line)| (text.parse::<Ipv6Addr>(), line));
        if let Some((Ok(address), line)) = parsed {
            let network = Ipv6Addr::from_bits(address.to_bits() >> 64 << 64);
            let message = format!(
                "value: {address} matches no client, because IPv6 addresses count by prefix; write \"{network}/64\""
            );
            self.problem(line, message);
        }
    }

    /// Tells a missing field of the map at a line, unless it may be an unknown one with a mistake in its name.
    fn missing(&mut self, line: u64, message: String) {
        if !self.unclear.contains(&line) {
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
