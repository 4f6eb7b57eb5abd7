//! The mark of a budget: all that may be out in a window, as the root's store knows it. It rises before anything beyond it
//! is given, by as far as is asked for and a 64th of what then remains, so there are some 330 writes in a window.

/// Part of what remains by which the mark leads.
const LEAD: u64 = 64;

/// Smallest part of the whole by which it leads.
const LEAST_LEAD: u64 = 4_096;

/// The mark of a budget in its present window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BudgetMark {
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

    /// Returns the value to write so that so much may be out. None: it is there, or a write is under way.
    pub(crate) fn due(&self, out: u64, total: u64) -> Option<u64> {
        let out = out.min(total);
        let lead = ((total - out) / LEAD).max(total / LEAST_LEAD);
        (self.sent.is_none() && out > self.stored).then(|| (out + lead).min(total))
    }

    /// Begins a write.
    pub(crate) fn send(&mut self, value: u64) {
        self.sent = Some(value);
    }

    /// Notes that the write is confirmed.
    pub(crate) fn note_written(&mut self) {
        self.stored = self.sent.take().unwrap_or(self.stored);
    }
}
