//! Names under which two live processes ask, of which the later one is refused.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::id::HolderId;
use crate::snapshot::Conflict;
use crate::time::Time;

/// How long a conflict is shown after it was seen last. The one that is refused asks again every
/// minute at least.
const SHOWN: Duration = Duration::from_secs(120);

/// Names that are remembered.
const NAMES_MAX: usize = 1_000;

/// What was seen lately, by the name.
#[derive(Debug, Default)]
pub(super) struct Conflicts(BTreeMap<HolderId, Conflict>);

impl Conflicts {
    /// It was seen now. Returns whether that is news.
    pub(super) fn note(&mut self, conflict: Conflict) -> bool {
        if let Some(known) = self.0.get_mut(&conflict.holder) {
            let is_news = conflict.at.since(known.at) >= SHOWN;
            *known = conflict;
            return is_news;
        }
        if self.0.len() >= NAMES_MAX {
            self.0
                .retain(|_, known| conflict.at.since(known.at) < SHOWN);
        }
        if self.0.len() < NAMES_MAX {
            self.0.insert(conflict.holder.clone(), conflict);
        }
        true
    }

    /// What is shown.
    pub(super) fn shown(&self, now: Time) -> impl Iterator<Item = &Conflict> {
        let all = self.0.values();
        all.filter(move |conflict| now.since(conflict.at) < SHOWN)
    }

    /// The one under this name.
    pub(super) fn get(&self, holder: &HolderId) -> Option<&Conflict> {
        self.0.get(holder)
    }

    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::id::HolderName;

    fn conflict(name: &str, seconds: u64) -> Conflict {
        Conflict {
            holder: HolderId::client(HolderName::new(name).unwrap()),
            refused: None,
            at: Time::from_secs(seconds),
        }
    }

    #[test]
    fn it_is_news_once_for_as_long_as_it_goes_on() {
        let mut conflicts = Conflicts::default();
        for (second, is_news) in [(0, true), (60, false), (170, false), (290, true)] {
            let noted = conflicts.note(conflict("a", second));
            assert_eq!(noted, is_news, "at {second} s");
        }
        assert_eq!(conflicts.shown(Time::from_secs(409)).count(), 1);
        assert_eq!(conflicts.shown(Time::from_secs(410)).count(), 0);
    }

    #[test]
    fn who_is_known_stays_known_when_there_is_no_place_for_more() {
        let mut conflicts = Conflicts::default();
        for number in 0..NAMES_MAX {
            conflicts.note(conflict(&number.to_string(), 0));
        }
        assert!(conflicts.note(conflict("one more", 100)), "it is told");
        assert!(!conflicts.note(conflict("7", 100)));
        assert_eq!(conflicts.shown(Time::from_secs(150)).count(), 1);
        assert!(conflicts.note(conflict("one more", 150)));
        assert_eq!(conflicts.shown(Time::from_secs(150)).count(), 2);
    }
}
