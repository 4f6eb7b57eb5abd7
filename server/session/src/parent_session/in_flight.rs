//! Requests to the parent that are not fully answered yet.
//!
//! Each resource has at most one request in flight, so every resource of a request waits for an answer of its own. This
//! detects a parent that never answers one resource. Otherwise the server would not ask for that resource again as long
//! as the stream lasts.

use std::collections::{BTreeSet, VecDeque};

use crate::parent_session::AnsweredResource;
use crate::time::Time;

/// Requests in flight, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    requests: VecDeque<SentRequest>,
}

#[derive(Clone, Debug)]
struct SentRequest {
    sequence: u64,
    /// Resources without an answer yet, by their numbers. Any answer completes a request for none.
    resources: BTreeSet<u64>,
    /// Time of sending, or of the answer to the request before it. A parent that is slow but answers one request after
    /// the other is not stuck.
    since: Time,
}

impl InFlight {
    /// Notes that the request was sent, for these resources.
    pub(super) fn note_sent(
        &mut self,
        sequence: u64,
        resources: impl IntoIterator<Item = u64>,
        now: Time,
    ) {
        self.requests.push_back(SentRequest {
            sequence,
            resources: resources.into_iter().collect(),
            since: now,
        });
    }

    /// Number of requests that are not fully answered.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Returns the time since which the parent owes the oldest answer.
    pub(super) fn since(&self) -> Option<Time> {
        self.requests.front().map(|sent| sent.since)
    }

    /// Notes a part of a large answer. The timeout for the rest begins again.
    pub(super) fn note_progress(&mut self, now: Time) {
        if let Some(sent) = self.requests.front_mut() {
            sent.since = now;
        }
    }

    /// Whether that request is in flight.
    pub(super) fn awaits(&self, sequence: u64) -> bool {
        self.requests.iter().any(|sent| sent.sequence == sequence)
    }

    /// Notes that everything is answered.
    pub(super) fn clear(&mut self) {
        self.requests.clear();
    }

    /// Notes an answer of the parent, or a pushed change.
    pub(super) fn note_answer(&mut self, answered: &[AnsweredResource], now: Time) {
        for answer in answered {
            // An answer to an older request does not complete a newer one.
            let sequence = answer.to.unwrap_or(u64::MAX);
            for sent in &mut self.requests {
                if sent.sequence <= sequence {
                    sent.resources.remove(&answer.resource);
                }
            }
        }
        let oldest = self.requests.front().map(|sent| sent.sequence);
        self.requests.retain(|sent| !sent.resources.is_empty());
        if let Some(sent) = self.requests.front_mut()
            && Some(sent.sequence) != oldest
        {
            sent.since = now;
        }
    }
}

#[cfg(test)]
mod tests;
