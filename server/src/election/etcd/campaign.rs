//! A campaign: one candidate's part in an election, as a loop that is called again whenever something
//! may have changed, and begins by looking at what is true: the lease, the keys of the node as they
//! are followed, the time.

use std::sync::Arc;
use std::time::Duration;

use doorward_clock::Instant;
use doorward_engine::node::mastership::Mastership;
use doorward_etcd::directory::{Registration, Servers};
use doorward_etcd::follow::{Entry, Follow, Followed, View};
use doorward_etcd::{Connection, Error};
use etcd_client::{Client, LeaseGrantResponse, ResponseHeader, Txn, TxnResponse};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{debug, info, warn};

use super::claim::{self, Claim, Created, Told};
use super::contact::Contacts;
use super::held::{Held, Lease};
use super::history::History;
use crate::clock;
use crate::election::gate::Change;
use crate::election::lengths::Lengths;
use crate::election::past::Past;
use crate::election::{Candidate, Standing, term};

/// Waits between attempts when no endpoint answers: from the first to the second.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// How long one attempt to resign may take.
const RESIGN_ATTEMPT: Duration = Duration::from_millis(300);

/// What a campaign hears from its server, and where it tells what becomes of it.
pub(super) struct Ways {
    pub(super) changes: mpsc::Receiver<Change>,
    pub(super) standings: watch::Sender<Standing>,
    pub(super) contacts: Contacts,
}

pub(super) struct Campaign {
    pub(super) candidate: Candidate,
    ttl: Duration,
    pub(super) claim: Claim,
    pub(super) connection: Connection,
    /// The keys of the node.
    nodes: watch::Receiver<Followed>,
    _follow: Follow,
    pub(super) lease: Option<Lease>,
    /// What stands under our key as a server, under the present lease, and since which revision.
    pub(super) registered: Option<(Registration, i64)>,
    pub(super) held: Option<Held>,
    /// Until when this server may decide at most, by the last mastership that was confirmed.
    pub(super) decides_until: Option<Instant>,
    /// The lease and the creation of the key that was lost last: views may still show it.
    lost: Option<(i64, i64)>,
    pub(super) past: Past,
    /// By which templates leases are granted. None: the parent tells how long they last.
    pub(super) lengths: Option<Lengths>,
    pub(super) history: History,
    changes: mpsc::Receiver<Change>,
    /// Templates that are not in force before etcd has confirmed what is told of them.
    pub(super) next: Option<Change>,
    failures: u32,
    standings: watch::Sender<Standing>,
    contacts: Contacts,
}

impl Campaign {
    pub(super) fn new(
        ttl: Duration,
        claim: Claim,
        connection: Connection,
        follow: Follow,
        candidate: Candidate,
        ways: Ways,
    ) -> Self {
        let Ways {
            changes,
            standings,
            contacts,
        } = ways;
        let templates = candidate.templates.clone();
        let history = History::new(templates.as_ref().and_then(|it| it.history.clone()));
        let tolerance = candidate.clock_tolerance;
        let lengths = templates.map(|it| Lengths::new(it.in_force, tolerance));
        Self {
            ttl,
            claim,
            connection,
            nodes: follow.receiver(),
            _follow: follow,
            candidate,
            lease: None,
            registered: None,
            held: None,
            decides_until: None,
            lost: None,
            past: Past::default(),
            lengths,
            history,
            changes,
            next: None,
            failures: 0,
            standings,
            contacts,
        }
    }

