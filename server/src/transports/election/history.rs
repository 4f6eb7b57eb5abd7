//! The longest lease of any earlier templates in etcd, for resources that the templates in force give a shorter one.
//!
//! A candidate asks for it only if the last term does not tell the lease lengths: a server of an older version was the
//! master, or the term cannot be read. This reads the document, the last valid document, and every version of the
//! history. That may take longer than the candidate's lease in etcd may go without a renewal. So reading stops in time,
//! and continues from there at the next request.

use std::time::Duration;

use doorward_clock::Instant;
use doorward_documents::parse_bytes;
use doorward_engine::templates::Templates;
use doorward_etcd::layout::DocumentKeys;
use doorward_etcd::{Error, EtcdConnection, documents};
use tracing::warn;

/// A history that is read step by step.
#[derive(Debug)]
pub(super) struct History {
    /// Keys of the templates. Absent: templates are in a file, and earlier versions are unknown.
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

    /// Returns the length of the longest lease that outlasts those of the templates in force. None: reading takes
    /// beyond `until`; ask again. Zero without keys: earlier templates are unknown.
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
            let read = heeded(connection.get("read templates", key, None).await)?;
            let document = read.and_then(|it| Some(it.kvs().first()?.value().to_vec()));
            self.note(document.unwrap_or_default(), in_force).await;
        }
        // There may be other versions at the next request.
        self.read_to = 0;
        Ok(Some(std::mem::take(&mut self.longest)))
    }

    async fn note(&mut self, document: Vec<u8>, in_force: &Templates) {
        // Parsing a large document takes time, in which other tasks must run.
        let parsing = tokio::task::spawn_blocking(move || parse_bytes(&document, ""));
        // Invalid templates were never in force.
        if let Ok(Ok(templates)) = parsing.await {
            self.longest = self.longest.max(templates.outlasts(in_force));
        }
    }
}

/// Returns an answer, or None if etcd refuses it. A refusal is final, and must not leave the node without a master for
/// ever.
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
