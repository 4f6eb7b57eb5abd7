//! Templates under a key in etcd, which every candidate of the root follows.
//!
//! An invalid document is refused, and the templates in force stay. The last valid document is kept under a key of its
//! own. A server that starts while the document is invalid falls back to it. A server without any valid templates
//! cannot decide, and does not stand for election.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::templates::Templates;
use doorward_etcd::follow::{Followed, KeyEntry, Range};
use doorward_etcd::layout::DocumentKeys;
use doorward_etcd::{Error, EtcdConfig, EtcdConnection};
use etcd_client::{Compare, CompareOp, Txn, TxnOp};
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::status::ServerState;
use crate::stored_place::StoredPlace;
use crate::templates;

/// Time between two reads of the key while no change of it is reported.
const LOOK: Duration = Duration::from_secs(2);

/// Delay before a failed call of etcd is repeated.
const RETRY: Duration = Duration::from_secs(1);

/// Templates in etcd.
#[derive(Debug)]
pub struct EtcdTemplates {
    keys: DocumentKeys,
    etcd: Arc<EtcdConfig>,
    able: watch::Sender<bool>,
}

/// Next step for a document that was read.
enum Left {
    Nothing,
    /// Keep the document for a restart.
    Keep,
    /// Bring the last valid document into force: this one is invalid for the given reason, and no templates are in
    /// force.
    FallBack(String),
}

impl EtcdTemplates {
    /// Returns templates under a key.
    pub fn new(keys: DocumentKeys, etcd: Arc<EtcdConfig>) -> Self {
        Self {
            keys,
            etcd,
            able: watch::Sender::new(false),
        }
    }

    /// Returns the keys of the templates, and a receiver that tells whether any are in force.
    pub fn followed(&self) -> (DocumentKeys, watch::Receiver<bool>) {
        (self.keys.clone(), self.able.subscribe())
    }

    /// Brings every valid version into force as soon as the election lets it. Runs for ever: spawn it.
    pub async fn run(self, state: Arc<ServerState>) {
        let not_asked = "etcd was not asked for them yet".to_owned();
        state.templates_problem.send_replace(Some(not_asked));
        let range = Range::Key(self.keys.document().to_owned());
        let mut followed = Followed::start(Arc::clone(&self.etcd), range, LOOK);
        // The entry of the key, and the next step for it.
        let mut seen: Option<Option<KeyEntry>> = None;
        let mut left = Left::Nothing;
        let mut refused = None;
        loop {
            let Followed { view, problem, .. } = followed.borrow_and_update().clone();
            // The election reports that etcd is away. This problem concerns the document: it is too large to be read,
            // or reading it is not allowed.
            if let Some(problem @ Error::Refused { .. }) = &problem
                && view.is_some()
            {
                if refused.as_ref() != Some(problem) {
                    templates::refuse(&state, problem.to_string());
                    refused = Some(problem.clone());
                }
            } else if let Some(view) = view {
                if refused.take().is_some() {
                    seen = None;
                }
                let now = view.entries.get(self.keys.document()).cloned();
                let is_known = |seen: &Option<KeyEntry>| match (seen, &now) {
                    (Some(seen), Some(now)) => seen.is_as(now),
                    (seen, now) => seen.is_none() && now.is_none(),
                };
                if !seen.as_ref().is_some_and(is_known) {
                    left = self.read(now.as_ref(), &state).await;
                    seen = Some(now);
                }
                let entry = seen.as_ref().and_then(Option::as_ref);
                left = self.go_on(left, entry, &state).await;
            } else if let Some(problem) = problem {
                if refused.as_ref() != Some(&problem) {
                    warn!(%problem, "the templates cannot be read");
                    refused = Some(problem.clone());
                }
                let problem = problem.to_string();
                state.templates_problem.send_replace(Some(problem));
            }
            tokio::select! {
                Ok(()) = followed.changed() => {}
                // The step is repeated after a pause, not in a loop: the document may change meanwhile.
                () = tokio::time::sleep(RETRY), if !matches!(left, Left::Nothing) => {}
                // The follower ends with the process only.
                else => return,
            }
        }
    }

