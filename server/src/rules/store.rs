//! The place of rule documents: a directory with a file for each, or keys below a prefix in etcd.
//!
//! A new document has the file `DOMAIN.yaml`, or the key `PREFIX/DOMAIN`; others may have any name.
//!
//! A write succeeds only on top of the version that its author has seen. A directory has no history. Two servers with
//! the same directory do not see each other's writes in the instant between the comparison and the write.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use doorward::rules::source::files::{self, Content};
use doorward::rules::version_of;
use doorward_clock::Instant;
use doorward_etcd::documents::{
    self as stored, DocumentEdit, Recorded, StoredDocument, VersionKind, WriteError,
};
use doorward_etcd::follow::{Follow, Followed, Range};
use doorward_etcd::layout::DocumentKeys;
use doorward_etcd::{DocumentPlace, EtcdConfig, EtcdConnection};
use doorward_files::{Follower, Replacement, read_regular};
use doorward_proto::admin::v1::ApplyRulesRequest;
use etcd_client::{Compare, CompareOp, Txn, TxnOp};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, Notify, OwnedMutexGuard, watch};
use tonic::Status;

use crate::clock;
use crate::rules::document::check_bounds;
use crate::rules::documents::Documents;
use crate::rules::instances::Instances;

/// Interval between two reads of all keys in etcd although no change is reported.
const LOOK: Duration = Duration::from_secs(30);

/// Interval between two reads of a directory.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Longest wait until a write is in force here.
const READ_BACK: Duration = Duration::from_secs(2);

/// Largest number of revisions on a page of a history.
const REVISIONS_MAX: usize = 100;

/// Size of texts after which a page of a history ends, in bytes.
const HISTORY_BYTES: usize = 1024 * 1024;

/// Ending of the files in a directory.
const ENDING: &str = ".yaml";

/// The place of rule documents.
#[derive(Clone, Debug)]
pub enum RulesPlace {
    /// A directory, and the interval between two reads.
    Directory(PathBuf, Duration),
    /// A file with one document, which only its owner writes, and the interval between two reads.
    File(PathBuf, Duration),
    /// Keys below a prefix.
    Etcd(String, Arc<EtcdConfig>),
}

impl RulesPlace {
    /// Returns a file or directory, which is read once a second.
    ///
    /// # Errors
    ///
    /// If a document in it cannot be used, or there is none.
    pub fn of_files(path: PathBuf) -> Result<Self, String> {
        let is_directory = path.is_dir();
        let found = match is_directory {
            true => files::read_directory(&path),
            false => files::read_file(&path),
        };
        let documents = Documents::default().next(found, &BTreeSet::new(), Instant::now());
        match documents.problems() {
            Some(problems) => Err(format!("--rules: {problems}")),
            None if documents.by_domain.is_empty() => {
                Err(format!("--rules: {} has no rules", path.display()))
            }
            None if is_directory => Ok(Self::Directory(path, POLL_INTERVAL)),
            None => Ok(Self::File(path, POLL_INTERVAL)),
        }
    }

    /// Returns a directory, which is read once a second, or keys in etcd.
    ///
    /// # Errors
    ///
    /// If there is no such directory, or no etcd. The text begins with the name of the flag.
    pub fn of(place: DocumentPlace, etcd: Option<Arc<EtcdConfig>>) -> Result<Self, String> {
        match (place, etcd) {
            (DocumentPlace::File(path), _) if path.is_dir() => {
                Ok(Self::Directory(path, POLL_INTERVAL))
            }
            (DocumentPlace::File(path), _) => Err(format!(
                "--rules: {} is no directory; create it, or give etcd:PREFIX",
                path.display()
            )),
            (DocumentPlace::Etcd(keys), Some(etcd)) => {
                Ok(Self::Etcd(keys.document().to_owned(), etcd))
            }
            (DocumentPlace::Etcd(_), None) => Err(
                "--rules names keys in etcd, but not where etcd is: see --etcd-endpoints"
                    .to_owned(),
            ),
        }
    }
}

type Removed = parking_lot::Mutex<BTreeSet<String>>;

/// Rule documents of a server.
#[derive(Debug)]
pub struct RuleStore {
    place: RulesPlace,
    documents: watch::Sender<Arc<Documents>>,
    /// Clients that follow the documents.
    pub instances: Arc<Instances>,
    /// Domains whose document was removed here, until that is seen.
    removed: Removed,
    /// Wakes the reader after a write.
    written: Notify,
    write_turn: Arc<Mutex<()>>,
    history_turn: Arc<Mutex<()>>,
}

impl RuleStore {
    /// Returns a store that has read nothing yet.
    pub fn new(place: RulesPlace) -> Arc<Self> {
        Arc::new(Self {
            place,
            documents: watch::Sender::default(),
            instances: Arc::default(),
            removed: Removed::default(),
            written: Notify::new(),
            write_turn: Arc::default(),
            history_turn: Arc::default(),
        })
    }

    /// Returns the documents now, and whenever they change.
    pub fn documents(&self) -> watch::Receiver<Arc<Documents>> {
        self.documents.subscribe()
    }

