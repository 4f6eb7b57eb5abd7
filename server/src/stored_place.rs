//! The place of a document that operators change through this server: a file, or a key in etcd with a history.
//!
//! A write succeeds only on top of the version that its author has seen. A file has no history. Two servers with the
//! same file do not see each other's writes in the instant between the comparison and the write.
//!
//! Reads and writes have a turn, so that there is one at a time, and run on a thread of their own, to their end even if
//! the caller has gone: a disk may be slow, and futures of `doorward_etcd::documents` are bound to their thread.

use std::fmt::{self, Display};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use doorward::rules::source::files::FILE_BYTES_MAX;
use doorward::rules::version_of;
use doorward_door::tasks::joined;
use doorward_etcd::documents::{
    self, DocumentEdit, Recorded, StoredDocument, VersionKind, WriteError,
};
use doorward_etcd::layout::DocumentKeys;
use doorward_etcd::{DocumentPlace, EtcdConfig, EtcdConnection};
use doorward_files::{Replacement, read_regular};
use etcd_client::{Compare, CompareOp, Txn, TxnOp};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tonic::Status;

use crate::clock;

/// Size of texts after which a page of a history ends, in bytes.
const HISTORY_BYTES: usize = 1024 * 1024;

/// The place of a document.
#[derive(Clone, Debug)]
pub enum StoredPlace {
    /// File.
    File(PathBuf),
    /// Key in etcd.
    Etcd(DocumentKeys, Arc<EtcdConfig>),
}

impl fmt::Display for StoredPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Etcd(keys, _) => DocumentPlace::Etcd(keys.clone()).fmt(f),
        }
    }
}

/// A change that an operator makes.
#[derive(Clone, Debug, Default)]
pub struct DocumentChange {
    /// The whole new document. None: it is removed.
    pub text: Option<String>,
    /// Version on top of which it is written. Empty: there is no document.
    pub seen_version: String,
    /// Name of the author.
    pub who: String,
    /// Reason for the change.
    pub why: Option<String>,
}

type Turn = OwnedMutexGuard<()>;

/// Returns who made a change, and why, as charts tell it.
pub(crate) fn author(who: &str, why: Option<&str>) -> String {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!("by {who}{why}")
}

impl StoredPlace {
    /// Returns the place that a flag names.
    ///
    /// # Errors
    ///
    /// If it is in etcd, and there is none.
    pub fn of(
        flag: &str,
        place: DocumentPlace,
        etcd: Option<Arc<EtcdConfig>>,
    ) -> Result<Self, String> {
        match (place, etcd) {
            (DocumentPlace::File(path), _) => Ok(Self::File(path)),
            (DocumentPlace::Etcd(keys), Some(etcd)) => Ok(Self::Etcd(keys, etcd)),
            (DocumentPlace::Etcd(_), None) => Err(format!(
                "{flag} names a key in etcd, but not where etcd is: see --etcd-endpoints"
            )),
        }
    }

    /// Returns the document. None: there is none.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub async fn read(&self, turn: &Arc<Mutex<()>>) -> Result<Option<Vec<u8>>, Status> {
        let (turn, place) = (Arc::clone(turn).lock_owned().await, self.clone());
        let read = apart(turn, move |runtime| match place {
            Self::File(path) => read_file(&path),
            Self::Etcd(keys, config) => {
                let mut connection = EtcdConnection::new(config);
                let read = documents::read(&mut connection, &keys);
                let stored = runtime.block_on(read).map_err(unreachable)?;
                Ok(stored.document)
            }
        });
        read.await.map(|(_turn, document)| document)
    }

    /// Replaces or removes the document. Returns its number in the history, if there is one.
    ///
    /// # Errors
    ///
    /// If another writer was faster, or the place does not take it.
    pub async fn write(
        &self,
        turn: Turn,
        change: DocumentChange,
    ) -> Result<(Turn, Option<u64>), Status> {
        let place = self.clone();
        apart(turn, move |runtime| match place {
            Self::File(path) => {
                check_seen(read_file(&path)?.as_deref(), &change.seen_version)?;
                let written = match change.text {
                    Some(text) => {
                        Replacement::prepare(&path, text.as_bytes()).and_then(Replacement::put)
                    }
                    None => fs::remove_file(&path),
                };
                written.map(|()| None).map_err(|error| {
                    let problem = format!("cannot write {}: {error}", path.display());
                    Status::failed_precondition(problem)
                })
            }
            Self::Etcd(keys, config) => {
                let mut connection = EtcdConnection::new(config);
                runtime.block_on(write_key(&mut connection, &keys, &change))
            }
        })
        .await
    }

    /// Returns revisions with a number below `before`, the newest first, up to `count`.
    ///
    /// # Errors
    ///
    /// If there is no history, or etcd does not answer.
    pub async fn history(
        &self,
        turn: &Arc<Mutex<()>>,
        before: u64,
        count: usize,
    ) -> Result<Vec<Recorded>, Status> {
        let Self::Etcd(keys, config) = self.clone() else {
            let problem = "documents in a directory have no history; use the history in git, or --rules etcd:PREFIX";
            return Err(Status::unimplemented(problem));
        };
        let mut connection = EtcdConnection::new(config);
        let mut read = async move || {
            let numbers = documents::read(&mut connection, &keys).await?.numbers;
            let earlier = numbers.into_iter().filter(|it| *it < before);
            let (mut revisions, mut bytes) = (Vec::new(), 0);
            for number in earlier.take(count) {
                let recorded = documents::version(&mut connection, &keys, number).await?;
                let version = recorded.as_ref().and_then(|it| it.version.as_ref().ok());
                let document = version.and_then(|it| it.document.as_ref());
                bytes += document.map_or(0, String::len);
                revisions.extend(recorded);
                if bytes >= HISTORY_BYTES {
                    break;
                }
            }
            Ok::<_, doorward_etcd::Error>(revisions)
        };
        let turn = Arc::clone(turn).lock_owned().await;
        let read = apart(turn, move |runtime| {
            runtime.block_on(read()).map_err(unreachable)
        });
        read.await.map(|(_turn, revisions)| revisions)
    }

    /// Returns who wrote a text, if it is the newest one of a history.
    pub async fn author_of(&self, text: &[u8]) -> Option<String> {
        let newest = self.history(&Arc::default(), u64::MAX, 1).await;
        let version = newest.ok()?.pop()?.version.ok()?;
        let who = version.who.as_deref().unwrap_or("an unknown author");
        let is_of_text = version.document.as_ref().map(String::as_bytes) == Some(text);
        is_of_text.then(|| {
            let author = author(who, version.why.as_deref());
            format!("revision {} {author}", version.number)
        })
    }
}

