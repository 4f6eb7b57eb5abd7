//! One rule document: its stored text, and the text in force.
//!
//! The domain is the one that the text says, whatever the name of its file.

use std::sync::Arc;

use bytes::Bytes;
use doorward::rules::source::files::{self, GONE_FOR};
use doorward::rules::version_of;
use doorward::rules::{Problem, Problems, Rules, domain_of};
use doorward_clock::Instant;
use doorward_proto::admin::v1::{RuleDocument, RulesInForce, WatchRulesResponse};
use prost::Message as _;
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

/// A document. Copies share its texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Stored text.
    pub(crate) found: Arc<Found>,
    /// Problem of the stored text, which is not in force. None: it is.
    pub problem: Option<String>,
    /// Text in force: the stored one, or an earlier one. None: there is none.
    pub(crate) in_force: Option<Arc<Found>>,
    /// Whether requests of the domain are refused: no text was valid since the start.
    pub is_refused: bool,
    /// Time since when the document is gone. None: it is there.
    pub(crate) gone_at: Option<Instant>,
}

/// A text that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// File, or end of the key.
    pub(crate) source: String,
    pub(crate) version: String,
    /// Invalid UTF-8 is replaced.
    pub(crate) text: String,
    /// Domain of the rules, and whether there are any; or the problem.
    pub(super) checked: Result<(String, bool), String>,
    /// A valid text, as an answer of a watch.
    encoded: Bytes,
}

impl Found {
    /// Checks a text.
    pub(super) fn new(source: String, bytes: &[u8]) -> Self {
        let version = version_of(bytes);
        let text = String::from_utf8_lossy(bytes).into_owned();
        let checked = match load(&source, bytes) {
            Ok((domain, rules)) => Ok((domain.clone(), rules.has_rules(&domain))),
            Err(problems) => Err(in_short(&problems)),
        };
        let encoded = checked
            .as_ref()
            .map(|(domain, _)| encoded(domain, Some(&version), Some(&text)));
        Self {
            source,
            encoded: encoded.unwrap_or_default(),
            version,
            text,
            checked,
        }
    }

    /// Returns the domain of a valid text.
    pub(super) fn domain(&self) -> Option<&str> {
        let checked = self.checked.as_ref().ok();
        checked.map(|(domain, _)| &**domain)
    }

    /// Returns the domain that an invalid text means, as far as it is known.
    pub(super) fn meant(&self) -> String {
        domain_of(&self.text).unwrap_or_else(|| stem(&self.source).to_owned())
    }

    fn rules(&self) -> Rules {
        files::load([(&*self.source, self.text.as_bytes())]).unwrap_or_default()
    }
}

impl Document {
    /// Returns the document after its file has gone, if its rules stay in force, or its requests refused.
    pub(super) fn gone(&self, domain: &str, now: Instant) -> Option<Self> {
        let gone_at = self.gone_at.unwrap_or(now);
        let counts = self.has_rules() || self.is_refused;
        let stays = counts && now - gone_at < GONE_FOR;
        let (what, until) = match self.is_refused {
            true => ("requests of", "are refused for a minute more"),
            false => ("the rules of", "stay for a minute"),
        };
        let source = &self.found.source;
        stays.then(|| Self {
            problem: Some(format!("{source}: is gone; {what} {domain} {until}")),
            gone_at: Some(gone_at),
            ..self.clone()
        })
    }

    /// Returns whether there are rules in force.
    pub(super) fn has_rules(&self) -> bool {
        let checked = self.in_force.as_ref().map(|it| &it.checked);
        matches!(checked, Some(Ok((_, true))))
    }

    /// Returns the version in force.
    pub fn version_in_force(&self) -> Option<&str> {
        self.in_force.as_ref().map(|it| &*it.version)
    }

    /// Returns [`RulesInForce`], as the only document of a [`WatchRulesResponse`].
    pub fn encoded(&self, domain: &str) -> Bytes {
        let found = self.in_force.as_ref();
        found.map_or_else(|| encoded(domain, None, None), |it| it.encoded.clone())
    }

