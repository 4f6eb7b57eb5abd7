//! Memory of the doors: names of callers, their leases, and buckets of Envoys. It is bounded in all and for each
//! identity, and counted in estimated bytes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Part of all memory that one identity may use.
const PART_OF_IDENTITY: usize = 4;

/// Memory of the doors, shared by all callers.
#[derive(Debug)]
pub struct Room {
    bytes_max: usize,
    used: Mutex<Used>,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Used {
    bytes: usize,
    by_identity: HashMap<Box<str>, usize>,
    /// Number of holders of each resource.
    holders: HashMap<Box<str>, u32>,
}

impl Room {
    /// Creates room of that size.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            used: Mutex::default(),
            refused: AtomicU64::new(0),
        }
    }

    /// Takes room for an identity. Returns whether there was enough.
    pub fn take(&self, identity: &str, bytes: usize) -> bool {
        let mut used = self.used.lock();
        let own = used.by_identity.get(identity).copied().unwrap_or_default();
        let is_enough = used.bytes + bytes <= self.bytes_max
            && own + bytes <= self.bytes_max / PART_OF_IDENTITY;
        if is_enough {
            used.bytes += bytes;
            used.by_identity.insert(identity.into(), own + bytes);
        } else {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        is_enough
    }

    /// Gives back room that was taken.
    pub fn free(&self, identity: &str, bytes: usize) {
        let mut used = self.used.lock();
        used.bytes = used.bytes.saturating_sub(bytes);
        if let Some(own) = used.by_identity.get_mut(identity) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                used.by_identity.remove(identity);
            }
        }
    }

    /// Returns the size.
    pub const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Returns the bytes in use.
    pub fn bytes(&self) -> usize {
        self.used.lock().bytes
    }

    /// Returns how often there was not enough room.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Notes another holder of a resource.
    pub(crate) fn enter(&self, resource: &str) {
        *self.used.lock().holders.entry(resource.into()).or_default() += 1;
    }

    /// Notes the end of a holder of a resource.
    pub(crate) fn leave(&self, resource: &str) {
        let mut used = self.used.lock();
        if let Some(holders) = used.holders.get_mut(resource) {
            *holders = holders.saturating_sub(1);
            if *holders == 0 {
                used.holders.remove(resource);
            }
        }
    }

    /// Returns the number of holders of a resource; at least 1.
    pub(crate) fn holders(&self, resource: &str) -> u32 {
        let used = self.used.lock();
        used.holders.get(resource).map_or(1, |it| (*it).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_has_a_quarter_of_what_all_have() {
        let room = Room::new(100);
        assert!(room.take("one", 20));
        assert!(!room.take("one", 6));
        room.free("one", 1);
        assert!(room.take("one", 6));
        let all = ["two", "three", "four"];
        assert!(all.iter().all(|it| room.take(it, 25)));
        assert_eq!((room.bytes(), room.refused()), (100, 1));
        assert!(!room.take("five", 1), "all together have no more");
    }
}
