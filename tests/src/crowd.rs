//! Many clients of one resource, and the sum of what they may use, watched at every instant.
//!
//! The clients are those of the client library, in the test's process. What each may use by a valid
//! lease stands in one [`Ledger`], which the clients' hooks update on every change, and which is checked
//! through every millisecond besides, for leases end and come back by themselves.
//!
//! **Why its sum proves something,** though clients change concurrently. A client updates the ledger
//! that it has less *before* it sends the request that acknowledges that, and waits for the
//! ledger's lock to do so; so while the ledger is checked, no client can have been granted what is
//! still entered for another one. What has ended by a client's own clock counts no more: the
//! sum is looked at twice, and what has ended between the two looks is not over.

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doorward_client::state::{BackoffConfig, ClientConfig};
use doorward_client::{Capacity, Client, Hooks, Mode, Resource, Source};

use tokio::time::Instant;

use crate::processes::PATIENCE;

/// What rounding may add to a sum, relative to it.
const ROUNDING: f64 = 1e-9;

/// What is known of a member.
#[derive(Default)]
struct Entry {
    resource: Option<Resource>,
    /// Its lease at its last update; 0 if it had none.
    held: f64,
    /// `held` at the mark.
    marked: f64,
    /// The least of `held` since the mark, and when it first fell.
    least: f64,
    fell: Option<Instant>,
    /// Requests since the mark: those that were not answered, and those that were after them.
    failed: u32,
    answered: u32,
}

impl Entry {
    /// What it may use by a lease now.
    fn usable(&self) -> f64 {
        let Some(resource) = &self.resource else {
            return self.held;
        };
        let holding = resource.holding();
        match holding.source {
            // It may have more than the ledger shows: then it updates next.
            Source::Lease => holding.capacity.get().min(self.held),
            Source::Mode => 0.0,
        }
    }
}

#[derive(Default)]
struct Book {
    entries: Vec<Entry>,
    /// When the last update came.
    moved: Option<Instant>,
    looks: u64,
    /// The largest sum that was seen in use.
    peak: f64,
    /// What was seen first that must not be.
    overshoot: Option<String>,
}

/// What all members may use.
pub struct Ledger {
    capacity: f64,
    book: Mutex<Book>,
}

impl Ledger {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, book: &mut Book) {
        book.looks += 1;
        let limit = self.capacity * (1.0 + ROUNDING);
        let mut sum: f64 = book.entries.iter().map(|entry| entry.held).sum();
        // Only if that is too much it matters which leases have ended meanwhile.
        for _ in 0..2 {
            if sum > limit {
                sum = sum.min(book.entries.iter().map(Entry::usable).sum());
            }
        }
        book.peak = book.peak.max(sum);
        if sum > limit && book.overshoot.is_none() {
            let mut text = format!("{sum} of {} in use:", self.capacity);
            for (index, entry) in book.entries.iter().enumerate() {
                let usable = entry.usable();
                if usable != entry.marked {
                    let _ = write!(text, " {index}: {usable} (was {})", entry.marked);
                }
            }
            book.overshoot = Some(text);
        }
    }

    /// What each member may use from now on counts as what it had, see [`Crowd::kept`].
    fn mark(&self) {
        for entry in &mut self.book().entries {
            entry.marked = entry.held;
            entry.least = entry.held;
            entry.fell = None;
            (entry.answered, entry.failed) = (0, 0);
        }
    }
}

/// The hooks of one member.
struct Clerk {
    ledger: Arc<Ledger>,
    index: usize,
}

impl Hooks for Clerk {
    fn refreshed(&self, ok: bool, _took: Duration) {
        let entry = &mut self.ledger.book().entries[self.index];
        if ok {
            entry.answered += 1;
        } else {
            entry.failed += 1;
            entry.answered = 0;
        }
    }

