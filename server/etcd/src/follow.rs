//! A range of keys as it is now, and whenever it changes.
//!
//! A follower reads the range, watches it from there, and hands on every state through a watch
//! channel. A watch may be cancelled (by compaction, by a member that lost its leader), break, or go
//! silent without breaking; so the range is also read from time to time, and a watch that has not
//! reported what the reading shows is thrown away. Every state that it hands on is one
//! that the range was in, each no older than the one before.

mod children;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorward_clock::Instant;
use doorward_session::backoff::{Backoff, WaitLimits};
use etcd_client::{
    Client, GetOptions, GetResponse, KeyValue, ResponseHeader, WatchOptions, WatchStream,
};
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::config::EtcdConfig;
use crate::connection::EtcdConnection;
use crate::error::{Error, FailedCall};

/// Keys to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// One key.
    Key(String),
    /// All keys that begin so.
    Prefix(String),
    /// Keys right below a prefix, which ends with a slash.
    Children(String),
}

impl Range {
    fn key(&self) -> &str {
        match self {
            Self::Key(key) | Self::Prefix(key) | Self::Children(key) => key,
        }
    }

    /// Returns whether a key that the watch reports is in the range.
    fn has(&self, key: &str) -> bool {
        match self {
            Self::Key(_) | Self::Prefix(_) => true,
            Self::Children(prefix) => children::is_child(prefix, key),
        }
    }
}

/// The value of a key, with its revisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
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

impl KeyEntry {
    /// Whether they are the same, whenever they were seen. Values count: an etcd that was set up anew may have others at
    /// the same revisions.
    pub fn is_as(&self, other: &Self) -> bool {
        let parts = |entry: &Self| (entry.create_revision, entry.mod_revision, entry.lease);
        parts(self) == parts(other) && self.value == other.value
    }
}

/// All keys of a range at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeView {
    /// By key.
    pub entries: BTreeMap<String, KeyEntry>,
    /// A revision at which the range was so. Later ones may leave it so.
    pub revision: i64,
}

impl RangeView {
    /// Returns the range in an answer, seen now.
    pub fn of_answer(answer: &GetResponse) -> Self {
        let seen_at = Instant::now();
        Self {
            entries: answer.kvs().iter().map(|kv| entry(kv, seen_at)).collect(),
            revision: answer.header().map_or(0, ResponseHeader::revision),
        }
    }
}

/// The known state of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The keys and values. None: not known yet.
    pub view: Option<Arc<RangeView>>,
    /// When etcd was last asked and then said that this was its state, or one from which what it
    /// reported since led here; or when following began.
    pub heard_at: Instant,
    /// Why etcd cannot be asked now. None: it can.
    pub problem: Option<Error>,
}

impl Followed {
    /// Follows a range until no receiver is left. `look` is how often the range is read although no change is reported.
    pub fn start(config: Arc<EtcdConfig>, range: Range, look: Duration) -> watch::Receiver<Self> {
        let (sender, followed) = watch::channel(Self {
            view: None,
            heard_at: Instant::now(),
            problem: None,
        });
        let follower = Follower {
            connection: EtcdConnection::new(config),
            range,
            look,
            sender: sender.clone(),
            unread: 0,
            backoff: Backoff::default(),
            watched_since: None,
        };
        tokio::spawn(async move {
            tokio::select! {
                () = sender.closed() => {}
                () = follower.run() => {}
            }
        });
        followed
    }
}

/// How waits between attempts grow.
const BACKOFF: WaitLimits = WaitLimits {
    base: Duration::from_millis(100),
    cap: Duration::from_secs(2),
    least: 0.5,
};

struct Follower {
    connection: EtcdConnection,
    range: Range,
    look: Duration,
    sender: watch::Sender<Followed>,
    /// Attempts since the range was last read.
    unread: u32,
    /// Of attempts since a watch last worked: reported something, or lasted.
    backoff: Backoff,
    /// The time at which the watch began.
    watched_since: Option<Instant>,
}