    /// Reads the documents at once, whenever they change, and files whenever it is told. Runs until the server ends:
    /// spawn it.
    pub async fn run(self: Arc<Self>, rereads: watch::Receiver<()>) {
        match &self.place {
            RulesPlace::Directory(path, interval) => {
                let follower = Follower::new(path, *interval, files::read_directory);
                self.poll(follower, rereads).await;
            }
            RulesPlace::File(path, interval) => {
                let follower = Follower::new(path, *interval, files::read_file);
                self.poll(follower, rereads).await;
            }
            RulesPlace::Etcd(prefix, config) => self.follow(prefix, Arc::clone(config)).await,
        }
    }

    async fn poll(&self, mut follower: Follower, mut rereads: watch::Receiver<()>) {
        let mut content = follower.read().await;
        loop {
            self.take(content.clone()).await;
            let due = self.documents.borrow().due();
            content = tokio::select! {
                changed = follower.changed(&content) => changed,
                () = files::until(due) => content,
                () = self.written.notified() => follower.read().await,
                Ok(()) = rereads.changed() => follower.read().await,
            };
        }
    }

    async fn follow(&self, prefix: &str, config: Arc<EtcdConfig>) {
        let prefix = format!("{prefix}/");
        let follow = Follow::start(config, Range::Children(prefix.clone()), LOOK);
        let mut followed = follow.receiver();
        loop {
            let Followed { view, problem, .. } = followed.borrow_and_update().clone();
            match (view, problem) {
                (_, Some(problem)) => self.take(Err(problem.to_string())).await,
                (None, None) => {}
                (Some(view), None) => {
                    let named = view.entries.iter().filter_map(|(key, entry)| {
                        let domain = key.strip_prefix(&prefix)?;
                        Some((domain.to_owned(), entry.value.clone()))
                    });
                    self.take(Ok(named.collect())).await;
                }
            }
            let due = self.documents.borrow().due();
            tokio::select! {
                // The follower ends with the process only.
                changed = followed.changed() => if changed.is_err() {
                    return std::future::pending().await;
                },
                () = files::until(due) => {}
            }
        }
    }

    /// Takes what was read, on a thread that large documents may keep busy.
    async fn take(&self, content: Content) {
        let former = Arc::clone(&self.documents.borrow());
        let removed = self.removed.lock().clone();
        let next = tokio::task::spawn_blocking(move || {
            let next = former.next(content, &removed, Instant::now());
            next.tell(&former);
            next
        });
        if let Ok(next) = next.await.map(Arc::new) {
            self.removed
                .lock()
                .retain(|domain| next.by_domain.contains_key(domain));
            self.documents.send_replace(next);
        }
    }

    /// Checks that a new text fits beside the other documents: otherwise no newer text of any would be in force.
    fn check_room(&self, edit: &ApplyRulesRequest) -> Result<(), Status> {
        let documents = Arc::clone(&self.documents.borrow());
        let others = documents.by_domain.iter();
        let others = others.filter(|(domain, _)| **domain != edit.domain);
        let others = others.filter(|(_, it)| it.gone_at.is_none());
        let bytes: Vec<usize> = others.map(|(_, it)| it.found.text.len()).collect();
        let fits = check_bounds(
            bytes.len() + 1,
            bytes.iter().sum::<usize>() + edit.text.len(),
        );
        fits.map_err(|problem| {
            Status::failed_precondition(format!("nothing was written: {problem}"))
        })
    }

    /// Returns the file or key of a domain's document, if there is one.
    fn source(&self, domain: &str) -> Option<String> {
        let documents = self.documents.borrow();
        let document = documents.by_domain.get(domain)?;
        Some(document.found.source.clone())
    }

    /// Writes a document, or `removes` it, and waits until that is in force here. Returns its number in the history, if
    /// there is one. The caller has checked the domain and the text.
    ///
    /// # Errors
    ///
    /// If another writer was faster, or the place does not take it.
    pub async fn write(
        &self,
        edit: ApplyRulesRequest,
        removes: bool,
    ) -> Result<Option<u64>, Status> {
        let turn = Arc::clone(&self.write_turn).lock_owned().await;
        if !removes {
            self.check_room(&edit)?;
        }
        let (domain, source) = (edit.domain.clone(), self.source(&edit.domain));
        let version = (!removes).then(|| version_of(edit.text.as_bytes()));
        let place = self.place.clone();
        let write = move |runtime: Handle| match place {
            RulesPlace::Directory(path, _) => {
                let new = || format!("{}{ENDING}", edit.domain);
                let path = path.join(source.unwrap_or_else(new));
                write_file(&path, &edit, removes).map(|()| None)
            }
            RulesPlace::File(path, _) => Err(Status::failed_precondition(format!(
                "the rules are in the file {}; edit it",
                path.display()
            ))),
            RulesPlace::Etcd(prefix, config) => {
                let key = source.as_ref().unwrap_or(&edit.domain);
                let keys = DocumentKeys::new(&format!("{prefix}/{key}"));
                let mut connection = EtcdConnection::new(config);
                runtime.block_on(write_key(&mut connection, &keys, &edit, removes))
            }
        };
        // The next writer counts this document too.
        if removes {
            self.removed.lock().insert(domain.clone());
        }
        let written = apart(turn, write).await;
        if written.is_err() {
            self.removed.lock().remove(&domain);
        }
        let (_turn, number) = written?;
        self.written.notify_one();
        let mut documents = self.documents();
        let shown = documents.wait_for(|documents| {
            let shown = documents.by_domain.get(&domain);
            shown.map(|it| &it.found.version) == version.as_ref()
        });
        // The write is done, whether or not it is seen in time.
        let _ = tokio::time::timeout(READ_BACK, shown).await;
        Ok(number)
    }

