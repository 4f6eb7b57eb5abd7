//! The rules in force, and what is known of newer ones.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_clock::Instant;
use doorward_proto::version_of;
use doorward_rules::Rules;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::RetrieverError;
use crate::files::{self, Content};

/// Versions in force, and the problem with newer ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Version of each document in force, by its file or domain.
    pub versions: BTreeMap<String, String>,
    /// Reason why the newest documents are not in force. None: they are.
    pub problem: Option<String>,
    /// Time since this last changed.
    pub since: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct Known {
    /// None: nothing is loaded yet.
    versions: Option<BTreeMap<String, String>>,
    problem: Option<String>,
    changed_at: Option<Instant>,
}

impl Known {
    pub(crate) fn is_loaded(&self) -> bool {
        self.versions.is_some()
    }

    pub(crate) fn status(&self) -> Status {
        Status {
            versions: self.versions.clone().unwrap_or_default(),
            problem: self.problem.clone(),
            since: self.changed_at.map(Instant::elapsed).unwrap_or_default(),
        }
    }
}

/// Puts rules in force.
#[derive(Debug)]
pub(crate) struct Current {
    rules: watch::Sender<Rules>,
    known: watch::Sender<Known>,
}

impl Current {
    pub(crate) fn new() -> (Self, watch::Receiver<Rules>, watch::Receiver<Known>) {
        let (rules, in_force) = watch::channel(Rules::default());
        let (known, reader) = watch::channel(Known::default());
        (Self { rules, known }, in_force, reader)
    }

    /// Puts documents in force as a whole.
    ///
    /// # Errors
    ///
    /// If they are unreadable or invalid; then nothing changes.
    pub(crate) async fn take(&self, content: Content) -> Result<(), RetrieverError> {
        let texts = content.map_err(RetrieverError::Unreadable)?;
        let named = texts
            .iter()
            .map(|(name, text)| (name.clone(), version_of(text)));
        let versions: BTreeMap<String, String> = named.collect();
        if self.known.borrow().versions.as_ref() != Some(&versions) {
            // Large documents take time, in which the service must go on.
            let load = move || files::load(texts.iter().map(|(name, text)| (&**name, &**text)));
            let loaded = tokio::task::spawn_blocking(load).await;
            let failed =
                |error: tokio::task::JoinError| RetrieverError::Unreadable(error.to_string());
            let rules = loaded.map_err(failed)?.map_err(RetrieverError::Invalid)?;
            self.rules.send_replace(rules);
            info!(?versions, "rules are in force");
        } else if self.known.borrow().problem.is_none() {
            return Ok(());
        }
        self.known.send_replace(Known {
            versions: Some(versions),
            problem: None,
            changed_at: Some(Instant::now()),
        });
        Ok(())
    }

    /// Notes the reason why newer documents are not in force.
    pub(crate) fn note_problem(&self, problem: String) {
        self.known.send_if_modified(|known| {
            let is_news = known.problem.as_ref() != Some(&problem);
            if is_news {
                warn!(problem, "rules refused or unreachable; those in force stay");
                known.problem = Some(problem);
                known.changed_at = Some(Instant::now());
            }
            is_news
        });
    }
}
