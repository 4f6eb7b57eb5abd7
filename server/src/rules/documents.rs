//! Rule documents in force: an invalid text is reported, and the last valid one of its domain stays in force.
//!
//! All rules of a domain go only by a word: `empty: true` in the document, a removal by the rules service, or a file
//! that is gone for longer than a minute. A place that cannot be read takes none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use doorward::rules::source::files::{Content, GONE_FOR};
use doorward::rules::version_of;
use doorward_clock::Instant;
use tracing::{info, warn};

use crate::rules::document::{Document, Found, check_bounds};

/// Documents by domain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Documents {
    /// Whether the place has been read.
    pub is_read: bool,
    /// Documents by domain. The second document of a domain is refused, and has a key of its own.
    pub by_domain: BTreeMap<String, Document>,
    /// Problem of the place as a whole.
    pub problem: Option<String>,
}

impl Documents {
    /// Returns the version in force of each domain.
    pub fn versions_in_force(&self) -> Vec<(String, Option<String>)> {
        let version = |it: &Document| it.version_in_force().map(str::to_owned);
        let all = self.by_domain.iter();
        let all = all.map(|(domain, it)| (domain.clone(), version(it)));
        all.collect()
    }

    /// Returns the problems of the place and of documents, which are not in force as they are. None: there are none.
    pub fn problems(&self) -> Option<String> {
        let of_documents = self.by_domain.values().filter_map(|it| it.problem.as_ref());
        let problems = self.problem.iter().chain(of_documents);
        let problems: Vec<&str> = problems.map(String::as_str).collect();
        (!problems.is_empty()).then(|| problems.join("\n"))
    }

    /// Returns the first time at which the rules of a document that is gone may go. None while the place cannot be read.
    pub fn due(&self) -> Option<Instant> {
        if self.problem.is_some() {
            return None;
        }
        let gone = self.by_domain.values().filter_map(|it| it.gone_at);
        gone.min().map(|since| since + GONE_FOR)
    }

    /// Returns the documents after a read. `removed`: domains whose document was removed by a caller who said so.
    #[must_use]
    pub fn next(&self, found: Content, removed: &BTreeSet<String>, now: Instant) -> Self {
        let found = found.and_then(|found| {
            let bytes = found.values().map(Vec::len).sum();
            check_bounds(found.len(), bytes).map(|()| found)
        });
        let found = match found {
            Ok(found) => found,
            Err(problem) => {
                return Self {
                    problem: Some(problem),
                    ..self.clone()
                };
            }
        };
        let found = found.into_iter().map(|it| self.found(it));
        let mut found: Vec<Arc<Found>> = found.collect();
        // A copy of the file that a domain is in force from displaces none.
        found.sort_by_key(|it| {
            let owned = self.from(&it.source);
            let is_owner = owned.is_some_and(|(_, it)| it.version_in_force().is_some());
            (!is_owner, it.checked.is_err())
        });
        let mut by_domain = BTreeMap::new();
        for it in &found {
            let (domain, document) = self.document(it, &found, &by_domain);
            by_domain.insert(domain, document);
        }
        for (domain, former) in &self.by_domain {
            let stays = !by_domain.contains_key(domain) && !removed.contains(domain);
            if let Some(gone) = former.gone(domain, now).filter(|_| stays) {
                by_domain.insert(domain.clone(), gone);
            }
        }
        Self {
            is_read: true,
            by_domain,
            problem: None,
        }
    }

    /// Returns the document that was read from a file, with its domain.
    fn from(&self, source: &str) -> Option<(&String, &Document)> {
        let mut all = self.by_domain.iter();
        all.find(|(_, it)| it.found.source == source && it.gone_at.is_none())
    }

    /// Checks a text, unless it is the one that is known of its file.
    fn found(&self, (source, bytes): (String, Vec<u8>)) -> Arc<Found> {
        let known = self.from(&source).map(|(_, it)| &it.found);
        match known.filter(|it| it.version == version_of(&bytes)) {
            Some(known) => Arc::clone(known),
            None => Arc::new(Found::new(source, &bytes)),
        }
    }

    /// Returns the document of a text, with its domain. `all` are all texts, and `placed` the documents so far.
    fn document(
        &self,
        found: &Arc<Found>,
        all: &[Arc<Found>],
        placed: &BTreeMap<String, Document>,
    ) -> (String, Document) {
        let owned = self.from(&found.source);
        let is_lost = |domain: &str| all.iter().all(|it| it.domain() != Some(domain));
        let (domain, problem) = match (&found.checked, owned) {
            (Ok((domain, _)), Some((owned, document)))
                if domain != owned && document.has_rules() && is_lost(owned) =>
            {
                let problem = format!(
                    "{}: domain: is {domain} now, and all rules of {owned} would go; write {domain} into another file, \
                     or restart",
                    found.source
                );
                (owned.clone(), Some(problem))
            }
            (Ok((domain, _)), _) => (domain.clone(), None),
            (Err(problem), owned) => {
                let owned = owned.map(|(domain, _)| domain.clone());
                (
                    owned.unwrap_or_else(|| found.meant()),
                    Some(problem.clone()),
                )
            }
        };
        let former = self.by_domain.get(&domain);
        let mut document = Document {
            found: Arc::clone(found),
            in_force: match problem {
                None => Some(Arc::clone(found)),
                Some(_) => former.and_then(|it| it.in_force.clone()),
            },
            problem,
            is_refused: false,
            gone_at: None,
        };
        if let Some(other) = placed.get(&domain) {
            let (source, other) = (&found.source, &other.found.source);
            let twice = format!(
                "{source}: domain: {domain} is in {other} too; put all of its rules into one"
            );
            (document.in_force, document.problem) = (None, Some(twice));
            return (format!("{domain} in {source}"), document);
        }
        document.is_refused =
            document.in_force.is_none() && former.map_or(!self.is_read, |it| it.is_refused);
        (domain, document)
    }

    /// Logs the changes since a former read.
    pub fn tell(&self, former: &Self) {
        match (&self.problem, &former.problem) {
            (Some(problem), old) if old.as_ref() != Some(problem) => {
                warn!(problem, "rules cannot be read; nothing changes");
            }
            (None, Some(_)) => info!("rules can be read again"),
            _ => {}
        }
        if self.is_read && !former.is_read && self.by_domain.is_empty() {
            warn!("there are no rules: requests of Envoy, HTTP and Redis clients get none");
        }
        for (domain, document) in &self.by_domain {
            document.tell(domain, former.by_domain.get(domain));
        }
        for (domain, gone) in &former.by_domain {
            if !self.by_domain.contains_key(domain) && (gone.has_rules() || gone.is_refused) {
                warn!(domain, "rules are removed: requests of the domain pass");
            }
        }
    }
}

#[cfg(test)]
mod tests;
