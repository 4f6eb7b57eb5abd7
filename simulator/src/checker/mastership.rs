//! Whether only masters decide: every answer of a server is one of the only master of its node, and
//! in its term.

use doorward_engine::time::Time;

/// What was decided by servers that may not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mastership {
    answers: f64,
    first: Option<Time>,
}

impl Mastership {
    /// A server that is not the master, or not any more, has granted something.
    pub(crate) fn note(&mut self, now: Time) {
        self.answers += 1.0;
        self.first.get_or_insert(now);
    }

    /// How often that was.
    pub(super) fn answers(self) -> f64 {
        self.answers
    }

    /// When it was first.
    pub(super) fn first(self) -> Option<Time> {
        self.first
    }
}
