//! The state of a client, and the slots and handles of its resources, behind one lock.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use doorward_proto::{budget, doorman};
use doorward_session::time::budget::BudgetWord;

use crate::lock::lock;
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
    /// The last words about budgets that are closed.
    pub(crate) last_words: BTreeMap<String, BudgetWord>,
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
        if self.last_words.contains_key(&slot.id) {
            self.state.release_former(&slot.id);
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

    /// Closes a resource whose last handle is gone.
    pub(crate) fn close(&mut self, slot: &Slot, now: Time) {
        self.slots.remove(&slot.id);
        self.handles.remove(&slot.id);
        self.note_last_word(slot);
        self.state.close(&slot.id, now);
    }

    fn note_last_word(&mut self, slot: &Slot) {
        if let Some(budget) = &slot.budget {
            let word = lock(budget).say_need(0).word;
            self.last_words.insert(slot.id.clone(), word);
        }
    }

    /// Takes the last words about resources out, in their order; empty if none is a budget.
    pub(crate) fn last_words(&mut self, resources: &[Arc<str>]) -> Vec<doorman::BudgetWord> {
        if self.last_words.is_empty() {
            return Vec::new();
        }
        let word = |id: &Arc<str>| self.last_words.remove(&**id);
        let words = resources.iter().map(word);
        words
            .map(|it| it.as_ref().map(budget::word_message).unwrap_or_default())
            .collect()
    }

    /// Closes all resources, because the client ends.
    pub(crate) fn close_all(&mut self, now: Time) {
        let slots: Vec<_> = self.slots.values().cloned().collect();
        slots.iter().for_each(|slot| self.note_last_word(slot));
        let slots = &self.slots;
        let in_flight = |id: &str| slots.get(id).map_or(0.0, |slot| slot.in_flight());
        self.state.close_all(in_flight, now);
    }
}

/// Makes a time earlier.
pub(super) fn earlier(time: &mut Option<Time>, at: Time) {
    *time = Some(time.map_or(at, |time| time.min(at)));
}
