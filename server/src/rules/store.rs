//! The place of rule documents: a directory with a file for each, or keys below a prefix in etcd.
//!
//! A new document has the file `DOMAIN.yaml`, or the key `PREFIX/DOMAIN`; others may have any name.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use doorward::rules::source::files::{self, Content};
use doorward::rules::version_of;
use doorward_clock::Instant;
use doorward_door::tasks::joined;
use doorward_etcd::follow::{Followed, Range};
use doorward_etcd::layout::DocumentKeys;
use doorward_etcd::{DocumentPlace, EtcdConfig};
use doorward_files::Follower;
use tokio::sync::{Mutex, Notify, watch};
use tonic::Status;

use crate::rules::document::check_bounds;
use crate::rules::documents::Documents;
use crate::rules::instances::Instances;
use crate::stored_place::{DocumentChange, StoredPlace};

/// Interval between two reads of all keys in etcd although no change is reported.
const LOOK: Duration = Duration::from_secs(30);

/// Interval between two reads of a directory.
pub const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Longest wait until a write is in force here.
const READ_BACK: Duration = Duration::from_secs(2);

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
        match StoredPlace::of("--rules", place, etcd)? {
            StoredPlace::File(path) if path.is_dir() => Ok(Self::Directory(path, POLL_INTERVAL)),
            StoredPlace::File(path) => Err(format!(
                "--rules: {} is no directory; create it, or give etcd:PREFIX",
                path.display()
            )),
            StoredPlace::Etcd(keys, etcd) => Ok(Self::Etcd(keys.document().to_owned(), etcd)),
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
        })
    }

    /// Returns the documents now, and whenever they change.
    pub fn documents(&self) -> watch::Receiver<Arc<Documents>> {
        self.documents.subscribe()
    }

    /// Reads the documents at once, whenever they change, and files whenever it is told. Runs until the server ends:
    /// spawn it.
    pub async fn run(self: Arc<Self>, rereads: watch::Receiver<()>) {
        let follower = match &self.place {
            RulesPlace::Directory(path, every) => {
                Follower::new(path, *every, files::read_directory)
            }
            RulesPlace::File(path, every) => Follower::new(path, *every, files::read_file),
            RulesPlace::Etcd(prefix, config) => {
                return self.follow(prefix, Arc::clone(config)).await;
            }
        };
        self.poll(follower, rereads).await;
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
        let mut followed = Followed::start(config, Range::Children(prefix.clone()), LOOK);
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
                Ok(()) = followed.changed() => {}
                () = files::until(due) => {}
            }
        }
    }

    /// Takes what was read, on a thread that large documents may keep busy.
    async fn take(&self, content: Content) {
        let former = Arc::clone(&self.documents.borrow());
        let removed = self.removed.lock().clone();
        let next = move || {
            let next = former.next(content, &removed, Instant::now());
            next.tell(&former);
            Arc::new(next)
        };
        let next = joined(tokio::task::spawn_blocking(next)).await;
        let is_there = |domain: &String| next.by_domain.contains_key(domain);
        self.removed.lock().retain(is_there);
        self.documents.send_replace(next);
    }

    /// Checks that a new text fits beside the other documents: otherwise no newer text of any would be in force.
    fn check_room(&self, domain: &str, text: &str) -> Result<(), Status> {
        let documents = Arc::clone(&self.documents.borrow());
        let others = documents.by_domain.iter();
        let others = others.filter(|(other, _)| *other != domain);
        let others = others.filter(|(_, it)| it.gone_at.is_none());
        let bytes: Vec<usize> = others.map(|(_, it)| it.found.text.len()).collect();
        let fits = check_bounds(bytes.len() + 1, bytes.iter().sum::<usize>() + text.len());
        let refused = |it| Status::failed_precondition(format!("nothing was written: {it}"));
        fits.map_err(refused)
    }

    /// Returns the place of a domain's document: its file or key, or that of a new one. The caller has checked the
    /// domain.
    pub fn place(&self, domain: &str) -> StoredPlace {
        let documents = self.documents.borrow();
        let document = documents.by_domain.get(domain);
        let source = document.map(|it| it.found.source.clone());
        match &self.place {
            RulesPlace::Directory(path, _) => {
                let name = source.unwrap_or_else(|| format!("{domain}{ENDING}"));
                StoredPlace::File(path.join(name))
            }
            RulesPlace::File(path, _) => StoredPlace::File(path.clone()),
            RulesPlace::Etcd(prefix, config) => {
                let key = format!("{prefix}/{}", source.as_deref().unwrap_or(domain));
                StoredPlace::Etcd(DocumentKeys::new(&key), Arc::clone(config))
            }
        }
    }

    /// Writes or removes a document, and waits until that is in force here. Returns its number in the history, if
    /// there is one. The caller has checked the domain and the text.
    ///
    /// # Errors
    ///
    /// If another writer was faster, or the place does not take it.
    pub async fn write(
        &self,
        domain: String,
        change: DocumentChange,
    ) -> Result<Option<u64>, Status> {
        let turn = Arc::clone(&self.write_turn).lock_owned().await;
        if let RulesPlace::File(path, _) = &self.place {
            let path = path.display();
            let problem = format!("the rules are in the file {path}; edit it");
            return Err(Status::failed_precondition(problem));
        }
        if let Some(text) = &change.text {
            self.check_room(&domain, text)?;
        }
        let version = change.text.as_ref().map(|it| version_of(it.as_bytes()));
        let place = self.place(&domain);
        // The next writer counts this document too.
        if version.is_none() {
            self.removed.lock().insert(domain.clone());
        }
        let written = place.write(turn, change).await;
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

    /// Returns who wrote the stored document of a domain, if a history tells.
    pub async fn author_of(&self, domain: &str) -> Option<String> {
        let documents = Arc::clone(&self.documents.borrow());
        let text = &documents.by_domain.get(domain)?.found.text;
        self.place(domain).author_of(text.as_bytes()).await
    }
}
