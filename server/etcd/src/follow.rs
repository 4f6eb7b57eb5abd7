//! A range of keys as it is now, and whenever it changes.
//!
//! A [`Follow`] reads the range, watches it from there, and hands on every state through a watch
//! channel. A watch may be cancelled (by compaction, by a member that lost its leader), break, or go
//! silent without breaking; so the range is also read from time to time, and a watch that has not
//! told what the reading shows is thrown away. Whatever happened, what is handed on is a state that
//! the range was in, each no older than the one before.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{
    Client, GetOptions, GetResponse, KeyValue, ResponseHeader, WatchOptions, WatchStream,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::config::Config;
use crate::connection::Connection;
use crate::error::Error;

/// What is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// One key.
    Key(String),
    /// All keys that begin so.
    Prefix(String),
}

impl Range {
    fn key(&self) -> &str {
        match self {
            Self::Key(key) | Self::Prefix(key) => key,
        }
    }

    fn get_options(&self) -> Option<GetOptions> {
        matches!(self, Self::Prefix(_)).then(|| GetOptions::new().with_prefix())
    }

    fn watch_options(&self, from: i64) -> WatchOptions {
        let options = WatchOptions::new().with_start_revision(from);
        match self {
            Self::Key(_) => options,
            Self::Prefix(_) => options.with_prefix(),
        }
    }
}

/// What stands under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The value.
    pub value: Vec<u8>,
    /// The revision at which the key came to be.
    pub create_revision: i64,
    /// The revision at which it was last written.
    pub mod_revision: i64,
    /// The lease it goes with; 0: none.
    pub lease: i64,
    /// When this was first seen here: no earlier than it was written.
    pub seen_at: Instant,
}

/// All keys of a range at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// By key.
    pub entries: BTreeMap<String, Entry>,
    /// A revision at which the range was so. Later ones may leave it so.
    pub revision: i64,
}

impl View {
    /// What an answer shows, seen now.
    pub fn of_answer(answer: &GetResponse) -> Self {
        let seen_at = Instant::now();
        Self {
            entries: answer.kvs().iter().map(|kv| entry(kv, seen_at)).collect(),
            revision: answer.header().map_or(0, ResponseHeader::revision),
        }
    }
}

/// What is known of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// What stands there. None: not known yet.
    pub view: Option<Arc<View>>,
    /// When etcd was last heard to be of this state, or when following began.
    pub heard_at: Instant,
    /// Why etcd cannot be asked now. None: it can.
    pub problem: Option<Error>,
}

/// Follows a range until it is dropped.
#[derive(Debug)]
pub struct Follow {
    followed: watch::Receiver<Followed>,
    task: JoinHandle<()>,
}

impl Follow {
    /// Begins to follow. `look` is how often the range is read although nothing is told.
    pub fn start(config: Arc<Config>, range: Range, look: Duration) -> Self {
        let (sender, followed) = watch::channel(Followed {
            view: None,
            heard_at: Instant::now(),
            problem: None,
        });
        let follower = Follower {
            connection: Connection::new(config),
            range,
            look,
            sender,
            failures: 0,
        };
        let task = tokio::spawn(follower.run());
        Self { followed, task }
    }

