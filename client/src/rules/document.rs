//! The rules of all documents.
//!
//! [`Rules::load`] reads all documents or none. [`Rules::find`] returns the rule of a descriptor.

use std::collections::HashSet;
use std::sync::Arc;

use doorward_limits::headers::Dialect;
use foldhash::fast::FixedState;
use indexmap::{IndexMap, IndexSet};
use smallvec::SmallVec;

use crate::rules::rule::{Rule, Scope, identity};
use crate::rules::tree::{Entry, Node};

/// Largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Descriptors with a rule for which a request allocates nothing.
pub(crate) const INLINE: usize = 4;

/// The rules of all domains.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    domains: IndexMap<String, Domain, FixedState>,
    rules: Vec<Arc<Rule>>,
    /// Domain and file of each document.
    files: Vec<(String, String)>,
}

/// Rules from other files are equal.
impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.domains == other.domains && self.rules == other.rules
    }
}

/// The rules of one domain.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Domain {
    /// Place among all domains.
    pub(crate) number: usize,
    pub(crate) root: Node,
    /// Keys of each level that lead to a limit, without duplicates.
    pub(crate) key_paths: IndexSet<Vec<String>>,
    pub(crate) rejects_unmatched: bool,
    pub(crate) counts_attempts: bool,
    pub(crate) dialect: Dialect,
}

impl Rules {
    /// Returns the JSON Schema of a document.
    pub const fn schema() -> &'static str {
        include_str!("schema.json")
    }

    /// Returns the rule of one descriptor. `None`: no limit, by this descriptor.
    pub fn find(&self, domain: &str, entries: &[Entry<'_>]) -> Option<&Rule> {
        let number = self.domains.get(domain)?.root.find(entries)?;
        self.rules.get(number).map(|rule| &**rule)
    }

    /// Returns the names of all domains, in alphabetical order.
    pub fn domains(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.domains_in_order().collect();
        names.sort_unstable();
        names
    }

    /// Returns the keys of each level that lead to a limit of the domain, without duplicates.
    pub fn key_paths(&self, domain: &str) -> impl Iterator<Item = &[String]> {
        let domain = self.domain(domain).into_iter();
        domain.flat_map(|domain| domain.key_paths.iter().map(Vec::as_slice))
    }

    /// Returns the file of the domain's document.
    pub fn file(&self, domain: &str) -> Option<&str> {
        let file = self.files.iter().find(|(it, _)| it == domain);
        file.map(|(_, file)| &**file)
    }

    /// Returns whether the domain limits anything: it has a rule, or `unmatched: reject`.
    pub fn has_rules(&self, domain: &str) -> bool {
        self.key_paths(domain).next().is_some() || self.rejects_unmatched(domain)
    }

    /// Returns the paths of the rules that `next` lacks, in the order of the documents.
    pub fn gone(&self, next: &Self) -> Vec<&str> {
        let stay: HashSet<_> = next.rules.iter().map(|it| identity(it)).collect();
        let gone = self.rules.iter().filter(|it| !stay.contains(&identity(it)));
        gone.map(|rule| &*rule.path).collect()
    }

    /// Refuses all requests of a domain without a document.
    pub fn refuse(&mut self, domain: &str) {
        let number = self.domains.len();
        let domain = self.domains.entry(domain.to_owned());
        let refused = domain.or_insert_with(|| Domain {
            number,
            ..Domain::default()
        });
        refused.rejects_unmatched = true;
    }

    /// Returns whether the domain rejects requests without a rule: `unmatched: reject`.
    pub fn rejects_unmatched(&self, domain: &str) -> bool {
        self.domain(domain).is_some_and(|it| it.rejects_unmatched)
    }

    /// Returns whether the domain's rules count refused requests too: `count: attempts`.
    pub fn counts_attempts(&self, domain: &str) -> bool {
        self.domain(domain).is_some_and(|it| it.counts_attempts)
    }

    /// Returns whether the domain has rules with this scope.
    pub fn has(&self, scope: Scope, domain: &str) -> bool {
        let mut own = self.rules.iter().filter(|rule| rule.domain == domain);
        own.any(|rule| rule.scope == scope)
    }

    /// Returns all rules, in the order of the documents.
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    pub(crate) fn domain(&self, name: &str) -> Option<&Domain> {
        self.domains.get(name)
    }

    /// Adds a rule. Returns its number.
    pub(crate) fn add(&mut self, rule: Rule) -> usize {
        self.rules.push(Arc::new(rule));
        self.rules.len() - 1
    }

    pub(crate) fn add_domain(&mut self, name: &str, file: &str, domain: Domain) {
        self.domains.insert(name.to_owned(), domain);
        self.files.push((name.to_owned(), file.to_owned()));
    }

    /// Returns the names of all domains by their number.
    pub(crate) fn domains_in_order(&self) -> impl Iterator<Item = &str> {
        self.domains.keys().map(String::as_str)
    }
}

/// Returns the names of the rules that the rules of a request replace.
pub(crate) fn replaced_names<'a>(
    rules: impl Iterator<Item = &'a Arc<Rule>>,
) -> SmallVec<[&'a str; INLINE]> {
    rules
        .flat_map(|rule| rule.replaces.iter().map(String::as_str))
        .collect()
}