    /// Until it is stopped; then gives everything back.
    pub(super) async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            self.apply_if_nobody_decides();
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
            self.apply_if_nobody_decides();
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
                self.contacts.note(None);
                next
            }
            Err(Error::LeaseGone) => {
                self.lose("its lease in etcd is gone");
                self.lease = None;
                self.registered = None;
                // Not in a rush, should etcd lose every lease at once.
                Instant::now() + clock::some_of(BACKOFF.0)
            }
            Err(error) => {
                self.failures = self.failures.saturating_add(1);
                debug!(%error, "the election is not asked");
                let others = u32::try_from(self.connection.endpoints()).unwrap_or(u32::MAX);
                // One endpoint that fails is no problem yet: the others are tried at once.
                let Some(round) = self.failures.checked_sub(others) else {
                    return Instant::now();
                };
                self.contacts.note(Some(error.to_string()));
                let most = BACKOFF.0.saturating_mul(1 << round.min(10)).min(BACKOFF.1);
                Instant::now() + clock::some_of(most)
            }
        }
    }

    async fn try_step(&mut self) -> Result<Instant, Error> {
        if let Some(view) = self.view() {
            self.note(&view);
        }
        let lease = match self.lease {
            Some(lease) if lease.next_renewal() > Instant::now() => lease,
            _ if self.failures > 0 => {
                self.hear().await?;
                self.renew_or_grant().await?
            }
            _ => self.renew_or_grant().await?,
        };
        self.register(lease).await?;
        self.look_at_the_key(lease).await?;
        let is_new = self.held.is_some_and(|held| held.valid_until.is_none());
        if is_new || self.next.is_some() {
            self.confirm(lease, None).await?;
        }
        Ok(lease.next_renewal())
    }

    /// After a failure: asks what changes nothing first. If answers do not come back, a renewal that
    /// arrives would keep a mastership that nobody can use.
    async fn hear(&mut self) -> Result<(), Error> {
        let key = self.claim.keys.master();
        self.connection
            .call("get", async move |client: &mut Client| {
                client.get(key, None).await
            })
            .await?;
        Ok(())
    }

    async fn renew_or_grant(&mut self) -> Result<Lease, Error> {
        match self.lease {
            Some(lease) => self.renew(lease).await,
            None => self.grant().await,
        }
    }

    /// Does what the master's key asks for, as far as it is known.
    async fn look_at_the_key(&mut self, lease: Lease) -> Result<(), Error> {
        let Some(view) = self.view() else {
            return Ok(());
        };
        // It may be newer than what was noted: a term that was written before our key was.
        self.note(&view);
        self.stand_aside_if_too_low().await?;
        let entry = view.entries.get(&self.claim.keys.master());
        let is_able = *self.candidate.able.borrow();
        match (self.held, entry) {
            (None, None) if is_able => self.stand(lease, &view).await,
            (None, Some(entry)) if entry.lease == lease.id => self.take_up(lease, entry).await,
            // It was written by hand. Whoever is the master has time to mend it.
            (None, Some(entry))
                if is_able && entry.lease == 0 && entry.seen_at + self.ttl < Instant::now() =>
            {
                warn!("the key of the master was written by hand and is nobody's; deleting it");
                let sweep = self.claim.sweep(entry);
                self.transact("delete a key of nobody", sweep).await?;
                Ok(())
            }
            // etcd was restored from a backup, and went on to the same revision.
            (Some(held), Some(entry))
                if entry.create_revision == held.created.revision
                    && self.claim.is_of_another(entry) =>
            {
                self.lose("its key in etcd is another one");
                Ok(())
            }
            (Some(held), Some(entry))
                if entry.create_revision == held.created.revision
                    && !self.claim.is_intact(entry, held.created, lease.id) =>
            {
                warn!("the key of the master was written by hand; writing it again");
                self.confirm(lease, Some(lease.id)).await
            }
            _ => Ok(()),
        }
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
            () = doorward_clock::sleep_until(until) => {}
            Ok(()) = self.nodes.changed() => {}
            () = able => {}
            Some(change) = self.changes.recv(), if self.next.is_none() => {
                self.next = Some(change);
            }
        }
    }

    /// The keys of the node, as far as they are known.
    pub(super) fn view(&self) -> Option<Arc<View>> {
        self.nodes.borrow().view.clone()
    }

    /// Waits until the key that made us master is seen to be gone. For ever if there is none.
    fn own_key_gone(&self) -> impl Future<Output = ()> + use<> {
        let (mut nodes, key) = (self.nodes.clone(), self.claim.keys.master());
        let created = self.held.map(|held| held.created.revision);
        let is_gone = move |followed: &Followed| {
            let Some((view, created)) = followed.view.as_ref().zip(created) else {
                return false;
            };
            let found = view.entries.get(&key).map(|entry| entry.create_revision);
            // A view of before says nothing.
            view.revision >= created && found != Some(created)
        };
        async move {
            if nodes.wait_for(is_gone).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Remembers who was master, and when that was heard of, whatever becomes of the keys.
    fn note(&mut self, view: &View) {
        if let Some((term, seen)) = self.claim.term_in_view(view, self.ttl) {
            self.past.note_term(&term, seen);
        }
        for epoch in self.claim.epochs_of_others(view) {
            self.past.note_epoch(epoch);
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
            self.confirm(lease, None).await?;
        }
        self.lease = Some(lease);
        Ok(lease)
    }

    /// Becomes the master, if nobody is.
    async fn stand(&mut self, lease: Lease, view: &View) -> Result<(), Error> {
        let revision = claim::unsigned(view.revision);
        let epoch_offset = term::epoch_offset(self.past.highest_epoch(), revision);
        let stand = self.claim.stand(epoch_offset, lease.id);
        let answer = self.transact("stand for election", stand).await?;
        if !answer.succeeded() {
            // Somebody else was faster; it will be seen.
            return Ok(());
        }
        let now = Instant::now();
        if let Some((term, seen)) = self.claim.term_found(&answer, view, self.ttl, now) {
            self.past.note_term(&term, seen);
        }
        let revision = answer.header().map_or(0, ResponseHeader::revision);
        let created = Created {
            revision,
            epoch_offset,
        };
        self.hold(lease, created, now).await
    }

    /// The key was created for us, and we were not told.
    async fn take_up(&mut self, lease: Lease, entry: &Entry) -> Result<(), Error> {
        let Some(created) = self.claim.created_by_us(entry) else {
            return Ok(());
        };
        if self.lost == Some((lease.id, entry.create_revision)) {
            // This may be a view of before. If it is not, etcd was restored from a backup, and the key
            // would stay for as long as the lease.
            let give_back = self.claim.give_back(created);
            self.transact("give a mastership back", give_back).await?;
            return Ok(());
        }
        self.hold(lease, created, Instant::now()).await
    }

    async fn hold(&mut self, lease: Lease, created: Created, won: Instant) -> Result<(), Error> {
        let epoch = created.epoch();
        if self.past.highest_epoch() >= epoch {
            debug!("etcd has gone back since its keys were read; standing again when they are");
            let give_back = self.claim.give_back(created);
            self.transact("give a mastership back", give_back).await?;
            return Ok(());
        }
        let Some(unsaid) = self.unsaid_leases(lease).await? else {
            // The key stays, and is taken up when all is known.
            return Ok(());
        };
        let (begins, vacant_since) = self.past.begin(&self.claim.server, won);
        let longer_leases = self.inherit(vacant_since, unsaid);
        self.past.note_epoch(epoch);
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
            created,
            begins,
            vacant_since,
            longer_leases,
            valid_until: None,
        });
        Ok(())
    }

    /// Asks etcd whether the key still is ours, after a renewal that it has answered, and tells
    /// whoever may succeed us. With a lease, the key is written again.
    async fn confirm(&mut self, lease: Lease, restore: Option<i64>) -> Result<(), Error> {
        let Some(held) = self.held else {
            return Ok(());
        };
        let now = Instant::now();
        let told = Told {
            length: term::length(held.begins, lease.ttl, now),
            leases: self.told_leases(now),
        };
        let confirm = self.claim.confirm(held.created, told, lease.id, restore);
        let answer = self.transact("confirm a mastership", confirm).await?;
        if answer.succeeded() {
            let until = term::valid_until(lease.renewed, lease.ttl, self.candidate.clock_tolerance);
            let valid_until = Some(until);
            self.decides_until = valid_until;
            self.held = Some(Held {
                valid_until,
                ..held
            });
            self.apply_next();
        } else if !self.claim.is_ours_by_hand(&answer, held.created) {
            self.lose("its key in etcd is not its own any more");
        }
        Ok(())
    }

    pub(super) async fn transact(
        &mut self,
        what: &'static str,
        txn: Txn,
    ) -> Result<TxnResponse, Error> {
        self.connection
            .call(what, async move |client: &mut Client| client.txn(txn).await)
            .await
    }

    pub(super) fn lose(&mut self, why: &str) {
        if let Some(held) = self.held.take() {
            self.lost = self.lease.map(|lease| (lease.id, held.created.revision));
            warn!(epoch = held.created.epoch(), why, "mastership lost");
        }
    }

    /// Tells the server how it stands.
    fn publish(&self) {
        let now = Instant::now();
        let standing = match self.held {
            Some(held) => held.standing(now),
            None => self.master_elsewhere(now),
        };
        self.standings.send_if_modified(|told| {
            let is_news = *told != standing;
            *told = standing;
            is_news
        });
    }

    fn master_elsewhere(&self, now: Instant) -> Standing {
        let followed = self.nodes.borrow();
        // Who was master when etcd was last heard of, may not be any more.
        let is_old = followed.problem.is_some() && followed.heard_at + self.ttl < now;
        match &followed.view {
            Some(view) if !is_old => {
                let servers = Servers::of_view(&self.claim.keys, view);
                let highest = self.past.highest_epoch();
                let own = &self.candidate.address;
                let mastership = term::seen_by_follower(&servers, own, highest);
                let master_pages = match &mastership {
                    Mastership::Follower { master_address, .. } => servers.pages_of(master_address),
                    Mastership::Master { .. } | Mastership::Unknown => None,
                };
                Standing {
                    mastership,
                    held: None,
                    master_pages,
                }
            }
            _ => Standing::UNKNOWN,
        }
    }

    /// Takes everything back that stands in etcd for us, the mastership first.
    async fn resign(mut self) {
        if let Some((held, lease)) = self.held.zip(self.lease) {
            let epoch = held.created.epoch();
            let now = Instant::now();
            // What waits to be in force will never be.
            self.next = None;
            let told = Told {
                length: term::length(held.begins, lease.ttl, now),
                leases: self.told_leases(now),
            };
            // One that has not begun has nothing to give up but the key: its predecessor's time is not
            // over.
            let resign = self.claim.resign(held.created, told, held.begins <= now);
            // One endpoint may be dead; there is time for another one.
            for _ in 0..=self.connection.endpoints() {
                let resigning = self.transact("resign", resign.clone());
                match tokio::time::timeout(RESIGN_ATTEMPT, resigning).await {
                    Ok(Ok(answer)) => {
                        let was_ours = answer.succeeded();
                        info!(epoch, was_ours, "mastership resigned");
                        break;
                    }
                    Ok(Err(error)) => warn!(%error, "the mastership could not be resigned"),
                    Err(_) => self.connection.leave(),
                }
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
