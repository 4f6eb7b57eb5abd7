//! The choice of the server to ask next. A client uses it for its node, a child server for its parent.
//!
//! **Any server of the node will do**, because it names the master. Known addresses are tried in turn, the next
//! one after each failure. If the node is in etcd, the master that etcd names comes first, then the node's other
//! servers, then addresses from flags ([`in_order`]). A newly named master is asked at once. While etcd is
//! unreachable or lists no server, its last list counts.
//!
//! **A server that hangs does not delay others for long.** If the address in turn does not answer within
//! [`HEAD_START`](crate::race::HEAD_START), the others are tried beside it ([`MasterFinder::rivals`]). A master that
//! another server named has no rivals.
//!
//! **A program that does not follow etcd reads it from time to time** ([`MasterFinder::is_look_due`]): when it has to
//! find a server again. After an answer that there is no master it asks the other servers first, because they follow
//! etcd themselves.
//!
//! **A server that is not the master redirects to it.** The client asks the named server at once, and until that fails.
//! It follows at most [`REDIRECTS_MAX`] redirects without an answer of a master between them. More are a loop, and it
//! tries the next known address. Discovery is no such answer: a server that is the master by Discovery, and not when it
//! is asked for capacity, is part of a loop, too.
//!
//! **An older epoch is refused** while a lease is valid ([`EpochFilter`]). If the epoch is absent, the node has
//! no election, or it is a Doorman server. Then nothing is compared, and the master is accepted.
//!
//! **An election is not the same as an unreachable node**, because it is over within seconds. Three signs show an
//! election: a server answers that it is not the master and names none; a master that another server named cannot be
//! asked, so it is about to get a successor; or a master's epoch is out of date. [`backoff`](crate::backoff) decides
//! how long to wait in each case.

use std::sync::Arc;
use std::time::Duration;

use smol_str::SmolStr;
use thiserror::Error;

use crate::address::{ADDRESS_BYTES_MAX, Address};
use crate::backoff::FailureKind;
use crate::epoch_filter::{EpochFilter, OutOfDate};
use crate::visible;

/// Largest number of redirects in a row, without an answer of a master between them.
pub const REDIRECTS_MAX: u8 = 5;

/// Finds the master of one node. It is small, because a simulation has a million of them.
#[derive(Clone, Debug, Default)]
pub struct MasterFinder {
    /// Known addresses, in the order to try.
    known: Arc<[Address]>,
    /// Index of the address to ask. Within `known`, unless that is empty.
    turn: u32,
    /// Master that another server named. It is asked instead of the address in turn.
    redirect: Option<Address>,
    /// Number of redirects since a master last answered.
    redirects: u8,
    /// Master that etcd named last, and its epoch.
    named: Option<Box<(Address, u64)>>,
    /// Number of addresses tried since etcd listed them, if each one answered only that there is no master. None: the
    /// list may be out of date.
    masterless: Option<u32>,
    epochs: EpochFilter,
}

/// Failure of the asked server. The next one is asked, perhaps after a wait.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct DeadEnd {
    /// Reason.
    pub why: DeadEndReason,
    /// Whether the node seems to be electing a master, which takes seconds.
    pub kind: FailureKind,
}

/// Reason why a server cannot help.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeadEndReason {
    /// It is the master of an older epoch than the newest one seen, or names such a master.
    #[error(transparent)]
    OutOfDate(OutOfDate),
    /// It is not the master, and names none.
    #[error("it is not the master and knows of none")]
    NoMaster,
    /// It names a master by an invalid address. The text is shortened, and has no invisible characters.
    #[error("it names a master at \"{0}\", which is not host:port")]
    BadAddress(SmolStr),
    /// Its servers name each other.
    #[error(
        "its servers redirect to each other: more than {REDIRECTS_MAX} redirects in a row, the last \
         to {last}"
    )]
    TooManyRedirects {
        /// Master that was named last.
        last: Address,
    },
    /// It cannot be reached, does not answer, or answers with an error.
    #[error("it gave no usable answer")]
    Failed,
}

