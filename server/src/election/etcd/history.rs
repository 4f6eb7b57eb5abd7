//! The longest lease by any templates that there ever were, as far as etcd has them, for which those in
//! force give a shorter one.
//!
//! Asked only if the last term says nothing of leases: a server of an older version was the master, or
//! the term cannot be read. The document is read, the last one that was in force, and every version of
//! the history. That may take longer than a lease may go without being renewed, so it stops in time,
//! and goes on from there when it is asked again.

use std::time::Duration;

use doorward_clock::Instant;
use doorward_documents::parse_bytes;
use doorward_engine::templates::Templates;
use doorward_etcd::layout::DocumentKeys;
use doorward_etcd::{Error, EtcdConnection, documents};
use etcd_client::Client;
use tracing::warn;

/// A history that is read step by step.
#[derive(Debug)]
pub(super) struct History {
    /// Absent: templates are in a file, and nothing is known of former ones.
    keys: Option<DocumentKeys>,
    /// The number of the last version that was read.
    read_to: u64,
    longest: Duration,
}

impl History {
    pub(super) fn new(keys: Option<DocumentKeys>) -> Self {
        Self {
            keys,
            read_to: 0,
            longest: Duration::ZERO,
        }
    }

    /// How long the longest lease is that outlasts those by the templates in force. None: it takes longer
    /// than until then; ask again. Nothing is known of former ones if there are no keys.
    pub(super) async fn longer_leases(
        &mut self,
        in_force: &Templates,
        connection: &mut EtcdConnection,
        until: Instant,
    ) -> Result<Option<Duration>, Error> {
        let Some(keys) = self.keys.clone() else {
            return Ok(Some(Duration::ZERO));
        };
        loop {
            if Instant::now() >= until {
                return Ok(None);
            }
            let version = documents::next_version(connection, &keys, self.read_to).await;
            let Some(version) = heeded(version)?.flatten() else {
                break;
            };
            self.read_to = version.number;
            if let Some(document) = version.version.ok().and_then(|it| it.document) {
                self.note(document.into_bytes(), in_force).await;
            }
        }
        for key in [keys.document().to_owned(), keys.good()] {
            let read = connection
                .call("read templates", async move |client: &mut Client| {
                    client.get(key, None).await
                })
                .await;
            let read = heeded(read)?;
            let document = read.and_then(|it| Some(it.kvs().first()?.value().to_vec()));
            self.note(document.unwrap_or_default(), in_force).await;
        }
        // There may be others when it is asked the next time.
        self.read_to = 0;
        Ok(Some(std::mem::take(&mut self.longest)))
    }

    async fn note(&mut self, document: Vec<u8>, in_force: &Templates) {
        // Large documents take time, in which others must go on.
        let parsing = tokio::task::spawn_blocking(move || parse_bytes(&document, ""));
        // What is invalid was never in force.
        if let Ok(Ok(templates)) = parsing.await {
            self.longest = self.longest.max(templates.outlasts(in_force));
        }
    }
}

/// What etcd will never tell is passed over: without it, a node would be without a master for ever.
fn heeded<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error @ Error::Refused { .. }) => {
            warn!(%error, "former templates may not be read: if leases were longer by them, this \
                   server may grant what is still in use");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