    /// What is known now, and whenever that changes.
    pub fn receiver(&self) -> watch::Receiver<Followed> {
        self.followed.clone()
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits between attempts: from the first, twice as long each time, to the second.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

struct Follower {
    connection: Connection,
    range: Range,
    look: Duration,
    sender: watch::Sender<Followed>,
    failures: u32,
}

impl Follower {
    async fn run(mut self) {
        loop {
            let error = match self.follow().await {
                Ok(never) => match never {},
                Err(error) => error,
            };
            debug!(range = self.range.key(), %error, "following anew");
            self.connection.leave();
            self.failures = self.failures.saturating_add(1);
            let others = u32::try_from(self.connection.endpoints()).unwrap_or(u32::MAX);
            // One endpoint that fails is no problem yet: the others are tried at once.
            if let Some(round) = self.failures.checked_sub(others) {
                self.sender.send_if_modified(|followed| {
                    let is_news = followed.problem.is_none();
                    followed.problem = Some(error);
                    is_news
                });
                let most = BACKOFF.0.saturating_mul(1 << round.min(10)).min(BACKOFF.1);
                tokio::time::sleep(most.mul_f64(rand::random_range(0.5..1.0))).await;
            }
        }
    }

    async fn follow(&mut self) -> Result<std::convert::Infallible, Error> {
        let view = self.read().await?;
        let from = view.revision + 1;
        self.forget_what_was_reset(&view);
        self.apply(view);
        let (key, options) = (self.range.key().to_owned(), self.range.watch_options(from));
        let mut stream = self
            .connection
            .call("watch", async move |client: &mut Client| {
                client.watch(key, Some(options)).await
            })
            .await?;
        let mut next_look = Instant::now() + self.look;
        loop {
            tokio::select! {
                told = stream.message() => self.told(told)?,
                () = tokio::time::sleep_until(next_look) => {
                    let view = self.read().await?;
                    if self.forget_what_was_reset(&view) {
                        return Err(self.broken("etcd was set up anew"));
                    }
                    self.catch_up(&mut stream, &view).await?;
                    self.apply(view);
                    next_look = Instant::now() + self.look;
                }
            }
        }
    }

    /// The range as it is, by a majority of the members.
    async fn read(&mut self) -> Result<View, Error> {
        let (key, options) = (self.range.key().to_owned(), self.range.get_options());
        let answer = self
            .connection
            .call("get", async move |client: &mut Client| {
                client.get(key, options).await
            })
            .await?;
        Ok(View::of_answer(&answer))
    }

    /// Takes what the watch has yet to tell of a state that was read. Does not wait for it: what
    /// was read is applied in any case, and what is told of it later is older than that.
    ///
    /// # Errors
    ///
    /// If the watch is silent about a change that etcd has made: it is dead.
    async fn catch_up(&mut self, stream: &mut WatchStream, view: &View) -> Result<(), Error> {
        const GRACE: Duration = Duration::from_millis(500);
        let until = Instant::now() + GRACE;
        while !self.knows(view) {
            match tokio::time::timeout_at(until, stream.message()).await {
                Ok(told) => self.told(told)?,
                Err(_) => return Err(self.broken("it is silent about changes")),
            }
        }
        Ok(())
    }

    /// Readings never go back, unless etcd was wiped, or restored from a backup: what was known of
    /// it before counts no more then. Returns whether that is so.
    fn forget_what_was_reset(&mut self, read: &View) -> bool {
        let known = self
            .sender
            .borrow()
            .view
            .as_ref()
            .map(|known| known.revision);
        let is_reset = known.is_some_and(|known| known > read.revision);
        if is_reset {
            warn!(
                range = self.range.key(),
                ?known,
                revision = read.revision,
                "etcd has gone back: it was set up anew, or restored from a backup"
            );
            self.sender.send_if_modified(|followed| {
                followed.view = None;
                false
            });
        }
        is_reset
    }

    /// Whether every change up to this state was told, or may have been.
    fn knows(&self, view: &View) -> bool {
        let followed = self.sender.borrow();
        followed
            .view
            .as_ref()
            .is_some_and(|known| known.revision >= view.revision || same(known, view))
    }

    fn told(
        &mut self,
        told: Result<Option<etcd_client::WatchResponse>, etcd_client::Error>,
    ) -> Result<(), Error> {
        let response = match told {
            Ok(Some(response)) => response,
            Ok(None) => return Err(self.broken("etcd ended it")),
            Err(error) => return Err(Error::of(self.connection.endpoint(), "watch", &error)),
        };
        if response.compact_revision() > 0 {
            return Err(self.broken("the revision it began at is compacted"));
        }
        if response.canceled() {
            let reason = format!("etcd cancelled it: {}", response.cancel_reason());
            return Err(self.broken(&reason));
        }
        let Some(known) = self.sender.borrow().view.clone() else {
            return Ok(());
        };
        let mut view = View::clone(&known);
        let seen_at = Instant::now();
        for event in response.events() {
            let Some(kv) = event.kv() else { continue };
            // A reading may have been faster.
            if kv.mod_revision() <= known.revision {
                continue;
            }
            match event.event_type() {
                etcd_client::EventType::Put => {
                    let (key, entry) = entry(kv, seen_at);
                    view.entries.insert(key, entry);
                }
                etcd_client::EventType::Delete => {
                    view.entries.remove(&*String::from_utf8_lossy(kv.key()));
                }
            }
            view.revision = view.revision.max(kv.mod_revision());
        }
        self.apply(view);
        Ok(())
    }

    fn apply(&mut self, mut view: View) {
        self.failures = 0;
        self.sender.send_if_modified(|followed| {
            followed.heard_at = Instant::now();
            let was_problem = followed.problem.take().is_some();
            let changed = match &followed.view {
                // The watch told more while this was read.
                Some(known) if known.revision > view.revision => return was_problem,
                Some(known) => {
                    for (key, entry) in &mut view.entries {
                        if let Some(known) = known.entries.get(key)
                            && known.mod_revision == entry.mod_revision
                        {
                            entry.seen_at = known.seen_at;
                        }
                    }
                    !same(known, &view)
                }
                None => true,
            };
            followed.view = Some(Arc::new(view));
            changed || was_problem
        });
    }

    fn broken(&self, problem: &str) -> Error {
        Error::Unreachable {
            endpoint: self.connection.endpoint().to_owned(),
            what: "watch",
            problem: problem.to_owned(),
        }
    }
}

/// Whether two states are the same but for their revision.
fn same(a: &View, b: &View) -> bool {
    let revisions = |view: &View| -> Vec<(String, i64)> {
        let entries = view.entries.iter();
        entries
            .map(|(key, entry)| (key.clone(), entry.mod_revision))
            .collect()
    };
    a.entries.len() == b.entries.len() && revisions(a) == revisions(b)
}

fn entry(kv: &KeyValue, seen_at: Instant) -> (String, Entry) {
    let key = String::from_utf8_lossy(kv.key()).into_owned();
    let entry = Entry {
        value: kv.value().to_vec(),
        create_revision: kv.create_revision(),
        mod_revision: kv.mod_revision(),
        lease: kv.lease(),
        seen_at,
    };
    (key, entry)
}
