//! Rule documents in force: an invalid text is reported, and the last valid one of its domain stays in force.
//!
//! A document that goes away takes its rules out of force. A place that cannot be read takes none.

use std::collections::BTreeMap;

use doorward_proto::admin::v1::{RuleDocument, RulesInForce};
use doorward_proto::version_of;
use doorward_retriever::files::{self, Content};
use doorward_rules::Problem;
use tracing::{info, warn};

/// Largest number of documents.
pub const DOCUMENTS_MAX: usize = files::FILES_MAX;

/// Largest size of all documents, in bytes: they are one message of a watch.
pub const TEXTS_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Largest size of a domain's name, in bytes.
const DOMAIN_BYTES_MAX: usize = 100;

/// Largest number of problems that are told of one text.
pub const PROBLEMS_MAX: usize = 100;

/// Largest size of the problems of a stored document, in bytes.
const PROBLEM_BYTES_MAX: usize = 2_048;

/// Documents by domain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Documents {
    /// Whether the place has been read.
    pub is_read: bool,
    /// Documents by domain.
    pub by_domain: BTreeMap<String, Document>,
    /// Problem of the place as a whole.
    pub problem: Option<String>,
}

/// A document.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Stored document with its text. Invalid UTF-8 is replaced.
    pub stored: RuleDocument,
    /// Text in force: the stored one, or an earlier one.
    pub in_force: RulesInForce,
}

impl Documents {
    /// Returns the version in force of each domain.
    pub fn versions_in_force(&self) -> Vec<(String, Option<String>)> {
        let all = self.by_domain.iter();
        all.map(|(domain, it)| (domain.clone(), it.in_force.version.clone()))
            .collect()
    }

    /// Returns whether the place, or a document in it, is not in force as it is.
    pub fn has_problem(&self) -> bool {
        let mut all = self.by_domain.values();
        self.problem.is_some() || all.any(|it| it.stored.problem.is_some())
    }

    /// Returns the documents after a read, with the text of each domain, and logs the changes.
    pub fn next(&self, found: Content) -> Self {
        let found = match found.and_then(bounded) {
            Ok(found) => found,
            Err(problem) => {
                if self.problem.as_ref() != Some(&problem) {
                    warn!(problem, "rules cannot be read; those in force stay");
                }
                let problem = Some(problem);
                return Self {
                    problem,
                    ..self.clone()
                };
            }
        };
        for domain in self.by_domain.keys() {
            if !found.contains_key(domain) {
                info!(domain, "rules are removed");
            }
        }
        let documents = found.into_iter().map(|(domain, text)| {
            let former = self.by_domain.get(&domain);
            let document = Document::new(&domain, &text, former);
            (domain, document)
        });
        Self {
            is_read: true,
            by_domain: documents.collect(),
            problem: None,
        }
    }
}

impl Document {
    fn new(domain: &str, bytes: &[u8], former: Option<&Self>) -> Self {
        let version = version_of(bytes);
        if let Some(former) = former.filter(|it| it.stored.version == version) {
            return former.clone();
        }
        let (domain, text) = (
            domain.to_owned(),
            String::from_utf8_lossy(bytes).into_owned(),
        );
        let problem = check(&domain, bytes)
            .err()
            .map(|problems| in_short(&problems));
        let mut in_force = RulesInForce {
            domain: domain.clone(),
            ..RulesInForce::default()
        };
        if let Some(problem) = &problem {
            warn!(
                domain,
                problem, "rules refused; the last valid ones stay in force"
            );
            in_force = former.map_or(in_force, |it| it.in_force.clone());
        } else {
            info!(domain, version, "rules are in force");
            in_force.version = Some(version.clone());
            in_force.text = Some(text.clone());
        }
        let version_in_force = in_force.version.clone();
        let stored = RuleDocument {
            domain,
            version,
            text: Some(text),
            problem,
            version_in_force,
        };
        Self { stored, in_force }
    }
}

fn bounded(found: BTreeMap<String, Vec<u8>>) -> Content {
    let (count, bytes) = (found.len(), found.values().map(Vec::len).sum::<usize>());
    if count > DOCUMENTS_MAX || bytes > TEXTS_BYTES_MAX {
        return Err(format!(
            "there are {count} documents of {bytes} bytes; remove some: at most {DOCUMENTS_MAX} of {TEXTS_BYTES_MAX} \
             bytes together are served"
        ));
    }
    Ok(found)
}

