//! The streams of Envoys, which use parts of their identity's leases.

use std::sync::Arc;

use doorward::capacity::Allowance;
use doorward::time::Time;

use super::{By, Caller, Changes};

impl Caller {
    /// Changes the wants of a stream for a resource, or adds it. `is_named`: its name is that of one Envoy. `changes` hears
    /// of its assignments.
    pub(crate) fn set_stream(
        &self,
        resource: &str,
        number: u64,
        (by, is_named): (&By<'_>, bool),
        wants: f64,
        changes: &Arc<Changes>,
        now: Time,
    ) {
        if let Some(used) = self.use_of(resource, by.weight, wants, now) {
            used.sharing
                .lock()
                .set_stream(number, by, is_named, wants, changes);
            let wants = self.divide(resource, &used, now);
            self.holder.lock().ask(resource, wants);
            self.wake.notify_one();
        }
    }

    /// Returns the wants of a stream; zero if it is not there.
    pub(crate) fn stream_wants(&self, resource: &str, number: u64) -> f64 {
        let used = self.used(resource);
        used.map_or(0.0, |used| used.sharing.lock().stream_wants(number))
    }

    /// Notes what an Envoy may use, and until when.
    pub(crate) fn set_sent(&self, resource: &str, number: u64, rate: f64, until: Time, now: Time) {
        if let Some(used) = self.used(resource) {
            used.sharing.lock().set_sent(number, rate, until, now);
            self.divide(resource, &used, now);
        }
    }

    /// Ends a stream's use of a resource. `is_told`: the Envoy knows, and uses nothing any more.
    pub(crate) fn end_stream(&self, resource: &str, number: u64, is_told: bool, now: Time) {
        if let Some(used) = self.used(resource) {
            used.sharing.lock().end_stream(number, is_told);
            let wants = self.divide(resource, &used, now);
            self.holder.lock().ask(resource, wants);
            self.wake.notify_one();
        }
    }

    /// Returns a stream's part of a resource.
    pub(crate) fn of_stream(&self, resource: &str, number: u64, by: &By<'_>, now: Time) -> Part {
        let Some(used) = self.used(resource) else {
            return Part::Pending;
        };
        if used.decides(by, now) {
            let allowance = used.allowance.borrow().seen_at(now);
            return Part::Known(used.sharing.lock().of_stream(number, allowance));
        }
        match self.holder.lock().is_unknown(resource) {
            true => Part::Unknown {
                identities: self.room.holders(resource),
                streams: used.sharing.lock().count_streams(by.name),
            },
            false => Part::Pending,
        }
    }
}

/// A stream's part of a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// Of a lease, or of the safe capacity after it.
    Known(Allowance),
    /// The node has not answered yet, or is in learning mode.
    Pending,
    /// The node has no such resource.
    Unknown {
        /// Identities that share it.
        identities: u32,
        /// Streams of the Envoy, and of its identity.
        streams: [usize; 2],
    },
}