    /// Reads a new document, or notes that it was deleted. Returns the next step.
    async fn read(&self, entry: Option<&KeyEntry>, state: &Arc<ServerState>) -> Left {
        let key = self.keys.document();
        let read = match entry {
            Some(entry) => parse(entry.value.clone(), key).await,
            None => Err(format!(
                "the key {key} does not exist in etcd; write it with: doorward templates apply"
            )),
        };
        match read {
            Ok(templates) => {
                templates::apply(state, templates).await;
                self.able.send_replace(true);
                let place = StoredPlace::Etcd(self.keys.clone(), Arc::clone(&self.etcd));
                let text = entry.map(|entry| entry.value.clone()).unwrap_or_default();
                let state = Arc::clone(state);
                tokio::spawn(async move {
                    let author = place.author_of(&text).await;
                    templates::note(&state, "templates", author);
                });
                Left::Keep
            }
            Err(problem) => {
                templates::refuse(state, problem.clone());
                match *self.able.borrow() {
                    true => Left::Nothing,
                    false => Left::FallBack(problem),
                }
            }
        }
    }

    /// Tries the next step. Returns the step that remains.
    async fn go_on(&self, left: Left, entry: Option<&KeyEntry>, state: &Arc<ServerState>) -> Left {
        match (left, entry) {
            (Left::Keep, Some(entry)) if !self.keep(entry).await => Left::Keep,
            (Left::FallBack(problem), _) => match self.fall_back(state, &problem).await {
                true => Left::Nothing,
                false => Left::FallBack(problem),
            },
            _ => Left::Nothing,
        }
    }

    /// Brings the last valid document into force, if there is one. Returns whether the attempt is final.
    async fn fall_back(&self, state: &Arc<ServerState>, problem: &str) -> bool {
        let key = self.keys.good();
        let mut connection = EtcdConnection::new(Arc::clone(&self.etcd));
        let found = match connection.get("get", key.clone(), None).await {
            Ok(answer) => answer.kvs().first().map(|kv| kv.value().to_vec()),
            Err(error @ Error::Refused { .. }) => {
                warn!(%error, "the last good templates may not be read: this server cannot decide");
                return true;
            }
            Err(error) => {
                debug!(%error, "the last good templates cannot be read yet");
                return false;
            }
        };
        let Some(document) = found else {
            warn!("there are no templates to fall back to: this server cannot decide");
            return true;
        };
        match parse(document, &key).await {
            Ok(templates) => {
                templates::apply(state, templates).await;
                // The document in force is not the one that the operator wrote last.
                let problem = problem.to_owned();
                state.templates_problem.send_replace(Some(problem));
                self.able.send_replace(true);
                warn!("the last valid templates are in force");
            }
            Err(problem) => warn!(problem, "the last good templates are not good any more"),
        }
        true
    }

    /// Keeps a document in force for servers that start while its successor is invalid. Returns whether the attempt is
    /// final.
    async fn keep(&self, entry: &KeyEntry) -> bool {
        let (document, revision) = (self.keys.document().to_owned(), entry.mod_revision);
        let put = TxnOp::put(self.keys.good(), entry.value.clone(), None);
        let txn = Txn::new()
            // A late candidate must not replace a newer document with an older one.
            .when([Compare::mod_revision(document, CompareOp::Equal, revision)])
            .and_then([put]);
        let mut connection = EtcdConnection::new(Arc::clone(&self.etcd));
        match connection.txn("keep templates", txn).await {
            Ok(_) => true,
            Err(error @ Error::Unreachable { .. }) => {
                debug!(%error, "the templates are not kept for a restart yet");
                false
            }
            Err(error) => {
                warn!(%error, "the templates cannot be kept for a restart");
                true
            }
        }
    }
}

async fn parse(document: Vec<u8>, key: &str) -> Result<Templates, String> {
    let parsed = super::parse(document, format!("etcd:{key}")).await;
    parsed.map_err(|error| error.to_string())
}