/// Returns the addresses to try, in order: the master that etcd names, the other servers of the node, and addresses
/// from flags; each once.
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
    /// Returns a finder with these addresses, in the order to try, and without a master. There may be no address yet.
    pub fn new(known: Arc<[Address]>) -> Self {
        Self {
            known,
            ..Self::default()
        }
    }

    /// Returns the server to ask now, or nothing without an address. It stays until its answer or failure is handled.
    pub fn target(&self) -> Option<Address> {
        let in_turn = self.known.get(self.turn as usize);
        self.redirect.as_ref().or(in_turn).cloned()
    }

    /// Returns the known addresses, in the order to try.
    pub fn known(&self) -> &Arc<[Address]> {
        &self.known
    }

    /// Returns the number of other known addresses.
    pub fn others(&self) -> u32 {
        self.count().saturating_sub(1)
    }

    /// Returns the other known addresses, from the turn on, to try them beside the one in turn while that does not
    /// answer. Empty if another server named the one to ask.
    pub fn rivals(&self) -> Vec<Address> {
        if self.redirect.is_some() {
            return Vec::new();
        }
        let from_turn = self.known.iter().cycle().skip(self.turn as usize + 1);
        from_turn.take(self.others() as usize).cloned().collect()
    }

    /// Returns the newest epoch seen that is not forgotten.
    pub fn epoch(&self) -> Option<u64> {
        self.epochs.newest()
    }

    /// Whether to read etcd before asking a server. Only for programs that do not follow etcd.
    pub fn is_look_due(&self) -> bool {
        let others_first = self.masterless.is_some_and(|left| left < self.count());
        self.redirect.is_none() && !others_first
    }

    fn count(&self) -> u32 {
        u32::try_from(self.known.len()).unwrap_or(u32::MAX)
    }

    /// Takes a new list from etcd: the addresses in the order to try, and the master with its epoch, if there is one.
    /// Ignores an empty list.
    ///
    /// Returns whether there is a new server to ask: a newly named master, or the first address at all. The same
    /// server, elected again, is a newly named master. It is asked next.
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
            // The list and the master come from one view, so the master is in the list. If not, begin with the first.
            self.begin_with(self.turn_of(master).unwrap_or_default());
        }
        self.named = named.map(Box::new);
        self.masterless = Some(0);
        is_new || is_first
    }

    /// Handles the answer of a server that it is the master, of that epoch. `leases_last` is the remaining time of the
    /// last lease of the node; zero if there is none.
    ///
    /// Returns the newer epoch that was forgotten for it, if there was one. Then the node's epochs began again.
    ///
    /// # Errors
    ///
    /// If the master is out of date. Then the next address is asked.
    pub fn handle_master(
        &mut self,
        epoch: Option<u64>,
        leases_last: Duration,
    ) -> Result<Option<u64>, DeadEnd> {
        let forgotten = self.accept_epoch(epoch, leases_last)?;
        // By the time this master fails, the list from etcd may be out of date.
        self.masterless = None;
        Ok(forgotten)
    }

    /// Notes an answer to a request that only a master answers.
    pub fn handle_answer(&mut self) {
        self.redirects = 0;
    }

    /// Handles the answer of a server that it is not the master. It may name the master and its epoch. An empty name
    /// counts as none. `leases_last` as in [`Self::handle_master`].
    ///
    /// From now on the named server is asked. Returns the newer epoch that was forgotten for it, if there was one.
    ///
    /// # Errors
    ///
    /// If the answer leads to no master. Then the next address is asked.
    pub fn handle_redirect(
        &mut self,
        master: Option<&str>,
        epoch: Option<u64>,
        leases_last: Duration,
    ) -> Result<Option<u64>, DeadEnd> {
        let Some(master) = master.filter(|master| !master.is_empty()) else {
            return Err(self.leave(DeadEndReason::NoMaster, FailureKind::Masterless));
        };
        let Ok(master) = Address::parse(master) else {
            let start: String = master.chars().take(ADDRESS_BYTES_MAX / 4).collect();
            let shown = visible::line(&start).into();
            return Err(self.leave(DeadEndReason::BadAddress(shown), FailureKind::Masterless));
        };
        let forgotten = self.accept_epoch(epoch, leases_last)?;
        if self.redirects >= REDIRECTS_MAX {
            let why = DeadEndReason::TooManyRedirects { last: master };
            return Err(self.leave(why, FailureKind::Masterless));
        }
        self.redirects = self.redirects.saturating_add(1);
        self.redirect = Some(master);
        Ok(forgotten)
    }

    /// Notes that the server is unreachable, does not answer, or answers with an error. The next address is asked.
    pub fn handle_failure(&mut self) -> DeadEnd {
        let kind = match self.redirect {
            Some(_) => FailureKind::Masterless,
            None => FailureKind::OutOfReach,
        };
        self.leave(DeadEndReason::Failed, kind)
    }

    /// Notes that another known address answered before the one in turn. It is asked next.
    pub fn handle_rival(&mut self, rival: &Address) {
        if let Some(turn) = self.turn_of(rival) {
            self.begin_with(turn);
        }
    }

    fn turn_of(&self, address: &Address) -> Option<u32> {
        let turn = self.known.iter().position(|known| known == address)?;
        u32::try_from(turn).ok()
    }

    /// Asks a known address next. It may redirect to any server.
    fn begin_with(&mut self, turn: u32) {
        self.turn = turn;
        self.redirect = None;
        self.redirects = 0;
    }

    /// Refuses the master of an older epoch while a lease is valid.
    fn accept_epoch(
        &mut self,
        epoch: Option<u64>,
        leases_last: Duration,
    ) -> Result<Option<u64>, DeadEnd> {
        let Some(epoch) = epoch else {
            return Ok(None);
        };
        self.epochs
            .accept(epoch, || leases_last)
            // That mastership or the last lease ends soon, as an election does.
            .map_err(|it| self.leave(DeadEndReason::OutOfDate(it), FailureKind::Masterless))
    }

    /// Moves on to the next known address.
    fn leave(&mut self, why: DeadEndReason, kind: FailureKind) -> DeadEnd {
        debug_assert!(
            self.turn < self.count().max(1),
            "the turn is within the known addresses"
        );
        self.begin_with((self.turn + 1) % self.count().max(1));
        let masterless = self.masterless.filter(|_| kind == FailureKind::Masterless);
        self.masterless = masterless.map(|left| left.saturating_add(1));
        DeadEnd { why, kind }
    }
}

#[cfg(test)]
mod tests;
