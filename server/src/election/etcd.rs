//! An election in etcd, by the rules of `term`.
//!
//! A candidate holds one etcd lease, under which it is registered as a server of its node. The key
//! of the master is created in a transaction, by whoever finds that there is none, under the same
//! lease; nobody queues for it, so nobody is handed it after its own lease is gone. Everything is
//! one loop that is called again whenever something may have changed, and begins by looking at
//! what is true: the lease, the keys of the node as they are followed, the time.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::node::mastership::Mastership;
use doorward_etcd::directory::{Master, Registration, Servers, Term};
use doorward_etcd::follow::{Follow, Followed, Range, View};
use doorward_etcd::layout::NodeKeys;
use doorward_etcd::{Connection, Error};
use etcd_client::{
    Client, Compare, CompareOp, LeaseGrantResponse, PutOptions, Txn, TxnOp, TxnOpResponse,
    TxnResponse,
};
use serde::Serialize;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::clock;
use crate::election::{Candidate, Standing, term};

/// How candidates meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where etcd is.
    pub etcd: doorward_etcd::Config,
    /// What the keys of all nodes begin with.
    pub prefix: String,
    /// How long the master's lease lasts without being renewed: about how long the node is without
    /// a master after a crash. Whole seconds, at least 2.
    pub ttl: Duration,
}

/// How etcd is doing, as this server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    /// Since when, since the Unix epoch.
    pub since: Duration,
    /// Why it cannot be asked. None: it can.
    pub problem: Option<String>,
}

/// A call of etcd must be over well before the next renewal is due.
const CALL_TIMEOUT: (Duration, Duration) =
    (Duration::from_millis(250), Duration::from_millis(1_500));

/// Waits between attempts when no endpoint answers: from the first to the second.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// How often the node's keys are read although nothing is told of them.
const LOOK: Duration = Duration::from_secs(2);

/// How long a resignation may take.
const RESIGN_TIMEOUT: Duration = Duration::from_secs(1);

/// An election that is taken part in.
#[derive(Debug)]
pub struct Running {
    standings: watch::Receiver<Standing>,
    contact: watch::Receiver<Contact>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    /// The standing, whenever it changes or is confirmed.
    pub fn standings(&self) -> watch::Receiver<Standing> {
        self.standings.clone()
    }

    /// How etcd is doing.
    pub fn contact(&self) -> watch::Receiver<Contact> {
        self.contact.clone()
    }

