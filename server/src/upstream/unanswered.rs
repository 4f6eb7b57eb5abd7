//! What was asked on a stream and is not answered yet.
//!
//! Of each resource at most one request is on its way, so every resource of a request waits for an
//! answer of its own. A parent that answers everything but one resource is found out as well: that
//! resource would not be asked for again as long as the stream lasts.

use std::collections::{BTreeSet, VecDeque};

use doorward_engine::id::ResourceId;
use doorward_engine::request::server::GetServerCapacity;
use tokio::time::Instant;

use crate::rpc::convert::tree::Answer;

/// Requests on their way, oldest first.
#[derive(Debug, Default)]
pub(super) struct Unanswered {
    requests: VecDeque<Sent>,
}

#[derive(Debug)]
struct Sent {
    sequence: u64,
    /// Those that are not answered yet. Of a request about nothing, any answer is one.
    resources: BTreeSet<ResourceId>,
    /// When it was sent, or the one before it was answered: a parent that is slow but answers one
    /// after the other is not stuck.
    since: Instant,
}

impl Unanswered {
    /// The request was sent.
    pub(super) fn note_sent(&mut self, request: &GetServerCapacity, now: Instant) {
        let asked = request.asks.iter().map(|ask| ask.resource.clone());
        self.requests.push_back(Sent {
            sequence: request.sequence.unwrap_or_default(),
            resources: asked.collect(),
            since: now,
        });
    }

    /// Requests of which something is not answered.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Since when the parent owes an answer.
    pub(super) fn since(&self) -> Option<Instant> {
        self.requests.front().map(|sent| sent.since)
    }

    /// The parent answered, or told something unasked.
    pub(super) fn note_answer(&mut self, answer: &Answer, now: Instant) {
        let reply = &answer.reply;
        for lease in &reply.leases {
            // To an older request, it tells what changed before this one arrived.
            self.take(&lease.resource, lease.sequence.unwrap_or(u64::MAX));
        }
        // These do not say to what; but they are only sent when asked.
        let refused = reply.refused.iter().map(|refused| &refused.resource);
        let nonsense = answer.nonsense.iter().map(|(resource, _)| resource);
        for resource in refused.chain(nonsense) {
            self.take(resource, u64::MAX);
        }
        let oldest = self.requests.front().map(|sent| sent.sequence);
        self.requests.retain(|sent| !sent.resources.is_empty());
        if let Some(sent) = self.requests.front_mut()
            && Some(sent.sequence) != oldest
        {
            sent.since = now;
        }
    }

    fn take(&mut self, resource: &ResourceId, sequence: u64) {
        for sent in &mut self.requests {
            if sent.sequence <= sequence {
                sent.resources.remove(resource);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use doorward_engine::amount::Amount;
    use doorward_engine::demand::ServerDemand;
    use doorward_engine::id::HolderName;
    use doorward_engine::request::server::{ServerAsk, ServerLease};
    use doorward_engine::request::{Refusal, RefusalReason};
    use doorward_engine::supply::Told;

    use super::*;

    fn id(text: &str) -> ResourceId {
        ResourceId::new(text).expect("an id")
    }

    fn request(sequence: u64, resources: &[&str]) -> GetServerCapacity {
        GetServerCapacity {
            caller: None,
            incarnation: None,
            mastership: None,
            epoch: None,
            server: HolderName::new("eu").expect("a name"),
            sequence: Some(sequence),
            height: 1,
            asks: resources
                .iter()
                .map(|resource| ServerAsk {
                    unheard: Amount::ZERO,
                    told_of: Vec::new(),
                    resource: id(resource),
                    demand: Arc::new(ServerDemand::new(Vec::new())),
                    has: None,
                    outstanding: None,
                    learning: false,
                })
                .collect(),
        }
    }

    fn lease(resource: &str, sequence: Option<u64>) -> Answer {
        let mut answer = Answer::default();
        answer.reply.leases.push(ServerLease {
            decided: None,
            granted_by: None,
            resource: id(resource),
            capacity: Amount::ZERO,
            expires_in: Duration::ZERO,
            refresh_in: Duration::ZERO,
            algorithm: None,
            told: Told::default(),
            sequence,
        });
        answer
    }

    fn refusal(resource: &str) -> Answer {
        let mut answer = Answer::default();
        answer.reply.refused.push(Refusal {
            resource: id(resource),
            reason: RefusalReason::NotReady,
        });
        answer
    }

    #[tokio::test]
    async fn a_request_is_answered_once_all_of_its_resources_are() {
        let now = Instant::now();
        let mut unanswered = Unanswered::default();
        unanswered.note_sent(&request(5, &["a", "b", "c", "d"]), now);
        unanswered.note_answer(&lease("a", Some(5)), now);
        unanswered.note_answer(&lease("b", None), now);
        unanswered.note_answer(&refusal("c"), now);
        assert_eq!(unanswered.since(), Some(now));
        let nonsense = Answer {
            nonsense: vec![(id("d"), "gets.capacity is negative".to_owned())],
            ..Answer::default()
        };
        unanswered.note_answer(&nonsense, now);
        assert_eq!((unanswered.since(), unanswered.len()), (None, 0));
    }

    #[tokio::test]
    async fn what_is_told_unasked_answers_nothing() {
        let now = Instant::now();
        let mut unanswered = Unanswered::default();
        unanswered.note_sent(&request(5, &["a"]), now);
        for unasked in [lease("a", Some(4)), lease("b", None), refusal("b")] {
            unanswered.note_answer(&unasked, now);
        }
        assert_eq!(unanswered.len(), 1);
    }

    #[tokio::test]
    async fn any_answer_is_one_to_a_request_about_nothing() {
        let now = Instant::now();
        let mut unanswered = Unanswered::default();
        unanswered.note_sent(&request(5, &[]), now);
        assert_eq!(unanswered.since(), Some(now));
        unanswered.note_answer(&Answer::default(), now);
        assert_eq!(unanswered.since(), None);
    }

    #[tokio::test]
    async fn the_parent_has_its_time_for_each_request() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let mut unanswered = Unanswered::default();
        unanswered.note_sent(&request(5, &["a"]), now);
        unanswered.note_sent(&request(6, &["b"]), now);
        unanswered.note_answer(&lease("a", Some(5)), later);
        assert_eq!(unanswered.since(), Some(later));
        // But answering other things does not excuse it.
        unanswered.note_sent(&request(7, &["a"]), later);
        unanswered.note_answer(&lease("a", Some(7)), later + Duration::from_secs(1));
        assert_eq!(unanswered.since(), Some(later));
    }
}
