//! What etcd counts, and what becomes of that when it is wiped or restored from a backup. The epoch of a
//! mastership is the revision at which its key was created; candidates that are alive keep the highest
//! they have seen, and one that is elected at a lower revision raises its own above it.

use doorward_engine::time::Time;

/// An etcd for all nodes.
#[derive(Debug, Default)]
pub(crate) struct Etcd {
    revision: u64,
    /// What the revision became, and when.
    history: Vec<(Time, u64)>,
}

impl Etcd {
    /// A key is created: at which revision.
    pub(crate) fn create(&mut self, now: Time) -> u64 {
        self.revision += 1;
        self.history.push((now, self.revision));
        self.revision
    }

    /// All that was in it is gone.
    pub(crate) fn wipe(&mut self, now: Time) {
        self.revision = 0;
        self.history.push((now, self.revision));
    }

    /// It is as it was at that time.
    pub(crate) fn restore(&mut self, then: Time, now: Time) {
        let mut earlier = self.history.iter().rev();
        let found = earlier.find(|(at, _)| *at <= then);
        self.revision = found.map_or(0, |(_, revision)| *revision);
        self.history.push((now, self.revision));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_has_what_was_there_when_it_was_made() {
        let at = Time::from_secs;
        let mut etcd = Etcd::default();
        assert_eq!(etcd.create(at(1)), 1);
        assert_eq!(etcd.create(at(5)), 2);
        assert_eq!(etcd.create(at(9)), 3);
        etcd.restore(at(6), at(10));
        assert_eq!(etcd.create(at(11)), 3);
        // A backup that was made after it was wiped.
        etcd.wipe(at(12));
        assert_eq!(etcd.create(at(13)), 1);
        etcd.restore(at(12), at(14));
        assert_eq!(etcd.create(at(15)), 1);
        etcd.restore(at(0), at(16));
        assert_eq!(etcd.create(at(17)), 1);
    }
}
