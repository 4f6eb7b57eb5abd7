//! Largest value of a checker so far, and its time.

use doorward_engine::time::Time;

/// Largest value, and its time: the first of several equal ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extreme<T> {
    pub(crate) value: T,
    pub(crate) at: Time,
}

impl<T: Default + PartialOrd> Extreme<T> {
    pub(crate) fn note(&mut self, value: T, at: Time) {
        if value > self.value {
            *self = Self { value, at };
        }
    }

    /// Returns its time, unless no value was above zero.
    pub(crate) fn time(&self) -> Option<Time> {
        (self.value > T::default()).then_some(self.at)
    }
}