    fn capacity_changed(&self, _resource: &str, capacity: Capacity, source: Source) {
        let mut book = self.ledger.book();
        let entry = &mut book.entries[self.index];
        entry.held = match source {
            Source::Lease => capacity.get(),
            Source::Mode => 0.0,
        };
        if entry.held < entry.marked * (1.0 - ROUNDING) {
            entry.fell.get_or_insert_with(Instant::now);
        }
        entry.least = entry.least.min(entry.held);
        book.moved = Some(Instant::now());
        self.ledger.look(&mut book);
    }
}

/// One client with one resource.
pub struct Member {
    /// What the test asks and changes.
    pub resource: Resource,
    /// What it falls back to.
    pub mode: Mode,
    index: usize,
    _client: Client,
}

/// Clients of one resource, at any servers.
pub struct Crowd {
    resource: String,
    ledger: Arc<Ledger>,
    /// In the order in which they joined.
    pub members: Vec<Member>,
}

impl Crowd {
    /// An empty crowd that may use that much together. Must be called within a tokio runtime.
    pub fn new(resource: &str, capacity: f64) -> Self {
        let ledger = Arc::new(Ledger {
            capacity,
            book: Mutex::default(),
        });
        let looked_at = Arc::downgrade(&ledger);
        tokio::spawn(async move {
            let mut looks = tokio::time::interval(Duration::from_millis(1));
            while let Some(ledger) = looked_at.upgrade() {
                ledger.look(&mut ledger.book());
                looks.tick().await;
            }
        });
        Self {
            resource: resource.to_owned(),
            ledger,
            members: Vec::new(),
        }
    }

    /// A client joins at a server: impatient, so that it is back soon after its server is.
    pub fn join(&mut self, address: &str, wants: f64, mode: Mode) {
        self.join_any(&[address.to_owned()], wants, mode);
    }

    /// A client joins at the servers of a node.
    pub fn join_any(&mut self, addresses: &[String], wants: f64, mode: Mode) {
        let name = format!("client-{}", self.members.len());
        self.join_as(&name, addresses, wants, mode);
    }

    /// A client joins under a name, which others may have, too.
    pub fn join_as(&mut self, name: &str, addresses: &[String], wants: f64, mode: Mode) {
        let index = self.members.len();
        self.ledger.book().entries.push(Entry::default());
        let config = ClientConfig {
            backoff: BackoffConfig {
                base: Duration::from_millis(100),
                cap: Duration::from_millis(400),
                ..BackoffConfig::default()
            },
            early_gap: Duration::from_millis(60),
            // Longer than a server waits for its parent.
            timeout: Duration::from_secs(2),
            ..ClientConfig::default()
        };
        let client = Client::builder(name)
            .addresses(addresses)
            .config(config)
            .hooks(Arc::new(Clerk {
                ledger: Arc::clone(&self.ledger),
                index,
            }))
            .connect_lazy()
            .unwrap();
        let resource = client.resource(&self.resource).wants(wants).mode(mode);
        let resource = resource.open().unwrap();
        self.ledger.book().entries[index].resource = Some(resource.clone());
        self.members.push(Member {
            resource,
            mode,
            index,
            _client: client,
        });
    }

    /// What everybody should have, by who shares what: max-min fair.
    pub fn fair(&self, capacity: f64, shares: impl Fn(usize) -> bool) -> Vec<f64> {
        let wants = self.members.iter().map(|member| {
            let takes_part = shares(member.index);
            takes_part.then(|| member.resource.wants())
        });
        max_min(
            capacity,
            &wants.map(Option::unwrap_or_default).collect::<Vec<_>>(),
        )
    }

