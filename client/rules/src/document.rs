//! Documents: YAML in, rules or problems out.
//!
//! [`Rules::load`] reads all documents or none. [`Rules::find`] returns the rules of a request.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexSet;
use smallvec::SmallVec;

use crate::form::DocumentForm;
use crate::problem::Problem;
use crate::reader::Reader;
use crate::rule::Rule;
use crate::tree::{Entry, Found, Node};

/// Largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Descriptors of a request for which nothing is allocated.
pub(crate) const INLINE: usize = 8;

/// The number of a rule in [`Rules::rules`], and whether another rule replaces it in the request.
pub(crate) type Number = Option<(usize, bool)>;

/// The rules of all domains.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    domains: HashMap<String, Domain>,
    rules: Vec<Arc<Rule>>,
}

/// The rules of one domain.
#[derive(Clone, Debug)]
pub(crate) struct Domain {
    pub(crate) root: Node,
    /// Keys of each level that lead to a limit, without duplicates.
    pub(crate) key_paths: IndexSet<Vec<String>>,
    pub(crate) rejects_unmatched: bool,
    pub(crate) counts_attempts: bool,
}

impl Rules {
    /// Reads documents, each with the name of its file. All load, or none does.
    ///
    /// # Errors
    ///
    /// The problems of all documents, in their order and by line.
    pub fn load(documents: &[(&str, &str)]) -> Result<Self, Vec<Problem>> {
        let mut rules = Self::default();
        let mut problems = Vec::new();
        for (file, text) in documents {
            let mut reader = Reader::new(file, text, &mut rules);
            reader.read();
            let mut found = reader.into_problems();
            found.sort_by_key(|problem| problem.line);
            problems.append(&mut found);
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
        self.rules.get(number).map(|rule| &**rule)
    }

    /// Returns the rules of a request's descriptors, in their order.
    pub fn find(&self, domain: &str, descriptors: &[&[Entry<'_>]]) -> Vec<Option<Found<'_>>> {
        let found = |found: Number| {
            let (number, replaced) = found?;
            let rule = self.rules.get(number)?;
            Some(Found { rule, replaced })
        };
        let numbers = self.find_numbers(domain, descriptors.iter().copied());
        numbers.into_iter().map(found).collect()
    }

    /// Returns the names of all domains, in alphabetical order.
    pub fn domains(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.domains.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// Returns the keys of each level that lead to a limit of the domain, without duplicates.
    pub fn key_paths(&self, domain: &str) -> impl Iterator<Item = &[String]> {
        let domain = self.domain(domain).into_iter();
        domain.flat_map(|domain| domain.key_paths.iter().map(Vec::as_slice))
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

    pub(crate) fn add_domain(&mut self, name: &str, domain: Domain) {
        self.domains.insert(name.to_owned(), domain);
    }

    /// Returns the numbers of the rules, and whether another rule replaces each.
    pub(crate) fn find_numbers<'a>(
        &self,
        domain: &str,
        descriptors: impl Iterator<Item = &'a [Entry<'a>]>,
    ) -> SmallVec<[Number; INLINE]> {
        let root = self.domain(domain).map(|domain| &domain.root);
        let mut numbers: SmallVec<[Number; INLINE]> = descriptors
            .map(|entries| Some((root?.find(entries)?, false)))
            .collect();
        let rule = |number: &Number| number.and_then(|(number, _)| self.rules.get(number));
        let replacing = numbers
            .iter()
            .filter_map(rule)
            .filter(|rule| !rule.replaces.is_empty());
        let names: SmallVec<[&String; INLINE]> =
            replacing.flat_map(|rule| &rule.replaces).collect();
        if !names.is_empty() {
            for it in numbers.iter_mut().flatten() {
                let rule = self.rules.get(it.0).filter(|rule| rule.counted().is_some());
                let name = rule.and_then(|rule| rule.name.as_ref());
                it.1 = name.is_some_and(|name| names.contains(&name));
            }
        }
        numbers
    }
}