async fn apart<T: Send + 'static>(
    turn: Turn,
    run: impl FnOnce(Handle) -> Result<T, Status> + Send + 'static,
) -> Result<(Turn, T), Status> {
    let runtime = Handle::current();
    let run = move || run(runtime).map(|done| (turn, done));
    joined(tokio::task::spawn_blocking(run)).await
}

fn check_seen(stored: Option<&[u8]>, seen_version: &str) -> Result<(), Status> {
    let version = stored.map(version_of);
    if version.as_deref().unwrap_or_default() == seen_version {
        return Ok(());
    }
    let problem = match version {
        Some(version) => {
            format!(
                "the document has changed meanwhile; look at version {version}, and write on top of it"
            )
        }
        None => "there is no such document; name no version to add it".to_owned(),
    };
    Err(Status::aborted(format!("nothing was written: {problem}")))
}

fn read_file(path: &Path) -> Result<Option<Vec<u8>>, Status> {
    match read_regular(path, FILE_BYTES_MAX) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let problem = format!("cannot read {}: {error}", path.display());
            Err(Status::failed_precondition(problem))
        }
    }
}

async fn write_key(
    connection: &mut EtcdConnection,
    keys: &DocumentKeys,
    change: &DocumentChange,
) -> Result<Option<u64>, Status> {
    let seen = documents::read(connection, keys).await;
    let seen = seen.map_err(unreachable)?;
    check_seen(seen.document.as_deref(), &change.seen_version)?;
    let Some(document) = &change.text else {
        return delete_key(connection, keys, &seen).await.map(|()| None);
    };
    let edit = DocumentEdit {
        document,
        kind: VersionKind::Apply,
        who: &change.who,
        why: change.why.as_deref(),
        when: UNIX_EPOCH + clock::wall(),
    };
    match documents::write(connection, keys, &seen, &edit).await {
        Ok(version) => Ok(Some(version.number)),
        Err(error @ WriteError::Changed) => Err(Status::aborted(error.to_string())),
        Err(error @ (WriteError::Unknown(_) | WriteError::Etcd(_))) => Err(unreachable(error)),
        Err(error) => Err(Status::failed_precondition(error.to_string())),
    }
}

async fn delete_key(
    connection: &mut EtcdConnection,
    keys: &DocumentKeys,
    seen: &StoredDocument,
) -> Result<(), Status> {
    if !seen.is_recorded() {
        let problem = "its history does not have this text, which would be lost; apply it first";
        return Err(Status::failed_precondition(problem));
    }
    let document = keys.document().to_owned();
    let is_seen = Compare::mod_revision(&*document, CompareOp::Equal, seen.mod_revision);
    let delete = TxnOp::delete(document, None);
    let txn = Txn::new().when([is_seen]).and_then([delete]);
    let deleted = connection.txn("delete the document", txn).await;
    if deleted.map_err(unreachable)?.succeeded() {
        return Ok(());
    }
    Err(Status::aborted("another writer was faster; look again"))
}

fn unreachable(error: impl Display) -> Status {
    Status::unavailable(error.to_string())
}
