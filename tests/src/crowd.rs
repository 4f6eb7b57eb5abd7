//! Many clients of one resource, and the sum of their leases, checked at every instant.
//!
//! The clients are those of the client library, in the test's process. One [`Ledger`] has the amount that each may use
//! by a valid lease. The clients' hooks update it on every change. It is also checked every millisecond, because leases
//! end and come back by themselves.
//!
//! **Why its sum proves something,** although clients change concurrently: a client enters a smaller amount in the
//! ledger *before* it sends the request that acknowledges it, and waits for the ledger's lock. So while the ledger is
//! checked, no client can have been granted an amount that is still entered for another one. A lease that has ended by
//! a client's own clock does not count. The sum is taken twice, so that a lease that ends between the two looks is no
//! violation.

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doorward::state::{BackoffConfig, ClientConfig};
use doorward::{Capacity, Client, Hooks, Mode, Resource, Source};

use tokio::time::Instant;

use crate::processes::PATIENCE;

/// Relative error of a sum because of rounding, at most.
const ROUNDING: f64 = 1e-9;

/// State of a member.
#[derive(Default)]
struct Entry {
    resource: Option<Resource>,
    /// Its lease at its last update; 0 if it had none.
    held: f64,
    /// `held` at the mark.
    marked: f64,
    /// The least of `held` since the mark, and the time when it first fell.
    least: f64,
    fell: Option<Instant>,
    /// Requests since the mark: the failed ones, and the answered ones after them.
    failed: u32,
    answered: u32,
}

impl Entry {
    /// Returns the amount that it may use by a lease now.
    fn usable(&self) -> f64 {
        let Some(resource) = &self.resource else {
            return self.held;
        };
        let holding = resource.holding();
        match holding.source {
            // It may have more than the ledger shows; its update comes next.
            Source::Lease => holding.capacity.get().min(self.held),
            Source::Mode => 0.0,
        }
    }
}

#[derive(Default)]
struct Book {
    entries: Vec<Entry>,
    /// Time of the last update.
    moved: Option<Instant>,
    looks: u64,
    /// Largest sum that was in use.
    peak: f64,
    /// The first violation.
    overshoot: Option<String>,
}

/// Amounts that all members may use.
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
        // Only if the sum is too large, it matters which leases have ended meanwhile.
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

    /// Takes each member's present amount as its earlier one, see [`Crowd::kept`].
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
    /// Resource that the test uses.
    pub resource: Resource,
    /// Mode of the client.
    pub mode: Mode,
    index: usize,
    _client: Client,
}

/// Clients of one resource, at any servers.
pub struct Crowd {
    resource: String,
    ledger: Arc<Ledger>,
    /// Members in the order in which they joined.
    pub members: Vec<Member>,
    /// Time after which members that join from now on give up a request. At first longer than a server waits for its
    /// parent.
    pub timeout: Duration,
}

impl Crowd {
    /// Creates an empty crowd that may use `capacity` together. Must be called within a tokio runtime.
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
            timeout: Duration::from_secs(2),
        }
    }

    /// Adds a client of one server. It is impatient, so that it returns soon after its server does.
    pub fn join(&mut self, address: &str, wants: f64, mode: Mode) {
        self.join_any(&[address.to_owned()], wants, mode);
    }

    /// Adds a client of the servers of a node.
    pub fn join_any(&mut self, addresses: &[String], wants: f64, mode: Mode) {
        let name = format!("client-{}", self.members.len());
        self.join_as(&name, addresses, wants, mode);
    }

    /// Adds a client with a name, which other clients may have too.
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
            timeout: self.timeout,
            ..ClientConfig::default()
        };
        let client = Client::builder()
            .id(name)
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

    /// Returns the max-min fair amounts of all members, where `shares` selects those that share.
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

    /// Checks that every member has its expected amount within 1 %, and all together within 10⁻⁶.
    ///
    /// # Errors
    ///
    /// The client that is farthest off, with its distance.
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

    /// Takes each member's present amount as its earlier one, and resets the counts of answers.
    pub fn mark(&self) {
        self.ledger.mark();
    }

    /// Checks that every member had, at all times since the mark, at least that part of its earlier amount.
    ///
    /// # Errors
    ///
    /// The members that had less.
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

    /// Returns the number of a member's requests that were answered since the last failed one, and the number of failed
    /// ones, since the mark.
    pub fn answer_counts(&self, index: usize) -> (u32, u32) {
        let entry = &self.ledger.book().entries[index];
        (entry.answered, entry.failed)
    }

    /// Checks that nothing has changed for that long.
    ///
    /// # Errors
    ///
    /// The time of the last change.
    pub fn check_quiet(&self, time: Duration) -> Result<(), String> {
        let moved = self.ledger.book().moved.map(|moved| moved.elapsed());
        match moved {
            Some(moved) if moved < time => Err(format!("something has changed {moved:?} ago")),
            _ => Ok(()),
        }
    }

    /// Returns the largest sum that members could use at one time, and the number of looks.
    pub fn peak(&self) -> (f64, u64) {
        let book = self.ledger.book();
        (book.peak, book.looks)
    }

    /// Waits until something holds. Fails if it never does, or if the use exceeds the capacity.
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

    /// Returns the first instant at which the use exceeded the capacity, if there was one.
    pub fn overshoot(&self) -> Option<String> {
        self.ledger.book().overshoot.clone()
    }

    /// Fails if the use ever exceeded the capacity.
    pub fn assert_no_overshoot(&self, when: &str) {
        if let Some(overshoot) = self.overshoot() {
            panic!("{when}: {overshoot}");
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // The clients' hooks refer to the ledger, and the ledger to the clients.
        let mut book = self.ledger.book();
        let known = book.entries.iter_mut().map(|entry| entry.resource.take());
        let known: Vec<_> = known.collect();
        drop(book);
        drop(known);
    }
}

/// Returns max-min fair amounts: a member that wants less than the level has its wants, all others have the level.
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
