//! The state of a client, and the slots and handles of its resources, behind one lock.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::measured::SOON;
use crate::slot::Slot;
use crate::state::ClientState;
use crate::time::Time;
use crate::transport::connection::Connection;

/// The client's state, and the handles that use it.
pub(crate) struct Book {
    pub(crate) state: ClientState,
    pub(crate) slots: BTreeMap<String, Arc<Slot>>,
    /// Handles of the slots, for a program that opens a resource twice.
    pub(crate) handles: BTreeMap<String, Weak<dyn Any + Send + Sync>>,
    /// Time of the next measurement, if demand is measured.
    pub(crate) measure_at: Option<Time>,
    /// Error of the last attempt, if it failed.
    pub(crate) failure: Option<String>,
}

impl Book {
    /// Adds the slot of an open resource, and its handle.
    pub(crate) fn add(&mut self, slot: Arc<Slot>, handle: Weak<dyn Any + Send + Sync>, now: Time) {
        if slot.measured.is_some() {
            earlier(&mut self.measure_at, now + SOON);
        }
        self.handles.insert(slot.id.clone(), handle);
        self.slots.insert(slot.id.clone(), slot);
    }

    /// Tells the state what became of the stream.
    pub(crate) fn note_streams(&mut self, connection: &mut Connection, now: Time) {
        if connection.take_opening() {
            self.state.handle_opening(now);
        }
        self.state.set_streaming(connection.is_streaming(), now);
    }

    /// Closes all resources, because the client ends.
    pub(crate) fn close_all(&mut self, now: Time) {
        let slots = &self.slots;
        let in_flight = |id: &str| slots.get(id).map_or(0.0, |slot| slot.in_flight());
        self.state.close_all(in_flight, now);
    }
}

/// Makes a time earlier.
pub(super) fn earlier(time: &mut Option<Time>, at: Time) {
    *time = Some(time.map_or(at, |time| time.min(at)));
}
