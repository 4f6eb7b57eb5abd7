//! Names under which two live processes ask. The later one of a node is refused.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use crate::id::HolderId;
use crate::messages::Conflict;
use crate::time::Time;

/// Time that a conflict is shown after its last refusal. The refused process asks again at least once a minute.
const SHOWN: Duration = Duration::from_secs(120);

/// Number of names kept.
const NAMES_MAX: usize = 1_000;

/// Times of recent conflicts, by name, and by refused process of a node. Absent process: a client's name, or a process that
/// sends no incarnation.
#[derive(Debug, Default)]
pub(super) struct Conflicts(BTreeMap<HolderId, Time>);

impl Conflicts {
    /// Notes a conflict. Returns whether it is a new one.
    pub(super) fn note(&mut self, conflict: &Conflict) -> bool {
        let now = conflict.at;
        if let Some(at) = self.0.get_mut(&conflict.holder) {
            return now.since(std::mem::replace(at, now)) >= SHOWN;
        }
        if self.0.len() >= NAMES_MAX {
            self.0.retain(|_, at| now.since(*at) < SHOWN);
        }
        if self.0.len() < NAMES_MAX {
            self.0.insert(conflict.holder.clone(), now);
        }
        true
    }

    /// Returns the conflicts to show after that one, in order. Absent: all of them.
    pub(super) fn shown_after(
        &self,
        after: Option<&HolderId>,
        now: Time,
    ) -> impl Iterator<Item = Conflict> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let seen = self.0.range::<HolderId, _>((from, Bound::Unbounded));
        let shown = seen.filter(move |(_, at)| now.since(**at) < SHOWN);
        shown.map(|(holder, at)| Conflict {
            holder: holder.clone(),
            at: *at,
        })
    }

    /// Returns the time since that process was last refused. None: no refusal is known.
    pub(super) fn refused_ago(&self, process: &HolderId, now: Time) -> Option<Duration> {
        Some(now.since(*self.0.get(process)?))
    }

    /// Returns what was known.
    pub(super) fn forget(&mut self) -> Self {
        std::mem::take(self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::id::{HolderName, Incarnation};

    fn conflict(process: u64, name: &str, seconds: u64) -> Conflict {
        Conflict {
            holder: HolderId {
                process: Incarnation::new(process),
                ..HolderId::server(HolderName::new(name).unwrap())
            },
            at: Time::from_secs(seconds),
        }
    }

    fn shown(conflicts: &Conflicts, seconds: u64) -> usize {
        conflicts
            .shown_after(None, Time::from_secs(seconds))
            .count()
    }

    #[test]
    fn it_is_news_once_for_as_long_as_it_goes_on() {
        let mut conflicts = Conflicts::default();
        for (second, is_news) in [(0, true), (60, false), (170, false), (290, true)] {
            let noted = conflicts.note(&conflict(1, "a", second));
            assert_eq!(noted, is_news, "at {second} s");
        }
        assert_eq!(shown(&conflicts, 409), 1);
        assert_eq!(shown(&conflicts, 410), 0);
    }

    #[test]
    fn known_conflicts_stay_known_when_the_list_is_full() {
        let mut conflicts = Conflicts::default();
        for number in 0..NAMES_MAX {
            conflicts.note(&conflict(1, &number.to_string(), 0));
        }
        let more = |seconds| conflict(1, "one more", seconds);
        assert!(conflicts.note(&more(100)), "it is reported");
        assert!(!conflicts.note(&conflict(1, "7", 100)));
        assert_eq!(shown(&conflicts, 150), 1);
        assert!(conflicts.note(&more(150)));
        assert_eq!(shown(&conflicts, 150), 2);
    }

    #[test]
    fn each_of_several_processes_that_were_refused_is_known() {
        let mut conflicts = Conflicts::default();
        for (process, seconds) in [(1, 0), (2, 5), (1, 9)] {
            conflicts.note(&conflict(process, "a", seconds));
        }
        for (process, ago) in [(1, Some(1)), (2, Some(5)), (3, None)] {
            let holder = conflict(process, "a", 0).holder;
            let found = conflicts.refused_ago(&holder, Time::from_secs(10));
            assert_eq!(found, ago.map(Duration::from_secs), "{process}");
        }
    }
}