impl Follower {
    async fn run(mut self) {
        loop {
            self.watched_since = None;
            self.unread = self.unread.saturating_add(1);
            let error = match self.follow().await {
                Ok(never) => match never {},
                Err(error) => error,
            };
            debug!(range = self.range.key(), %error, "following anew");
            let lasted = |since: Instant| since.elapsed() >= BACKOFF.cap;
            if self.watched_since.is_some_and(lasted) {
                self.backoff.succeed();
            }
            // One endpoint that fails is no problem yet: the others are tried at once.
            let endpoints = u32::try_from(self.connection.endpoints()).unwrap_or(u32::MAX);
            if self.unread >= endpoints.max(1) {
                self.sender.send_if_modified(|followed| {
                    let is_news = followed.problem.is_none();
                    followed.problem = Some(error);
                    is_news
                });
            }
            // A watch may fail again and again although the range can be read.
            let chance = rand::random();
            let wait = self.backoff.note_failure(BACKOFF, endpoints, chance);
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
        }
    }

    async fn follow(&mut self) -> Result<std::convert::Infallible, Error> {
        let (view, asked_at) = self.read().await?;
        let from = view.revision + 1;
        if self.is_older(&view) {
            self.begin_again(view, asked_at);
        } else {
            self.apply(view, Some(asked_at));
        }
        let (key, options) = (self.range.key().to_owned(), WatchOptions::new());
        let options = match self.range {
            Range::Key(_) => options.with_start_revision(from),
            _ => options.with_start_revision(from).with_prefix(),
        };
        let mut stream = self
            .connection
            .call("watch", async move |client: &mut Client| {
                client.watch(key, Some(options)).await
            })
            .await?;
        self.watched_since = Some(Instant::now());
        let mut next_look = Instant::now() + self.look;
        loop {
            tokio::select! {
                answer = stream.message() => self.on_answer(answer)?,
                () = doorward_clock::sleep_until(next_look) => {
                    let (view, asked_at) = self.read().await?;
                    if self.is_older(&view) {
                        self.begin_again(view, asked_at);
                        return Err(self.broken("etcd was set up anew"));
                    }
                    let caught_up = self.catch_up(&mut stream, &view).await;
                    // In any case: what the watch tells of it later is older than this.
                    self.apply(view, Some(asked_at));
                    caught_up?;
                    next_look = Instant::now() + self.look;
                }
            }
        }
    }

    /// The range as it is, by a majority of the members, and when that was asked: it was so later
    /// than that.
    async fn read(&mut self) -> Result<(RangeView, Instant), Error> {
        let (key, asked_at) = (self.range.key().to_owned(), Instant::now());
        let options = match self.range {
            Range::Key(_) => None,
            Range::Prefix(_) => Some(GetOptions::new().with_prefix()),
            Range::Children(_) => {
                let view = children::read(&mut self.connection, &key).await?;
                return Ok((view, asked_at));
            }
        };
        let answer = self.connection.get("get", key, options).await?;
        Ok((RangeView::of_answer(&answer), asked_at))
    }

    /// Takes what the watch has yet to tell of a state that was read.
    ///
    /// # Errors
    ///
    /// If the watch is silent about a change that etcd has made: it is dead.
    async fn catch_up(&mut self, stream: &mut WatchStream, view: &RangeView) -> Result<(), Error> {
        const GRACE: Duration = Duration::from_millis(500);
        let until = tokio::time::Instant::now() + GRACE;
        while !self.knows(view) {
            match tokio::time::timeout_at(until, stream.message()).await {
                Ok(answer) => self.on_answer(answer)?,
                Err(_) => return Err(self.broken("it is silent about changes")),
            }
        }
        Ok(())
    }

