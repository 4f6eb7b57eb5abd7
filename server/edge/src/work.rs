//! Work on reports of quota streams, and on requests with many descriptors: a part of a processor for each identity, and
//! a larger one for all identities together. Beyond it, reports and requests wait, and flow control slows their senders.
//! Pure.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use doorward::time::Time;
use parking_lot::Mutex;

/// An identity's streams use a processor for one of so many seconds.
const PART_OF_IDENTITY: u32 = 8;

/// All streams together, likewise.
const PART_OF_ALL: u32 = 2;

/// Time whose part may be used at once.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Work of all streams.
#[derive(Debug, Default)]
pub(crate) struct Work {
    by_identity: Mutex<HashMap<Box<str>, Arc<Account>>>,
    all: Arc<Account>,
}

/// Time that has paid for all work so far: of the streams of an identity, or of all.
type Account = Mutex<Time>;

/// The accounts of a stream.
#[derive(Debug)]
pub(crate) struct WorkOf {
    own: Arc<Account>,
    all: Arc<Account>,
}

impl Work {
    /// Returns the accounts of a stream of an identity. Forgets those of others that are at rest.
    pub(crate) fn of(&self, identity: &str, now: Time) -> WorkOf {
        let mut accounts = self.by_identity.lock();
        let known = accounts.get(identity).cloned();
        let own = known.unwrap_or_else(|| {
            accounts.retain(|_, it| Arc::strong_count(it) > 1 || *it.lock() > now);
            let own = Arc::default();
            accounts.insert(identity.into(), Arc::clone(&own));
            own
        });
        let all = Arc::clone(&self.all);
        WorkOf { own, all }
    }
}

impl WorkOf {
    /// Counts work. Returns the time from which on the next report may be read.
    pub(crate) fn charge(&self, took: Duration, now: Time) -> Time {
        let charge = |account: &Account, part: u32| {
            let mut paid_until = account.lock();
            *paid_until = (*paid_until).max(now) + took * part;
            now + paid_until.since(now).saturating_sub(AT_ONCE)
        };
        charge(&self.own, PART_OF_IDENTITY).max(charge(&self.all, PART_OF_ALL))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_an_identity_share_its_part_and_others_go_on() {
        let (work, now) = (Work::default(), Time::from_secs(60));
        let millis = Duration::from_millis;
        let (one, same, other) = (work.of("a", now), work.of("a", now), work.of("b", now));
        assert_eq!(one.charge(millis(125), now), now);
        assert_eq!(same.charge(millis(100), now), now + millis(800));
        assert_eq!(other.charge(Duration::ZERO, now), now);
        // A stream that ends and begins anew has the same account.
        drop((one, same));
        assert_eq!(
            work.of("a", now).charge(Duration::ZERO, now),
            now + millis(800)
        );
        let later = now + Duration::from_secs(2);
        assert_eq!(work.of("c", later).charge(millis(125), later), later);
        assert_eq!(work.by_identity.lock().len(), 2, "a is at rest");
    }

    #[test]
    fn all_identities_together_have_half_of_a_processor() {
        let (work, now) = (Work::default(), Time::from_secs(60));
        for number in 0..6 {
            work.of(&number.to_string(), now)
                .charge(Duration::from_millis(100), now);
        }
        let next = work.of("7", now).charge(Duration::ZERO, now);
        assert_eq!(next, now + Duration::from_millis(200));
    }
}
