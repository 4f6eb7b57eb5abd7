//! A campaign: one candidate's part in an election, as a loop that is called again whenever something
//! may have changed, and begins by looking at what is true: the lease, the keys of the node as they
//! are followed, the time.

use std::sync::Arc;
use std::time::Duration;

use doorward_clock::Instant;
use doorward_engine::node::mastership::Mastership;
use doorward_etcd::directory::{Registration, Servers, Term};
use doorward_etcd::follow::{Entry, Follow, Followed, View};
use doorward_etcd::{Connection, Error};
use etcd_client::{Client, LeaseGrantResponse, PutOptions, ResponseHeader, Txn, TxnResponse};
use tokio::sync::{oneshot, watch};
use tracing::{debug, info, warn};

use super::claim::{self, Claim, Created};
use super::contact::Contacts;
use super::held::{Held, Lease};
use crate::clock;
use crate::election::{Candidate, Standing, term};

/// Waits between attempts when no endpoint answers: from the first to the second.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// How long one attempt to resign may take.
const RESIGN_ATTEMPT: Duration = Duration::from_millis(300);

pub(super) struct Campaign {
    candidate: Candidate,
    ttl: Duration,
    claim: Claim,
    connection: Connection,
    /// The keys of the node.
    nodes: watch::Receiver<Followed>,
    _follow: Follow,
    lease: Option<Lease>,
    /// What stands under our key as a server, under the present lease, and since which revision.
    registered: Option<(Registration, i64)>,
    held: Option<Held>,
    /// The lease and the creation of the key that was lost last: views may still show it.
    lost: Option<(i64, i64)>,
    /// The last term of anybody that was seen, and when.
    last: Option<(Term, Instant)>,
    /// Some predecessor may believe in its mastership until then, whatever became of ours since we
    /// heard of it: our own term has taken the place of its term.
    not_before: Option<Instant>,
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
        standings: watch::Sender<Standing>,
        contacts: Contacts,
    ) -> Self {
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
            lost: None,
            last: None,
            not_before: None,
            failures: 0,
            standings,
            contacts,
        }
    }

    /// Until it is stopped; then gives everything back.
    pub(super) async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
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
        self.note_last_term();
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
        if self.held.is_some_and(|held| held.valid_until.is_none()) {
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
        }
    }

    /// The keys of the node, as far as they are known.
    fn view(&self) -> Option<Arc<View>> {
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

    /// Remembers who was master last, and when that was heard of, whatever becomes of the key.
    fn note_last_term(&mut self) {
        if let Some(view) = self.view() {
            let found = self.claim.term_in_view(&view, self.ttl);
            self.note_term(found);
        }
    }

    fn note_term(&mut self, found: Option<(Term, Instant)>) {
        let Some((mut term, seen)) = found else {
            return;
        };
        if let Some((last, _)) = &self.last
            && term.server.is_empty()
        {
            // It cannot be read.
            term.epoch = last.epoch;
        }
        self.last = Some((term, seen));
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

    /// Tells where we are.
    async fn register(&mut self, lease: Lease) -> Result<(), Error> {
        let registration = self.registration();
        let key = self.claim.keys.server(&registration.address);
        if let Some((registered, since)) = &self.registered {
            let is_there = self.view().is_none_or(|view| {
                let entry = view.entries.get(&key);
                let is_ours = |entry: &Entry| self.claim.is_registered(entry, registered, lease.id);
                // A view of before says nothing.
                view.revision < *since || entry.is_some_and(is_ours)
            });
            if is_there && *registered == registration {
                return Ok(());
            }
        }
        let value = claim::json(&registration);
        let put = self
            .connection
            .call("register", async move |client: &mut Client| {
                let options = PutOptions::new().with_lease(lease.id);
                client.put(key, value, Some(options)).await
            })
            .await?;
        let since = put.header().map_or(0, ResponseHeader::revision);
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
                let servers = Servers::of_view(&self.claim.keys, &view);
                let (master, _) = servers.master?;
                let mut all = servers.servers.into_iter();
                all.find(|server| server.address == master.address)
            });
        let (role, level) = of_master.map_or((own.role, own.level), |it| (it.role, it.level));
        Registration {
            node: self.candidate.node.clone(),
            address: self.candidate.address.clone(),
            http_address: self.candidate.http_address.clone(),
            server: self.claim.server.clone(),
            role,
            level,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Becomes the master, if nobody is.
    async fn stand(&mut self, lease: Lease, view: &View) -> Result<(), Error> {
        let last = self.last.as_ref().map(|(term, _)| term);
        let epoch_offset = term::epoch_offset(last, claim::unsigned(view.revision));
        let stand = self.claim.stand(epoch_offset, lease.id);
        let answer = self.transact("stand for election", stand).await?;
        if !answer.succeeded() {
            // Somebody else was faster; it will be seen.
            return Ok(());
        }
        let now = Instant::now();
        let found = self.claim.term_found(&answer, view, self.ttl, now);
        self.note_term(found);
        let revision = answer.header().map_or(0, ResponseHeader::revision);
        let created = Created {
            revision,
            epoch_offset,
        };
        self.hold(created, now).await
    }

    /// The key was created for us, and we were not told.
    async fn take_up(&mut self, lease: Lease, entry: &Entry) -> Result<(), Error> {
        let is_lost = self.lost == Some((lease.id, entry.create_revision));
        match self.claim.created_by_us(entry) {
            Some(created) if !is_lost => self.hold(created, Instant::now()).await,
            _ => Ok(()),
        }
    }

    async fn hold(&mut self, created: Created, won: Instant) -> Result<(), Error> {
        let last = self.last.as_ref().map(|(term, seen)| (term, *seen));
        let epoch = created.epoch();
        if last.is_some_and(|(last, _)| last.epoch >= epoch) {
            debug!("etcd has gone back since its keys were read; standing again when they are");
            let give_back = self.claim.give_back(created);
            self.transact("give a mastership back", give_back).await?;
            return Ok(());
        }
        let begins = term::may_begin(last, &self.claim.server, won);
        let begins = self.not_before.map_or(begins, |before| before.max(begins));
        let vacant_since = term::vacant_since(last, self.not_before, begins);
        self.not_before = Some(begins);
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
        let length = term::length(held.begins, lease.ttl, Instant::now());
        let confirm = self.claim.confirm(held.created, length, restore);
        let answer = self.transact("confirm a mastership", confirm).await?;
        if answer.succeeded() {
            self.held = Some(Held {
                valid_until: Some(term::valid_until(
                    lease.renewed,
                    lease.ttl,
                    self.candidate.clock_tolerance,
                )),
                ..held
            });
        } else {
            self.lose("its key in etcd is not its own any more");
        }
        Ok(())
    }

    async fn transact(&mut self, what: &'static str, txn: Txn) -> Result<TxnResponse, Error> {
        self.connection
            .call(what, async move |client: &mut Client| client.txn(txn).await)
            .await
    }

    fn lose(&mut self, why: &str) {
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
            None => Standing {
                mastership: self.master_elsewhere(now),
                held: None,
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
                let servers = Servers::of_view(&self.claim.keys, view);
                term::seen_by_follower(&servers, &self.candidate.address)
            }
            _ => Mastership::Unknown,
        }
    }

    /// Takes everything back that stands in etcd for us, the mastership first.
    async fn resign(mut self) {
        if let Some((held, lease)) = self.held.zip(self.lease) {
            let epoch = held.created.epoch();
            let now = Instant::now();
            let length = term::length(held.begins, lease.ttl, now);
            // One that has not begun has nothing to give up but the key: its predecessor's time is not
            // over.
            let resign = self.claim.resign(held.created, length, held.begins <= now);
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
