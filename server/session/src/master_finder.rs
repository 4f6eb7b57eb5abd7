//! Who is asked next, of the servers of a node: a client's of its node, a child server's of its parent.
//!
//! **Any server of the node will do**, for it says who the master is. Known addresses are tried in turn, the
//! next one after each failure. Where the node is in etcd, the master that etcd names comes first, then the
//! node's other servers, then addresses that were given beside it ([`in_order`]); a master that was not named
//! before comes first, whoever's turn it was. As long as etcd is away, or knows of nobody, what it said last
//! counts.
//!
//! **Who does not follow etcd asks it now and then** ([`MasterFinder::is_look_due`]): when a server has to be
//! found anew. It is not asked after a server that said that there is no master: the servers of a node follow
//! etcd themselves, so the others of them are asked first.
//!
//! **A server that is not the master names it**, and that one is asked at once: before the one whose turn it
//! is, and until it is of no use. [`REDIRECTS_MAX`] in a row without an answer of a master between them are
//! followed; more are a loop, and the next known address is tried. Discovery is no such answer: a server that
//! says there that it is the master, and elsewhere that it is not, is part of a loop, too.
//!
//! **Who has seen a master of one epoch does not go back to an older one** while a lease is valid
//! ([`EpochFilter`]). An epoch that is absent says nothing: the node has no election, or it is a
//! Doorman server. There is nothing to compare, and the master is taken as it is.
//!
//! **An election is told apart from a node that is out of reach**, for it is over within seconds: a server that
//! says that it is not the master, and does not lead to one, is there; and a master that another server named,
//! and that cannot be asked, is about to have a successor, as has one whose epoch is out of date. How long to
//! wait then, [`backoff`](crate::backoff) says.

use std::sync::Arc;
use std::time::Duration;

use smol_str::SmolStr;
use thiserror::Error;

use crate::address::{ADDRESS_BYTES_MAX, Address};
use crate::epoch_filter::{EpochFilter, OutOfDate};
use crate::planted::{self, Bug};

/// Redirects that are followed without an answer of a master between them.
pub const REDIRECTS_MAX: u8 = 5;

/// Finds the master of one node. Small, for simulations have millions.
#[derive(Clone, Debug)]
pub struct MasterFinder {
    /// In the order in which they are tried.
    known: Arc<[Address]>,
    /// Whose turn it is of them. Within them, unless there are none.
    turn: u32,
    whom: Whom,
    /// Redirects since a master last answered.
    redirects: u8,
    /// The master that etcd named last, and its epoch.
    named: Option<Box<(Address, u64)>>,
    /// Addresses that were left since etcd told of them, as long as all of them only had no master. None: what
    /// it told may be old.
    masterless: Option<u32>,
    epochs: EpochFilter,
}

/// Who is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Whom {
    /// The known address whose turn it is.
    InTurn,
    /// Another server named it as the master.
    Named(Address),
}

/// Whom to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where it is.
    pub address: Address,
    /// Another server named it as the master.
    pub was_named: bool,
}

/// Whoever was asked is of no use: the next one is asked, after a wait perhaps.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct Lost {
    /// Why.
    pub why: Why,
    /// The node elects a master, as far as that can be told: one comes within seconds.
    pub is_election: bool,
}

/// Why a server is of no use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Why {
    /// It is the master of an older epoch than one that was seen, or names such a master.
    #[error(transparent)]
    OutOfDate(OutOfDate),
    /// It is not the master, and does not say who is.
    #[error("it is not the master and knows of none")]
    NoMaster,
    /// It names a master at what is no address: so it says, cut, and all but visible ASCII as numbers.
    #[error("it names a master at \"{0}\", which is no host:port")]
    BadAddress(SmolStr),
    /// Its servers name each other.
    #[error(
        "its servers send from one to the other: more than {REDIRECTS_MAX} redirects in a row, the last \
         to {last}"
    )]
    TooManyRedirects {
        /// The master that was named last.
        last: Address,
    },
    /// It cannot be reached, does not answer, or answers with an error.
    #[error("it gave no answer of use")]
    Failed,
}

/// Whom to ask, in turn: the master that etcd names, the other servers of the node, and those that were given
/// beside it; each once.
pub fn in_order<'a>(
    named: Option<&'a Address>,
    servers: impl IntoIterator<Item = &'a Address>,
    given: impl IntoIterator<Item = &'a Address>,
) -> Arc<[Address]> {
    let mut addresses: Vec<Address> = Vec::new();
    for address in named.into_iter().chain(servers).chain(given) {
        if !addresses.contains(address) {
            addresses.push(address.clone());
        }
    }
    addresses.into()
}

impl MasterFinder {
    /// Knows these addresses, in the order in which they are tried, and no master. They may be none yet.
    pub fn new(known: Arc<[Address]>) -> Self {
        Self {
            known,
            turn: 0,
            whom: Whom::InTurn,
            redirects: 0,
            named: None,
            masterless: None,
            epochs: EpochFilter::default(),
        }
    }

    /// Whom to ask now. The same until something of it is handled. None: nobody is known.
    pub fn target(&self) -> Option<Target> {
        let (address, was_named) = match &self.whom {
            Whom::Named(address) => (address, true),
            Whom::InTurn => (self.known.get(self.turn as usize)?, false),
        };
        Some(Target {
            address: address.clone(),
            was_named,
        })
    }

    /// The addresses that are known, in the order in which they are tried.
    pub fn known(&self) -> &Arc<[Address]> {
        &self.known
    }

    /// How many addresses are known beside the one whose turn it is.
    pub fn others(&self) -> u32 {
        self.count().saturating_sub(1)
    }