    /// See [`super::Running::resign`].
    pub async fn resign(mut self) {
        drop(self.stop.take());
        let resigned = tokio::time::timeout(RESIGN_TIMEOUT, &mut self.task).await;
        if resigned.is_err() {
            warn!("etcd does not answer: the mastership ends when its lease does");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes part.
pub fn start(mut config: Config, candidate: Candidate) -> Running {
    config.etcd.call_timeout = (config.ttl / 6).clamp(CALL_TIMEOUT.0, CALL_TIMEOUT.1);
    let etcd = Arc::new(config.etcd);
    let keys = NodeKeys::new(&config.prefix, &candidate.node);
    let range = Range::Prefix(keys.prefix().to_owned());
    let follow = Follow::start(Arc::clone(&etcd), range, LOOK);
    let (standings, standings_told) = watch::channel(Standing::UNKNOWN);
    let (contact, contact_told) = watch::channel(Contact {
        since: clock::wall(),
        problem: Some("it was not asked yet".to_owned()),
    });
    let (stop, stopped) = oneshot::channel();
    let campaign = Campaign {
        ttl: config.ttl,
        keys,
        server: format!("{:016x}", clock::seed()),
        connection: Connection::new(etcd),
        nodes: follow.receiver(),
        _follow: follow,
        candidate,
        lease: None,
        registered: None,
        held: None,
        last: None,
        failures: 0,
        is_down_told: false,
        standings,
        contact,
    };
    Running {
        standings: standings_told,
        contact: contact_told,
        stop: Some(stop),
        task: tokio::spawn(campaign.run(stopped)),
    }
}

/// The lease of this server in etcd.
#[derive(Clone, Copy, Debug)]
struct Lease {
    id: i64,
    /// As it was granted, which may be longer than asked for.
    ttl: Duration,
    /// When the last renewal was sent that was answered.
    renewed: Instant,
}

impl Lease {
    fn next_renewal(&self) -> Instant {
        self.renewed + self.ttl / 3
    }
}

/// The master's key, while it is ours.
#[derive(Clone, Copy, Debug)]
struct Held {
    epoch: u64,
    /// When the predecessor has ended for certain.
    begins: Instant,
    /// Until when it is confirmed. None: it was not yet.
    valid_until: Option<Instant>,
}

struct Campaign {
    candidate: Candidate,
    ttl: Duration,
    keys: NodeKeys,
    /// Which process this is.
    server: String,
    connection: Connection,
    /// The keys of the node.
    nodes: watch::Receiver<Followed>,
    _follow: Follow,
    lease: Option<Lease>,
    /// What stands under our key as a server, under the present lease, and since which revision.
    registered: Option<(Registration, u64)>,
    held: Option<Held>,
    /// The last term of anybody that was seen, and when.
    last: Option<(Term, Instant)>,
    failures: u32,
    is_down_told: bool,
    standings: watch::Sender<Standing>,
    contact: watch::Sender<Contact>,
}

impl Campaign {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            let gone = self.own_key_gone();
            let next = tokio::select! {
                biased;
                _ = &mut stopped => break,
                () = gone => {
                    self.lose("its key in etcd was deleted");
                    Instant::now()
                }
                next = self.step() => next,
            };
            self.publish();
            tokio::select! {
                _ = &mut stopped => break,
                () = self.wait(next) => {}
            }
        }
        self.standings.send_replace(Standing::UNKNOWN);
        self.resign().await;
    }

    /// Does what is to be done now. Returns when to come again at the latest.
    async fn step(&mut self) -> Instant {
        match self.try_step().await {
            Ok(next) => {
                self.failures = 0;
                self.note_contact(None);
                next
            }
            Err(Error::LeaseGone) => {
                self.lose("its lease in etcd is gone");
                self.lease = None;
                self.registered = None;
                Instant::now()
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                debug!(%error, "the election is not asked");
                let others = u32::try_from(self.connection.endpoints()).unwrap_or(u32::MAX);
                // One endpoint that fails is no problem yet: the others are tried at once.
                let Some(round) = self.failures.checked_sub(others) else {
                    return Instant::now();
                };
                self.note_contact(Some(error.to_string()));
                let most = BACKOFF.0.saturating_mul(1 << round.min(10)).min(BACKOFF.1);
                Instant::now() + clock::some_of(most)
            }
        }
    }

    async fn try_step(&mut self) -> Result<Instant, Error> {
        self.note_last_term();
        let lease = match self.lease {
            None => self.grant().await?,
            Some(lease) if lease.next_renewal() <= Instant::now() => self.renew(lease).await?,
            Some(lease) => lease,
        };
        self.register(lease).await?;
        let is_vacant = self.view().is_some_and(|view| {
            // Until the view is past our own key, it tells of the time before.
            self.held.is_none() && !view.entries.contains_key(&self.keys.master())
        });
        if is_vacant && *self.candidate.able.borrow() {
            self.campaign(lease).await?;
        }
        if self.held.is_some_and(|held| held.valid_until.is_none()) {
            self.confirm(lease).await?;
        }
        Ok(lease.next_renewal())
    }

    /// Waits until something may have changed.
    async fn wait(&mut self, next: Instant) {
        let begins = self
            .held
            .map(|held| held.begins)
            .filter(|begins| *begins > Instant::now());
        let until = begins.map_or(next, |begins| begins.min(next));
        let able = async {
            if self.candidate.able.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            _ = self.nodes.changed() => {}
            () = able => {}
        }
    }

    /// The keys of the node, as far as they are known.
    fn view(&self) -> Option<Arc<View>> {
        self.nodes.borrow().view.clone()
    }

    /// Waits until the key that made us master is seen to be gone. For ever if there is none.
    fn own_key_gone(&self) -> impl Future<Output = ()> + use<> {
        let (mut nodes, key) = (self.nodes.clone(), self.keys.master());
        let epoch = self.held.map(|held| held.epoch);
        let is_gone = move |followed: &Followed| {
            let Some((view, epoch)) = followed.view.as_ref().zip(epoch) else {
                return false;
            };
            let created = view
                .entries
                .get(&key)
                .map(|entry| revision(entry.create_revision));
            // A view of before says nothing.
            revision(view.revision) >= epoch && created != Some(epoch)
        };
        async move {
            if nodes.wait_for(is_gone).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Remembers who was master last, and when that was heard of, whatever becomes of the key.
    fn note_last_term(&mut self) {
        let Some(view) = self.view() else { return };
        let entry = view.entries.get(&self.keys.term());
        if let Some((term, entry)) = Servers::of_view(&self.keys, &view).term.zip(entry) {
            self.last = Some((term, entry.seen_at));
        }
    }

    async fn grant(&mut self) -> Result<Lease, Error> {
        let ttl = i64::try_from(self.ttl.as_secs()).unwrap_or(i64::MAX);
        let renewed = Instant::now();
        let granted: LeaseGrantResponse = self
            .connection
            .call("grant a lease", async move |client: &mut Client| {
                client.lease_grant(ttl, None).await
            })
            .await?;
        let lease = Lease {
            id: granted.id(),
            ttl: Duration::from_secs(granted.ttl().unsigned_abs()),
            renewed,
        };
        self.lease = Some(lease);
        Ok(lease)
    }

    async fn renew(&mut self, lease: Lease) -> Result<Lease, Error> {
        // A stream of its own for each renewal: one that is kept may be dead without telling.
        let renewed = Instant::now();
        self.connection
            .call("renew a lease", async move |client: &mut Client| {
                client.lease_keep_alive(lease.id).await
            })
            .await?;
        let lease = Lease { renewed, ..lease };
        if self.held.is_some() {
            // Before it is noted as renewed: if this fails, both are tried again soon.
            self.confirm(lease).await?;
        }
        self.lease = Some(lease);
        Ok(lease)
    }

    /// Tells where we are.
    async fn register(&mut self, lease: Lease) -> Result<(), Error> {
        let registration = self.registration();
        let key = self.keys.server(&registration.address);
        if let Some((registered, since)) = &self.registered {
            let is_there = self.view().is_none_or(|view| {
                // A view of before says nothing.
                revision(view.revision) < *since || view.entries.contains_key(&key)
            });
            if is_there && *registered == registration {
                return Ok(());
            }
        }
        let value = json(&registration);
        let put = self
            .connection
            .call("register", async move |client: &mut Client| {
                let options = PutOptions::new().with_lease(lease.id);
                client.put(key, value, Some(options)).await
            })
            .await?;
        let since = put.header().map_or(0, |header| revision(header.revision()));
        self.registered = Some((registration, since));
        Ok(())
    }

    fn registration(&self) -> Registration {
        let own = (self.candidate.place)();
        // Only the master speaks with the parent and the children, and knows.
        let of_master = self
            .view()
            .filter(|_| self.held.is_none())
            .and_then(|view| {
                let servers = Servers::of_view(&self.keys, &view);
                let (master, _) = servers.master?;
                let mut all = servers.servers.into_iter();
                all.find(|server| server.address == master.address)
            });
        let (role, level) = of_master.map_or((own.role, own.level), |it| (it.role, it.level));
        Registration {
            node: self.candidate.node.clone(),
            address: self.candidate.address.clone(),
            http_address: self.candidate.http_address.clone(),
            server: self.server.clone(),
            role,
            level,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Becomes the master, if nobody is.
    async fn campaign(&mut self, lease: Lease) -> Result<(), Error> {
        let master = json(&Master {
            address: self.candidate.address.clone(),
            server: self.server.clone(),
        });
        let key = self.keys.master();
        let put = PutOptions::new().with_lease(lease.id);
        let txn = Txn::new()
            .when([Compare::create_revision(key.clone(), CompareOp::Equal, 0)])
            .and_then([
                TxnOp::put(key, master, Some(put)),
                TxnOp::get(self.keys.term(), None),
            ]);
        let answer = self.transact("stand for election", txn).await?;
        if !answer.succeeded() {
            // Somebody else was faster; it will be seen.
            return Ok(());
        }
        let won = Instant::now();
        let epoch = answer
            .header()
            .map_or(0, |header| revision(header.revision()));
        if let Some(last) = self.term_in(&answer, won) {
            self.last = Some(last);
        }
        let last = self.last.as_ref().map(|(term, seen)| (term, *seen));
        let begins = term::may_begin(last, &self.server, won);
        if begins > won {
            info!(
                epoch,
                wait = ?begins - won,
                "elected; the master before may still believe in its mastership, and is given time"
            );
        } else {
            debug!(epoch, "elected");
        }
        self.held = Some(Held {
            epoch,
            begins,
            valid_until: None,
        });
        Ok(())
    }

    /// The last term, as the transaction found it, and when it was seen.
    fn term_in(&self, answer: &TxnResponse, now: Instant) -> Option<(Term, Instant)> {
        let found = answer.op_responses().into_iter().find_map(|op| match op {
            TxnOpResponse::Get(found) => found.kvs().first().cloned(),
            _ => None,
        })?;
        let term = serde_json::from_slice(found.value()).ok()?;
        let view = self.view();
        let entry = view.as_ref()?.entries.get(&self.keys.term());
        let seen = entry
            .filter(|entry| entry.mod_revision == found.mod_revision())
            .map_or(now, |entry| entry.seen_at);
        Some((term, seen))
    }

    /// Asks etcd whether the key still is ours, after a renewal that it has answered, and tells
    /// whoever may succeed us.
    async fn confirm(&mut self, lease: Lease) -> Result<(), Error> {
        let Some(held) = self.held else {
            return Ok(());
        };
        let answer = self.end_or_confirm(held, lease.ttl, false).await?;
        if answer.succeeded() {
            self.held = Some(Held {
                valid_until: Some(term::valid_until(lease.renewed, lease.ttl)),
                ..held
            });
        } else {
            self.lose("its key in etcd is not its own any more");
        }
        Ok(())
    }

    async fn end_or_confirm(
        &mut self,
        held: Held,
        ttl: Duration,
        resigned: bool,
    ) -> Result<TxnResponse, Error> {
        let term = json(&Term {
            epoch: held.epoch,
            address: self.candidate.address.clone(),
            server: self.server.clone(),
            length_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
            resigned,
        });
        let key = self.keys.master();
        let epoch = i64::try_from(held.epoch).unwrap_or(i64::MAX);
        let mut ops = vec![TxnOp::put(self.keys.term(), term, None)];
        if resigned {
            ops.push(TxnOp::delete(key.clone(), None));
        }
        let txn = Txn::new()
            .when([Compare::create_revision(key, CompareOp::Equal, epoch)])
            .and_then(ops);
        let what = if resigned {
            "resign"
        } else {
            "confirm a mastership"
        };
        self.transact(what, txn).await
    }

    async fn transact(&mut self, what: &'static str, txn: Txn) -> Result<TxnResponse, Error> {
        self.connection
            .call(what, async move |client: &mut Client| client.txn(txn).await)
            .await
    }

    fn lose(&mut self, why: &str) {
        if let Some(held) = self.held.take() {
            warn!(epoch = held.epoch, why, "mastership lost");
        }
    }

    /// Tells the server how it stands.
    fn publish(&self) {
        let now = Instant::now();
        let standing = match self.held {
            Some(held) => match held.valid_until {
                Some(until) if held.begins <= now && now < until => Standing {
                    mastership: Mastership::Master {
                        epoch: Some(held.epoch),
                    },
                    valid_until: Some(until),
                },
                _ => Standing::UNKNOWN,
            },
            None => Standing {
                mastership: self.master_elsewhere(now),
                valid_until: None,
            },
        };
        self.standings.send_if_modified(|told| {
            let is_news = *told != standing;
            *told = standing;
            is_news
        });
    }

    fn master_elsewhere(&self, now: Instant) -> Mastership {
        let followed = self.nodes.borrow();
        // Who was master when etcd was last heard of, may not be any more.
        let is_old = followed.problem.is_some() && followed.heard_at + self.ttl < now;
        match &followed.view {
            Some(view) if !is_old => {
                let servers = Servers::of_view(&self.keys, view);
                term::seen_by_follower(&servers, &self.candidate.address)
            }
            _ => Mastership::Unknown,
        }
    }

    fn note_contact(&mut self, problem: Option<String>) {
        let is_down = problem.is_some();
        if let Some(problem) = &problem
            && !self.is_down_told
        {
            warn!(problem, "etcd cannot be asked; trying on");
        } else if !is_down && self.is_down_told {
            info!("etcd answers again");
        }
        self.is_down_told = is_down;
        self.contact.send_if_modified(|contact| {
            let is_news = contact.problem != problem;
            if contact.problem.is_some() != is_down {
                contact.since = clock::wall();
            }
            contact.problem = problem;
            is_news
        });
    }

    /// Takes everything back that stands in etcd for us, the mastership first.
    async fn resign(mut self) {
        if let Some((held, lease)) = self.held.zip(self.lease) {
            match self.end_or_confirm(held, lease.ttl, true).await {
                Ok(_) => info!(epoch = held.epoch, "mastership resigned"),
                Err(error) => warn!(%error, "the mastership could not be resigned"),
            }
        }
        if let Some(lease) = self.lease {
            let revoked = self
                .connection
                .call("revoke a lease", async move |client: &mut Client| {
                    client.lease_revoke(lease.id).await
                })
                .await;
            if let Err(error) = revoked {
                debug!(%error, "the lease runs out by itself");
            }
        }
    }
}

/// Revisions of etcd begin at 1.
fn revision(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}

/// Plain data with names for keys: it can always be written.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
