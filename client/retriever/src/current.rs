//! The rules in force, and what is known of newer ones.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use doorward_clock::Instant;
use doorward_proto::version_of;
use doorward_rules::Rules;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::RetrieverError;
use crate::files::{self, Content};

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
        };
        (current, in_force, known)
    }

    /// Puts documents in force as a whole.
    ///
    /// # Errors
    ///
    /// If they are unreadable, invalid or refused by their user; then nothing changes.
    pub(crate) async fn take(&self, content: Content) -> Result<(), RetrieverError> {
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
            if let Some(check) = self.check.get() {
                check(&loaded).map_err(RetrieverError::Refused)?;
            }
            self.rules.send_replace(loaded);
            info!(?versions, "rules are in force");
        }
        self.note(|status| (status.versions, status.problem) = (versions, None));
        Ok(())
    }

    /// Notes the reason why newer documents are not in force.
    pub(crate) fn note_problem(&self, problem: String) {
        if self.status.borrow().problem.as_ref() != Some(&problem) {
            warn!(problem, "rules refused or unreachable; those in force stay");
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

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current")
            .field("status", &*self.status.borrow())
            .finish_non_exhaustive()
    }
}