/// Checks the name of a domain: it is also that of a file, or the end of a key.
///
/// # Errors
///
/// If it is none, with the remedy.
pub fn check_domain(domain: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_short = (1..=DOMAIN_BYTES_MAX).contains(&domain.len());
    if is_short && domain.chars().all(is_allowed) && !domain.starts_with('.') {
        return Ok(());
    }
    Err(format!(
        "the domain of a stored document has 1 to {DOMAIN_BYTES_MAX} letters, digits, \".\", \"_\" and \"-\", and does \
         not begin with \".\"; rename it"
    ))
}

/// Checks a document of a domain.
///
/// # Errors
///
/// All problems.
pub fn check(domain: &str, bytes: &[u8]) -> Result<(), Vec<Problem>> {
    let file = format!("{domain}.yaml");
    let problem = |message| {
        vec![Problem {
            file: file.clone(),
            line: 1,
            message,
        }]
    };
    check_domain(domain).map_err(problem)?;
    let rules = files::load([(&*file, bytes)])?;
    let domains = rules.domains();
    if domains == [domain] {
        return Ok(());
    }
    let domains = domains.join(", ");
    Err(problem(format!(
        "domain: is {domains:?}; give {domain:?}, as the document is named"
    )))
}

/// Returns problems as one text, within the bound.
fn in_short(problems: &[Problem]) -> String {
    let mut text = files::lines(problems);
    text.truncate(text.floor_char_boundary(PROBLEM_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(domain: &str, rate: &str) -> Vec<u8> {
        let rule = format!("descriptors: [{{key: user, rate_limit: {{rate: {rate}}}}}]");
        format!("domain: {domain}\n{rule}\n").into_bytes()
    }

    fn found(texts: &[(&str, Vec<u8>)]) -> Content {
        let texts = texts.iter().cloned();
        Ok(texts.map(|(name, text)| (name.to_owned(), text)).collect())
    }

    #[test]
    fn an_invalid_text_is_reported_and_the_last_valid_one_stays_in_force() {
        let first = Documents::default().next(found(&[("a", text("a", "1/s"))]));
        let good = first.by_domain["a"].in_force.clone();
        assert!(good.text.is_some());
        for (bad, problem) in [
            (text("a", "much"), "a.yaml:2: "),
            (text("b", "1/s"), "a.yaml:1: domain: is \"b\"; give \"a\""),
            (vec![b'\n', 0xff], "a.yaml:2: the text is not UTF-8"),
            (Vec::new(), "a.yaml:1: "),
        ] {
            let next = first.next(found(&[("a", bad.clone())]));
            let document = &next.by_domain["a"];
            let told = document.stored.problem();
            assert!(told.starts_with(problem), "{told}");
            assert_eq!(document.stored.version, version_of(&bad));
            assert_eq!(document.in_force, good);
            assert_eq!(next.next(found(&[("a", text("a", "1/s"))])), first);
        }
        assert!(first.next(found(&[])).by_domain.is_empty());
        let unread = first.next(Err("gone".to_owned()));
        assert_eq!(unread.by_domain, first.by_domain);
        assert_eq!(unread.problem.as_deref(), Some("gone"));
    }

    #[test]
    fn a_name_that_is_no_file_name_is_invalid() {
        for (name, is_valid) in [
            ("login", true),
            ("a.b_c-1", true),
            ("", false),
            (".a", false),
            ("a/b", false),
            ("ä", false),
            (&"a".repeat(DOMAIN_BYTES_MAX + 1), false),
        ] {
            assert_eq!(check_domain(name).is_ok(), is_valid, "{name:?}");
        }
    }

    #[test]
    fn documents_beyond_the_bounds_change_nothing() {
        let first = Documents::default().next(found(&[("a", text("a", "1/s"))]));
        let names: Vec<String> = (0..=DOCUMENTS_MAX).map(|n| format!("d{n}")).collect();
        let named = names.iter().map(|name| (&**name, text(name, "1/s")));
        let many: Vec<_> = named.collect();
        let large = [("a", vec![b'\n'; TEXTS_BYTES_MAX + 1])];
        for beyond in [found(&many), found(&large)] {
            let next = first.next(beyond);
            assert_eq!(next.by_domain, first.by_domain);
            assert!(next.problem.is_some());
        }
        assert_eq!(first.next(found(&many[1..])).by_domain.len(), DOCUMENTS_MAX);
    }
}