    /// Whether what was read now is older than what is known. Readings never go back, unless etcd
    /// was wiped, or restored from a backup: what was known of it before counts no more then.
    fn is_older(&self, read: &RangeView) -> bool {
        let followed = self.sender.borrow();
        let known = followed.view.as_ref();
        known.is_some_and(|known| known.revision > read.revision)
    }

    /// Replaces the known state, which is that of another etcd, by the one that was read.
    fn begin_again(&mut self, view: RangeView, asked_at: Instant) {
        warn!(
            range = self.range.key(),
            revision = view.revision,
            "etcd has gone back: it was set up anew, or restored from a backup"
        );
        self.unread = 0;
        self.sender.send_modify(|followed| {
            followed.heard_at = asked_at;
            followed.problem = None;
            followed.view = Some(Arc::new(view));
        });
    }

    /// Whether every change up to this state was reported, or may have been.
    fn knows(&self, view: &RangeView) -> bool {
        let knows = |known: &Arc<RangeView>| known.revision >= view.revision || same(known, view);
        self.sender.borrow().view.as_ref().is_some_and(knows)
    }

    fn on_answer(
        &mut self,
        answer: Result<Option<etcd_client::WatchResponse>, etcd_client::Error>,
    ) -> Result<(), Error> {
        let response = match answer {
            Ok(Some(response)) => response,
            Ok(None) => return Err(self.broken("etcd ended it")),
            Err(error) => {
                let error = Error::of(self.connection.endpoint(), "watch", &error);
                self.connection.leave();
                return Err(error);
            }
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
        let mut view = RangeView::clone(&known);
        let seen_at = Instant::now();
        for event in response.events() {
            let Some(kv) = event.kv() else { continue };
            let key = String::from_utf8_lossy(kv.key());
            // A reading may have been faster.
            if kv.mod_revision() <= known.revision || !self.range.has(&key) {
                continue;
            }
            match event.event_type() {
                etcd_client::EventType::Put => {
                    let (key, entry) = entry(kv, seen_at);
                    view.entries.insert(key, entry);
                }
                etcd_client::EventType::Delete => {
                    view.entries.remove(&*key);
                }
            }
            view.revision = view.revision.max(kv.mod_revision());
        }
        if view.revision > known.revision {
            self.backoff.succeed();
            self.apply(view, None);
        }
        Ok(())
    }

    /// Hands on a state that was read, or made by what was reported.
    fn apply(&mut self, mut view: RangeView, asked_at: Option<Instant>) {
        self.unread = 0;
        self.sender.send_if_modified(|followed| {
            if let Some(asked_at) = asked_at {
                followed.heard_at = asked_at;
            }
            let was_problem = followed.problem.take().is_some();
            let changed = match &followed.view {
                // The watch reported more while this was read.
                Some(known) if known.revision > view.revision => return was_problem,
                Some(known) => {
                    for (key, entry) in &mut view.entries {
                        if let Some(known) = known.entries.get(key)
                            && known.is_as(entry)
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

    /// The watch is over. Perhaps there is a better one elsewhere.
    fn broken(&mut self, problem: &str) -> Error {
        let endpoint = self.connection.endpoint().to_owned();
        self.connection.leave();
        Error::Unreachable(FailedCall {
            endpoint,
            what: "watch",
            problem: problem.to_owned(),
        })
    }
}

/// Whether two states are the same but for their revision.
fn same(a: &RangeView, b: &RangeView) -> bool {
    let mut pairs = a.entries.iter().zip(&b.entries);
    a.entries.len() == b.entries.len() && pairs.all(|(a, b)| a.0 == b.0 && a.1.is_as(b.1))
}

fn entry(kv: &KeyValue, seen_at: Instant) -> (String, KeyEntry) {
    let key = String::from_utf8_lossy(kv.key()).into_owned();
    let entry = KeyEntry {
        value: kv.value().to_vec(),
        create_revision: kv.create_revision(),
        mod_revision: kv.mod_revision(),
        lease: kv.lease(),
        seen_at,
    };
    (key, entry)
}
