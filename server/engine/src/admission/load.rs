//! The use of each limit.

use crate::admission::Admission;

/// The use of each limit. Of a limit for each caller or template: the highest use by one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Estimated memory of all resources, holders and callers, in bytes.
    pub memory_bytes: usize,
    /// Bytes that one caller brought.
    pub memory_per_caller: usize,
    /// Bytes of one template.
    pub memory_per_template: usize,
    /// Known callers.
    pub callers: usize,
}

impl Admission {
    /// Returns the use of each limit. O(callers + templates), of which there are at most some ten thousand.
    pub(crate) fn load(&self) -> Load {
        let (callers, templates) = (self.callers.iter(), self.templates.iter());
        Load {
            memory_bytes: self.memory_bytes(),
            memory_per_caller: callers.map(|book| book.bytes).max().unwrap_or(0),
            memory_per_template: templates.map(|book| book.bytes).max().unwrap_or(0),
            callers: self.callers.count(),
        }
    }
}
