//! A holder of leases in the node of this process: the state of a client, with its name.
//!
//! Without a network, a request cannot be lost or arrive late. Apart from that, a holder is treated as any client: it
//! refreshes its leases, and proves that it has shrunk before others grow.

use std::sync::Arc;
use std::time::Duration;

use doorward::capacity::{Allowance, Capacity};
use doorward::in_process;
use doorward::state::{
    AMOUNT_MAX, BudgetAsk, ClientConfig, ClientState, FailureKind, LimitedBy, Mode, RefusalKind,
};
use doorward::time::Time;
use doorward_engine::claims::Subclients;
use doorward_engine::id::{HolderId, HolderName, Incarnation};
use doorward_engine::messages::{GetCapacity, GetCapacityReply, ReleaseCapacity};
use doorward_engine::node::mastership::Outcome;

/// Start of the names of holders of `/v1/lease`.
pub const LEASE_HOLDERS: &str = "http:";

/// Start of the names of the callers of rules.
pub const CALLERS: &str = "caller:";

/// A holder. See the [module](self).
#[derive(Debug)]
pub struct Holder {
    name: HolderName,
    incarnation: Incarnation,
    pub(crate) state: ClientState,
    /// Priority in all resources.
    priority: i64,
    /// Number of the request under way.
    asked: u64,
}

impl Holder {
    /// Creates a holder of nothing. `sequence` must be above those of earlier holders of the name.
    pub fn new(name: HolderName, priority: i64, incarnation: Incarnation, sequence: u64) -> Self {
        Self {
            name,
            incarnation,
            state: ClientState::new(ClientConfig::default(), sequence),
            priority,
            asked: 0,
        }
    }

    /// Returns the name.
    pub const fn name(&self) -> &HolderName {
        &self.name
    }

    /// Opens a resource, if it is not open yet. Without a lease, the holder may use the safe capacity of the last one.
    pub fn open(&mut self, resource: &str, wants: f64, now: Time) {
        self.state
            .open(resource, self.priority, Mode::Safe, wants, now);
    }

    /// Changes the wants of a resource, up to the largest amount.
    pub fn ask(&mut self, resource: &str, wants: f64) {
        // The first of the two makes NaN 0.
        self.state.ask(resource, wants.clamp(0.0, AMOUNT_MAX));
    }

    /// Returns the wants of a resource; zero if it is not open.
    pub fn wants(&self, resource: &str) -> f64 {
        self.state.resource(resource).map_or(0.0, |it| it.wants())
    }

    /// Returns the release to send now. Without a network, it is over when it is sent.
    pub fn release(&mut self) -> ReleaseCapacity {
        let release = self.state.release();
        self.state.handle_released(release.sequence);
        in_process::release(&self.name, self.incarnation, &release)
    }

    /// Returns the request to send now. `in_flight` returns the amount of a resource that may be in use besides its
    /// lease, `weight` the weight in it, and `word` the word about a budget.
    pub fn request(
        &mut self,
        in_flight: impl Fn(&str) -> f64,
        weight: impl Fn(&str) -> u32,
        word: impl Fn(&str, (Duration, bool)) -> Option<BudgetAsk>,
        now: Time,
    ) -> GetCapacity {
        let request = self.state.request_with_words(in_flight, word, now);
        self.asked = request.sequence;
        let mut request = in_process::request(&self.name, self.incarnation, &request);
        for ask in &mut request.asks {
            let weight = Subclients::new(weight(ask.resource.as_str()).into());
            ask.weight = weight.unwrap_or(Subclients::ONE);
        }
        request
    }

    /// Handles the outcome of the last request. `chance` is uniform in 0…1. None: the node was started anew.
    pub fn handle_outcome(
        &mut self,
        outcome: Option<Outcome<GetCapacityReply>>,
        chance: f64,
        now: Time,
    ) {
        match outcome {
            Some(Outcome::Served(reply)) => {
                let response = in_process::response(&reply);
                self.state
                    .handle_response(self.asked, &response, chance, now);
            }
            Some(Outcome::NotMaster(_)) | None => {
                let kind = FailureKind::Masterless;
                self.state.handle_failure(self.asked, kind, chance, now);
            }
        }
    }

    /// Returns the id at the node.
    pub fn id(&self) -> HolderId {
        HolderId::client(self.name.clone(), Some(self.incarnation))
    }

    /// Handles a push. None: another mastership has begun.
    pub fn handle_push(&mut self, push: Option<GetCapacityReply>, now: Time) {
        match push {
            Some(push) => self.state.handle_push(&in_process::response(&push), now),
            None => {
                self.state.handle_disconnected(0.0, now);
                self.state.set_streaming(true, now);
            }
        }
    }

    /// Returns the resources whose allowance has changed since the last such call, each with the allowance. A lease of 0
    /// from a node in learning mode is none: the node does not know yet what is free.
    pub fn changes(&mut self, now: Time) -> Vec<(Arc<str>, Allowance)> {
        let changed = self.state.take_changed(now).into_iter();
        let changed = changed.map(|id| {
            let allowance = self.state.allowance(&id, now);
            let resource = self.state.resource(&id);
            let limited_by = resource.and_then(|it| it.limited_by(now));
            let is_learning = limited_by.is_some_and(LimitedBy::is_learning);
            match is_learning && allowance.capacity == Capacity::NONE {
                true => (id, Allowance::NONE),
                false => (id, allowance),
            }
        });
        changed.collect()
    }

    /// Returns whether the server refused a resource because it does not exist.
    pub fn is_unknown(&self, resource: &str) -> bool {
        let trouble = self.state.resource(resource).and_then(|it| it.trouble());
        trouble.is_some_and(|it| it.kind == RefusalKind::Unknown)
    }
}
