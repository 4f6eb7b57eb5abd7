//! The rules in force, and what is known of newer ones.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use doorward_clock::Instant;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::rules::Rules;
use crate::rules::source::RetrieverError;
use crate::rules::source::files::{self, Content, GONE_FOR};
use crate::rules::version_of;

/// Versions in force, and the problem with newer ones.
#[derive(Clone, Debug)]
pub struct Status {
    /// Version of each document in force, by its file or domain.
    pub versions: BTreeMap<String, String>,
    /// Reason why the newest documents are not in force. None: they are.
    pub problem: Option<String>,
    changed_at: Instant,
}

impl Status {
    /// Returns the time since the versions or the problem last changed.
    pub fn since(&self) -> Duration {
        self.changed_at.elapsed()
    }
}

/// Check of the user of rules; an error refuses them.
pub(crate) type Check = Box<dyn Fn(&Rules) -> Result<(), String> + Send + Sync>;

/// Puts rules in force.
pub(crate) struct Current {
    rules: watch::Sender<Rules>,
    check: Arc<OnceLock<Check>>,
    status: watch::Sender<Status>,
    /// Domains with rules whose document is gone, and since when.
    gone: BTreeMap<String, Instant>,
}

impl Current {
    pub(crate) fn new(
        check: Arc<OnceLock<Check>>,
    ) -> (Self, watch::Receiver<Rules>, watch::Receiver<Status>) {
        let (rules, in_force) = watch::channel(Rules::default());
        let (status, known) = watch::channel(Status {
            versions: BTreeMap::new(),
            problem: None,
            changed_at: Instant::now(),
        });
        let current = Self {
            rules,
            check,
            status,
            gone: BTreeMap::new(),
        };
        (current, in_force, known)
    }

    /// Puts documents in force as a whole.
    ///
    /// # Errors
    ///
    /// If they are unreadable, invalid or refused by their user, or all rules of a domain would go without a word; then
    /// nothing changes.
    pub(crate) async fn take(
        &mut self,
        content: Content,
        now: Instant,
    ) -> Result<(), RetrieverError> {
        let taken = self.put(content, now).await;
        if !matches!(taken, Ok(()) | Err(RetrieverError::Gone(_))) {
            // Their minute begins anew with documents that can be used: a time in the past would be due for ever.
            self.gone.clear();
        }
        taken
    }

    async fn put(&mut self, content: Content, now: Instant) -> Result<(), RetrieverError> {
        let texts = content.map_err(RetrieverError::Unreadable)?;
        let named = texts
            .iter()
            .map(|(name, text)| (name.clone(), version_of(text)));
        let versions: BTreeMap<String, String> = named.collect();
        if versions.is_empty() {
            let problem = "there is no document of rules".to_owned();
            return Err(RetrieverError::Unreadable(problem));
        }
        if self.status.borrow().versions != versions {
            // Large documents take time, in which the service must go on.
            let load = move || files::load(texts.iter().map(|(name, text)| (&**name, &**text)));
            let loaded = tokio::task::spawn_blocking(load).await;
            let loaded = loaded.map_err(|it| RetrieverError::Unreadable(it.to_string()))?;
            let loaded = loaded.map_err(RetrieverError::Invalid)?;
            self.gone = gone(&self.rules.borrow(), &loaded, &versions, &self.gone, now);
            if self.due().is_some_and(|due| now < due) {
                let domains: Vec<&str> = self.gone.keys().map(String::as_str).collect();
                return Err(RetrieverError::Gone(domains.join(", ")));
            }
            if let Some(check) = self.check.get() {
                check(&loaded).map_err(RetrieverError::Refused)?;
            }
            files::tell_gone(&self.rules.borrow(), &loaded);
            self.rules.send_replace(loaded);
            info!(?versions, "rules are in force");
        }
        self.gone.clear();
        if self.status.borrow().problem.is_some() {
            info!("rules are repaired");
        }
        self.note(|status| (status.versions, status.problem) = (versions, None));
        Ok(())
    }

    /// Returns the time at which rules may go whose document is gone. None: there are none.
    pub(crate) fn due(&self) -> Option<Instant> {
        let since = self.gone.values().max()?;
        Some(*since + GONE_FOR)
    }