    /// The newest epoch that was seen and is not forgotten.
    pub fn epoch(&self) -> Option<u64> {
        self.epochs.newest()
    }

    /// Whether etcd is to be asked before anybody else is, by who does not follow it.
    pub fn is_look_due(&self) -> bool {
        let others_first = self.masterless.is_some_and(|left| left < self.count());
        self.whom == Whom::InTurn && !others_first
    }

    fn count(&self) -> u32 {
        u32::try_from(self.known.len()).unwrap_or(u32::MAX)
    }

    /// etcd tells anew who is there, in the order in which they are tried, and perhaps who the master is, and
    /// its epoch. None at all say nothing: what was known before counts.
    ///
    /// Returns whether there is somebody to ask whom nobody knew before: a master that was not named, or the
    /// first address at all. The same server, elected again, is such a master. It is asked next.
    pub fn handle_addresses(
        &mut self,
        known: Arc<[Address]>,
        named: Option<(Address, u64)>,
    ) -> bool {
        if known.is_empty() {
            return false;
        }
        let is_first = self.known.is_empty();
        let is_new = named.is_some() && named.as_ref() != self.named.as_deref();
        self.known = known;
        self.turn %= self.count();
        if let Some((master, _)) = named.as_ref().filter(|_| is_new) {
            let turn = self.known.iter().position(|known| known == master);
            // Etcd has them from one view: the master is one of them. If not, the first is as good.
            self.turn = turn
                .and_then(|turn| u32::try_from(turn).ok())
                .unwrap_or_default();
            self.whom = Whom::InTurn;
            self.redirects = 0;
        }
        self.named = named.map(Box::new);
        self.masterless = Some(0);
        is_new || is_first
    }

    /// Who is asked says that it is the master, of that epoch. `leases_last` tells how long the last lease of
    /// the node is still valid, zero if none is.
    ///
    /// Returns the newer epoch that was forgotten for it, if there was one: the node's masterships have begun
    /// again.
    ///
    /// # Errors
    ///
    /// If it is out of date. The next address is asked then.
    pub fn handle_master(
        &mut self,
        epoch: Option<u64>,
        leases_last: Duration,
    ) -> Result<Option<u64>, Lost> {
        let forgotten = self.heed(epoch, leases_last)?;
        // By the time that it is of no use any more, what etcd told may be old.
        self.masterless = None;
        Ok(forgotten)
    }

    /// Who is asked has answered what only a master answers.
    pub fn handle_answer(&mut self) {
        self.redirects = 0;
    }

    /// Who is asked says that it is not the master; and who is, perhaps, and of which epoch. An empty name is
    /// none. `leases_last` as in [`Self::handle_master`].
    ///
    /// From now on the one that was named is asked. Returns the newer epoch that was forgotten for it, if there
    /// was one.
    ///
    /// # Errors
    ///
    /// If that leads nowhere. The next address is asked then.
    pub fn handle_redirect(
        &mut self,
        master: Option<&str>,
        epoch: Option<u64>,
        leases_last: Duration,
    ) -> Result<Option<u64>, Lost> {
        let Some(master) = master.filter(|master| !master.is_empty()) else {
            return Err(self.leave(Why::NoMaster, true));
        };
        let Ok(master) = Address::parse(master) else {
            let shown = shown(master);
            return Err(self.leave(Why::BadAddress(shown), true));
        };
        let forgotten = self.heed(epoch, leases_last)?;
        if self.redirects >= REDIRECTS_MAX && !planted::is(Bug::RedirectsWithoutEnd) {
            return Err(self.leave(Why::TooManyRedirects { last: master }, true));
        }
        self.redirects = self.redirects.saturating_add(1);
        if !planted::is(Bug::RedirectForgotten) {
            self.whom = Whom::Named(master);
        }
        Ok(forgotten)
    }

    /// Who is asked cannot be reached, does not answer, or answers with an error. The next address is asked.
    pub fn handle_failure(&mut self) -> Lost {
        let was_named = matches!(self.whom, Whom::Named(_));
        self.leave(Why::Failed, was_named)
    }

    /// Nobody goes back to the master of an older epoch while a lease is valid.
    fn heed(&mut self, epoch: Option<u64>, leases_last: Duration) -> Result<Option<u64>, Lost> {
        let Some(epoch) = epoch else {
            return Ok(None);
        };
        self.epochs
            .heed(epoch, || leases_last)
            // It ends, or the last lease does: as soon as an election does.
            .map_err(|out_of_date| self.leave(Why::OutOfDate(out_of_date), true))
    }

    /// Next time, the next known address.
    fn leave(&mut self, why: Why, is_election: bool) -> Lost {
        debug_assert!(self.turn < self.count().max(1), "it is somebody's turn");
        self.whom = Whom::InTurn;
        if !planted::is(Bug::NextAddressForgotten) {
            self.turn = (self.turn + 1) % self.count().max(1);
        }
        // Where it leads next time may be somewhere else.
        self.redirects = 0;
        self.masterless = self
            .masterless
            .filter(|_| is_election)
            .map(|left| left.saturating_add(1));
        Lost { why, is_election }
    }
}

/// What another server named, cut, so that a person sees what is in it and it steers no terminal.
fn shown(text: &str) -> SmolStr {
    let mut shown = String::new();
    for c in text.chars().take(ADDRESS_BYTES_MAX / 4) {
        match c {
            ' '..='~' => shown.push(c),
            _ => shown.extend(c.escape_unicode()),
        }
    }
    shown.into()
}

#[cfg(test)]
mod tests;