    /// Returns revisions with a number below `before`, the newest first.
    ///
    /// # Errors
    ///
    /// If there is no history, or etcd does not answer.
    pub async fn history(&self, domain: &str, before: u64) -> Result<Vec<Recorded>, Status> {
        let RulesPlace::Etcd(prefix, config) = &self.place else {
            let problem = "documents in a directory have no history; use the history in git, or --rules etcd:PREFIX";
            return Err(Status::unimplemented(problem));
        };
        let source = self.source(domain);
        let key = source.as_deref().unwrap_or(domain);
        let keys = DocumentKeys::new(&format!("{prefix}/{key}"));
        let mut connection = EtcdConnection::new(Arc::clone(config));
        let mut read = async move || {
            let numbers = stored::read(&mut connection, &keys).await?.numbers;
            let earlier = numbers.into_iter().filter(|it| *it < before);
            let (mut revisions, mut bytes) = (Vec::new(), 0);
            for number in earlier.take(REVISIONS_MAX) {
                let recorded = stored::version(&mut connection, &keys, number).await?;
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
        let read = move |runtime: Handle| runtime.block_on(read()).map_err(unreachable);
        let turn = Arc::clone(&self.history_turn).lock_owned().await;
        let (_turn, revisions) = apart(turn, read).await?;
        Ok(revisions)
    }
}

/// Runs a read or write in its turn, on a thread of its own, to its end even if the caller has gone. A disk may be
/// slow, and futures of `doorward_etcd::documents` are bound to their thread.
async fn apart<T: Send + 'static>(
    turn: OwnedMutexGuard<()>,
    run: impl FnOnce(Handle) -> Result<T, Status> + Send + 'static,
) -> Result<(OwnedMutexGuard<()>, T), Status> {
    let runtime = Handle::current();
    let done = tokio::task::spawn_blocking(move || {
        let done = run(runtime)?;
        Ok((turn, done))
    });
    done.await
        .map_err(|error| Status::internal(error.to_string()))?
}

fn check_seen(stored: Option<&[u8]>, edit: &ApplyRulesRequest) -> Result<(), Status> {
    let version = stored.map(version_of);
    if version.as_deref().unwrap_or_default() == edit.seen_version {
        return Ok(());
    }
    let problem = match version {
        Some(version) => {
            format!("the stored version is {version}; look at it, and write on top of it")
        }
        None => "there is no such document; leave seen_version empty to add it".to_owned(),
    };
    Err(Status::aborted(format!("nothing was written: {problem}")))
}

fn write_file(path: &Path, edit: &ApplyRulesRequest, removes: bool) -> Result<(), Status> {
    let name = path.display();
    let cannot =
        |error: io::Error| Status::failed_precondition(format!("cannot write {name}: {error}"));
    let stored = match read_regular(path, files::FILE_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        read => Some(read.map_err(cannot)?),
    };
    check_seen(stored.as_deref(), edit)?;
    if removes {
        return fs::remove_file(path).map_err(cannot);
    }
    let new = Replacement::prepare(path, edit.text.as_bytes());
    new.and_then(Replacement::put).map_err(cannot)
}

async fn write_key(
    connection: &mut EtcdConnection,
    keys: &DocumentKeys,
    edit: &ApplyRulesRequest,
    removes: bool,
) -> Result<Option<u64>, Status> {
    let seen = stored::read(connection, keys).await.map_err(unreachable)?;
    check_seen(seen.document.as_deref(), edit)?;
    if removes {
        return delete_key(connection, keys, &seen).await.map(|()| None);
    }
    let change = DocumentEdit {
        document: &edit.text,
        kind: VersionKind::Apply,
        who: &edit.who,
        why: edit.why.as_deref(),
        when: UNIX_EPOCH + clock::wall(),
    };
    match stored::write(connection, keys, &seen, &change).await {
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
    let txn = Txn::new()
        .when([is_seen])
        .and_then([TxnOp::delete(document, None)]);
    let deleted = connection.txn("delete the document", txn).await;
    if deleted.map_err(unreachable)?.succeeded() {
        return Ok(());
    }
    Err(Status::aborted("another writer was faster; look again"))
}

fn unreachable(error: impl Display) -> Status {
    Status::unavailable(error.to_string())
}