    /// Notes the reason why newer documents are not in force.
    pub(crate) fn note_problem(&self, problem: String) {
        if self.status.borrow().problem.as_ref() != Some(&problem) {
            warn!(problem, "rules refused or unreachable; nothing changes");
            self.note(|status| status.problem = Some(problem));
        }
    }

    fn note(&self, change: impl FnOnce(&mut Status)) {
        self.status.send_modify(|status| {
            change(status);
            status.changed_at = Instant::now();
        });
    }
}

/// Returns the domains of rules in force that have no document, and since when. A domain whose file has another one now
/// is gone as of now: it was renamed, perhaps by mistake.
fn gone(
    in_force: &Rules,
    next: &Rules,
    versions: &BTreeMap<String, String>,
    former: &BTreeMap<String, Instant>,
    now: Instant,
) -> BTreeMap<String, Instant> {
    let domains = in_force.domains().into_iter();
    let gone = domains.filter(|it| in_force.has_rules(it) && next.file(it).is_none());
    let since = gone.map(|domain| {
        let file = in_force.file(domain).unwrap_or_default();
        let since = former.get(domain).filter(|_| !versions.contains_key(file));
        (domain.to_owned(), since.copied().unwrap_or(now))
    });
    since.collect()
}

debug_by_name!(Current);

#[cfg(test)]
mod tests {
    use super::*;

    fn files(texts: &[(&str, &str)]) -> Content {
        let files = texts.iter().map(|(file, domain)| {
            let text = match domain.strip_suffix(" without rules") {
                Some(domain) => format!("domain: {domain}\nempty: true\n"),
                None => {
                    format!("domain: {domain}\ndescriptors: [{{key: user, rate_limit: {{rate: 1/s}}}}]\n")
                }
            };
            ((*file).to_owned(), text.into_bytes())
        });
        Ok(files.collect())
    }

    /// All rules of a domain go only if its document says so, or is gone for longer than a minute.
    #[tokio::test]
    async fn rules_do_not_go_by_accident() {
        let second = Duration::from_secs(1);
        let both = [("a.yaml", "a"), ("b.yaml", "b")];
        for (texts, goes_at_once, goes_later) in [
            (&[("a.yaml", "a")][..], false, true),
            (&[("a.yaml", "a"), ("b.yaml", "c")], false, false),
            (&[("a.yaml", "a"), ("c.yaml", "b")], true, true),
            (&[("a.yaml", "b"), ("b.yaml", "a")], true, true),
            (
                &[("a.yaml", "a"), ("b.yaml", "b without rules")],
                true,
                true,
            ),
            (&[], false, false),
        ] {
            let start = Instant::now();
            let (mut current, rules, _) = Current::new(Arc::default());
            current.take(files(&both), start).await.unwrap();
            let mut take =
                async |texts: &[_], at| current.take(files(texts), start + at).await.is_ok();
            assert_eq!(take(texts, second).await, goes_at_once, "{texts:?}");
            assert_eq!(take(texts, 60 * second).await, goes_at_once, "{texts:?}");
            assert_eq!(take(texts, 61 * second).await, goes_later, "{texts:?}");
            let is_there = rules.borrow().has_rules("b");
            assert_eq!(
                is_there,
                !goes_later || texts.iter().any(|it| it.1 == "b"),
                "{texts:?}"
            );
            // A document that comes back in time is as if it had never been gone.
            assert!(take(&both, 62 * second).await);
            assert_eq!(take(texts, 63 * second).await, goes_at_once, "{texts:?}");
        }
    }

    /// Otherwise a follower would look at the same documents for ever, and never read them again.
    #[tokio::test]
    async fn documents_that_cannot_be_used_are_due_at_no_time() {
        let now = Instant::now();
        for unusable in [files(&[("a.yaml", "")]), files(&[]), Err("gone".to_owned())] {
            let (mut current, ..) = Current::new(Arc::default());
            let both = files(&[("a.yaml", "a"), ("b.yaml", "b")]);
            current.take(both, now).await.unwrap();
            let one = current.take(files(&[("a.yaml", "a")]), now).await;
            assert!(matches!(one, Err(RetrieverError::Gone(_))));
            assert_eq!(current.due(), Some(now + GONE_FOR));
            assert!(current.take(unusable, now).await.is_err());
            assert_eq!(current.due(), None);
        }
    }
}
