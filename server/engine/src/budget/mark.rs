//! The mark of a budget: all that may be out in a window, as the root's store knows it. It rises before anything beyond it
//! is given, by as far as is asked for and a 64th of what then remains, so there are some 330 writes in a window. It falls
//! if holders give back a sixteenth of the whole: a successor of this master then gives that again.

/// Part of what remains by which the mark leads.
const LEAD: u64 = 64;

/// Smallest part of the whole by which it leads.
const LEAST_LEAD: u64 = 4_096;

/// Part of the whole by which it is too high before it falls.
const TOO_HIGH: u64 = 16;

/// The mark of a budget in its present window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BudgetMark {
    /// The smallest value that the store may have.
    stored: u64,
    /// The value that is being written.
    sent: Option<u64>,
}

impl BudgetMark {
    /// Returns a mark that was found.
    pub(crate) const fn found(stored: u64) -> Self {
        Self { stored, sent: None }
    }

    /// Whether the store has it, or may have it.
    pub(crate) const fn is_kept(&self) -> bool {
        self.stored > 0 || self.sent.is_some()
    }

    /// Returns the amount that may be out.
    pub(crate) const fn confirmed(&self) -> u64 {
        self.stored
    }

    /// Returns the value to write so that so much may be out. None: it is there, or a write is under way. `needed`: amount
    /// that may be out later, by all needs, below which the mark does not fall.
    pub(crate) fn due(&self, out: u64, needed: u64, total: u64) -> Option<u64> {
        let value = |out: u64| {
            let lead = (total.saturating_sub(out) / LEAD).max(total / LEAST_LEAD);
            out.saturating_add(lead).min(total).max(1)
        };
        let lower = value(needed.max(out));
        match self.sent.is_none() {
            true if out.min(total) > self.stored => Some(value(out)),
            true if self.stored.saturating_sub(lower) > total / TOO_HIGH => Some(lower),
            _ => None,
        }
    }

    /// Begins a write. No more than a lower value is given from now on, whether the write arrives or not.
    pub(crate) fn send(&mut self, value: u64) {
        self.stored = self.stored.min(value);
        self.sent = Some(value);
    }

    /// Notes that the write is confirmed.
    pub(crate) fn note_written(&mut self) {
        self.stored = self.sent.take().unwrap_or(self.stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_a_lower_mark_is_given_as_soon_as_it_is_written() {
        let mut mark = BudgetMark::found(900);
        assert_eq!(mark.due(860, 0, 1_000), None, "it is little too high");
        assert_eq!(mark.due(100, 880, 1_000), None, "it is needed soon");
        let lower = mark.due(100, 0, 1_000).unwrap();
        assert_eq!(lower, 114);
        mark.send(lower);
        assert_eq!((mark.confirmed(), mark.due(500, 0, 1_000)), (lower, None));
        mark.note_written();
        assert_eq!(mark.due(500, 0, 1_000), Some(507));
        assert_eq!(
            BudgetMark::found(40).due(0, 0, 40),
            Some(1),
            "it stays kept"
        );
    }
}