    /// Whether everybody has what it should, within 1 %, and all of it together, within 10⁻⁶.
    ///
    /// # Errors
    ///
    /// The client that is farthest off, and how far.
    pub fn check(&self, expected: &[f64]) -> Result<(), String> {
        let book = self.ledger.book();
        let held = book.entries.iter().map(|entry| entry.held);
        let (sum, should): (f64, f64) = (held.clone().sum(), expected.iter().sum());
        let off = held.zip(expected).map(|(held, expected)| {
            let off = (held - expected).abs() / expected.max(f64::MIN_POSITIVE);
            (off, held, *expected)
        });
        let worst = off.enumerate().max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0));
        match worst {
            Some((index, (off, held, expected))) if off > 0.01 => Err(format!(
                "client {index} has {held} and should have {expected}; together {sum} of {should}"
            )),
            _ if (sum - should).abs() > 1e-6 * should => Err(format!("{sum} of {should} is out")),
            _ => Ok(()),
        }
    }

    /// What each member may use from now on counts as what it had, and nothing was answered yet.
    pub fn mark(&self) {
        self.ledger.mark();
    }

    /// Whether every member had, at all times since the mark, at least that part of what it had then.
    ///
    /// # Errors
    ///
    /// Who had less.
    pub fn check_kept(&self, part: f64) -> Result<(), String> {
        let book = self.ledger.book();
        let mut fallen = String::new();
        for (index, entry) in book.entries.iter().enumerate() {
            if entry.least < entry.marked * part {
                let (least, marked) = (entry.least, entry.marked);
                let ago = entry.fell.unwrap_or_else(Instant::now).elapsed();
                let _ = write!(fallen, "; {index} from {marked} to {least}, {ago:.3?} ago");
            }
        }
        if fallen.is_empty() {
            Ok(())
        } else {
            Err(fallen)
        }
    }

    /// How many requests of a member were answered since one was not, and how many were not, since
    /// the mark.
    pub fn answer_counts(&self, index: usize) -> (u32, u32) {
        let entry = &self.ledger.book().entries[index];
        (entry.answered, entry.failed)
    }

    /// Whether nothing has changed for that long.
    ///
    /// # Errors
    ///
    /// When it last did.
    pub fn check_quiet(&self, time: Duration) -> Result<(), String> {
        let moved = self.ledger.book().moved.map(|moved| moved.elapsed());
        match moved {
            Some(moved) if moved < time => Err(format!("something has changed {moved:?} ago")),
            _ => Ok(()),
        }
    }

    /// The largest sum that members could use at one time, and how often that was looked at.
    pub fn peak(&self) -> (f64, u64) {
        let book = self.ledger.book();
        (book.peak, book.looks)
    }

    /// Waits until something holds. Fails if it never does, or if more is in use than there is.
    pub async fn until(&self, what: &str, mut check: impl FnMut() -> Result<(), String>) {
        let began = Instant::now();
        let mut looks = tokio::time::interval(Duration::from_millis(10));
        loop {
            looks.tick().await;
            self.assert_no_overshoot(what);
            match check() {
                Ok(()) => break,
                Err(problem) => assert!(began.elapsed() < PATIENCE, "{what}: {problem}"),
            }
        }
        println!("{what}: after {:.2?}", began.elapsed());
    }

    /// The first instant at which more was in use than there is, if there was one.
    pub fn overshoot(&self) -> Option<String> {
        self.ledger.book().overshoot.clone()
    }

    /// Fails if more was in use at any instant than there is.
    pub fn assert_no_overshoot(&self, when: &str) {
        if let Some(overshoot) = self.overshoot() {
            panic!("{when}: {overshoot}");
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // The clients' hooks know the ledger, and the ledger the clients.
        let mut book = self.ledger.book();
        let known = book.entries.iter_mut().map(|entry| entry.resource.take());
        let known: Vec<_> = known.collect();
        drop(book);
        drop(known);
    }
}

/// Who wants less than the level has what it wants, all others have the level.
pub fn max_min(capacity: f64, wants: &[f64]) -> Vec<f64> {
    let mut sorted = wants.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (mut left, mut level) = (capacity, f64::INFINITY);
    for (met, wants) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - met) as f64;
        if *wants > share {
            level = share;
            break;
        }
        left -= wants;
    }
    wants.iter().map(|wants| wants.min(level)).collect()
}