    /// Returns the stored document.
    pub fn stored(&self, domain: &str, with_text: bool) -> RuleDocument {
        RuleDocument {
            domain: domain.to_owned(),
            version: self.found.version.clone(),
            text: with_text.then(|| self.found.text.clone()),
            problem: self.problem.clone(),
            version_in_force: self.version_in_force().map(str::to_owned),
        }
    }

    /// Logs the changes since a former read.
    pub(super) fn tell(&self, domain: &str, former: Option<&Self>) {
        let version = &self.found.version;
        let problem_before = former.and_then(|it| it.problem.as_ref());
        let problem = self.problem.as_ref();
        if let Some(problem) = problem.filter(|it| problem_before != Some(it)) {
            let earlier = match self.in_force {
                Some(_) => "the last valid ones stay in force",
                None => "there are no earlier ones",
            };
            let is_refused = self.is_refused;
            warn!(domain, problem, is_refused, "rules refused; {earlier}");
        } else if self.problem.is_none() && problem_before.is_some() {
            info!(domain, version, "rules are repaired");
        }
        let before = former.and_then(|it| it.in_force.as_ref());
        if let Some(after) = self.in_force.as_ref().filter(|it| before != Some(it)) {
            info!(domain, version, "rules are in force");
            let before = before.map(|it| it.rules()).unwrap_or_default();
            files::tell_gone(&before, &after.rules());
        }
    }
}

fn encoded(domain: &str, version: Option<&String>, text: Option<&String>) -> Bytes {
    let document = RulesInForce {
        domain: domain.to_owned(),
        version: version.cloned(),
        text: text.cloned(),
    };
    let documents = vec![document];
    WatchRulesResponse { documents }.encode_to_vec().into()
}

/// Returns the name of a file without its ending.
fn stem(source: &str) -> &str {
    let name = source.rsplit('/').next().unwrap_or(source);
    let yml = || name.strip_suffix(".yml");
    name.strip_suffix(".yaml").or_else(yml).unwrap_or(name)
}

/// Checks the number and size of documents.
///
/// # Errors
///
/// If there are too many, or they are too large.
pub fn check_bounds(count: usize, bytes: usize) -> Result<(), String> {
    if count > DOCUMENTS_MAX || bytes > TEXTS_BYTES_MAX {
        return Err(format!(
            "there are {count} documents of {bytes} bytes; remove some: at most {DOCUMENTS_MAX} of {TEXTS_BYTES_MAX} \
             bytes together are served"
        ));
    }
    Ok(())
}

/// Checks the name of a domain: that of a new document is also that of a file, or the end of a key.
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

/// Checks a document that a caller writes for a domain.
///
/// # Errors
///
/// All problems.
pub fn check(domain: &str, bytes: &[u8]) -> Result<(), Problems> {
    let source = format!("{domain}.yaml");
    check_domain(domain).map_err(|it| problem(&source, it))?;
    let (says, _) = load(&source, bytes)?;
    if says == domain {
        return Ok(());
    }
    let message = format!("domain: is {says:?}; give {domain:?}, as the document is named");
    Err(problem(&source, message))
}

/// Loads a document of any domain.
fn load(source: &str, bytes: &[u8]) -> Result<(String, Rules), Problems> {
    check_bounds(1, bytes.len()).map_err(|it| problem(source, it))?;
    let rules = files::load([(source, bytes)])?;
    let domain = rules.domains().concat();
    check_domain(&domain).map_err(|it| problem(source, it))?;
    Ok((domain, rules))
}

fn problem(source: &str, message: String) -> Problems {
    let (file, line) = (source.to_owned(), 1);
    Problems(vec![Problem {
        file,
        line,
        message,
    }])
}

/// Returns problems as one text, within the bound.
fn in_short(problems: &Problems) -> String {
    let mut text = problems.to_string();
    text.truncate(text.floor_char_boundary(PROBLEM_BYTES_MAX));
    text
}
