//! Makes each part of the status from snapshots of the engine and of the sessions.
//!
//! `admin.proto` is the model itself: it documents every field and the meaning of its absence. It is wire format and
//! JSON alike, so nothing is converted twice.

use std::time::Duration;

use doorward::rules::{Outcome, Tally};
use doorward_engine::messages::{
    BudgetSnapshot, Conflict, LeaseSnapshot, ResourceSnapshot, UpstreamSnapshot,
};
use doorward_engine::node::child_servers::ChildServer;
use doorward_engine::node::mastership::Learning;
use doorward_engine::time::Time;
use doorward_proto::admin::v1::{
    BudgetStatus, ChildServerStatus, ChildStatus, ConflictStatus, EtcdStatus, LeaseStatus,
    OwnLeaseStatus, ParentStatus, ResourceStatus, RuleDecisions, RulesStatus, States,
};

use crate::clock;
use crate::replica_handle::events::refusal;
use crate::status::{EtcdHealth, ParentNews, RulesDocument, Sessions, learning};
pub use doorward_session::time::millis;

/// Returns a resource without leases and child servers.
pub fn resource(snapshot: ResourceSnapshot) -> ResourceStatus {
    let upstream = snapshot.upstream.as_ref();
    let is_known = upstream.is_none_or(|upstream| upstream.knows_algorithm);
    let own_lease = upstream.map(|upstream| own_lease(&snapshot, upstream));
    let template = snapshot.template.as_ref();
    let description = template.map(|template| template.description.clone());
    ResourceStatus {
        learning: learning::of(&snapshot),
        own_lease,
        resource_id: snapshot.resource.to_string(),
        template: template.map(|template| template.identifier_glob.clone()),
        description: description.unwrap_or_default(),
        algorithm: is_known.then(|| snapshot.kind.as_str().to_owned()),
        capacity: snapshot.capacity,
        safe_capacity: snapshot.safe_capacity.map(f64::from),
        wants: snapshot.wants,
        granted: snapshot.granted,
        reserved: snapshot.reserved,
        leases_count: count(snapshot.leases),
        // A number of clients: whole, not negative, and `as` saturates.
        clients_count: snapshot.clients as u64,
        waiting_count: count(snapshot.waiting),
        clients_below_floor: snapshot.below_floor,
        unreported: snapshot.unreported,
        unreported_remaining_ms: snapshot.unreported_for.map(millis),
        learning_remaining_ms: snapshot.learning_remaining.map(millis),
        lease_length_ms: millis(snapshot.lease_length),
        refresh_interval_ms: millis(snapshot.refresh_interval),
        children_count: count(snapshot.children),
        children: Vec::new(),
        leases: Vec::new(),
        budget: snapshot.budget.map(budget),
    }
}

fn budget(budget: BudgetSnapshot) -> BudgetStatus {
    BudgetStatus {
        used: budget.used,
        window_remaining_ms: budget.ends_in.map(millis),
        unit: budget.unit,
        decimals: budget.decimals,
    }
}

fn own_lease(resource: &ResourceSnapshot, lease: &UpstreamSnapshot) -> OwnLeaseStatus {
    OwnLeaseStatus {
        capacity: resource.capacity,
        share: lease.share,
        outstanding: resource.reserved,
        expires_in_ms: lease.expires_in.map(millis),
        is_in_flight: lease.in_flight,
        refusal: lease.refused.map(refusal),
        parent_learning_remaining_ms: lease.learning_remaining.map(millis),
    }
}

/// Returns a lease of a client or a child server.
pub(super) fn lease(lease: &LeaseSnapshot, now: Time) -> LeaseStatus {
    LeaseStatus {
        holder: lease.holder.name.to_string(),
        kind: lease.holder.kind.as_str().to_owned(),
        priority: lease.demand.priority(),
        subclients: lease.demand.clients(),
        wants: lease.wants(),
        share: lease.share,
        granted: lease.granted,
        reserved: lease.reserved,
        expires_in_ms: millis(lease.expires_at.since(now)),
        refresh_interval_ms: millis(lease.refresh_interval),
        why: lease.why.to_string(),
        wants_more: lease.wants_more,
    }
}

/// Returns a lease as that of a child server. None: the holder is a client.
pub(super) fn child(lease: &LeaseSnapshot, now: Time) -> Option<ChildStatus> {
    let child = lease.child.as_ref()?;
    Some(ChildStatus {
        child: lease.holder.name.to_string(),
        clients_count: lease.demand.clients(),
        wants: lease.wants(),
        share: lease.share,
        granted: lease.granted,
        reserved: lease.reserved,
        has: child.has,
        outstanding: child.outstanding,
        is_learning: child.learning,
        height: child.height,
        curve_points: count(child.curve_points),
        expires_in_ms: millis(lease.expires_at.since(now)),
        refresh_interval_ms: millis(lease.refresh_interval),
        why: lease.why.to_string(),
        wants_more: lease.wants_more,
    })
}

/// Returns a child server.
pub(super) fn child_server(child: &ChildServer, now: Time) -> ChildServerStatus {
    let lasts = child.leases_until.since(now);
    ChildServerStatus {
        child: child.name.to_string(),
        address: child.address.as_ref().map(ToString::to_string),
        state: child.state.as_str().to_owned(),
        state_age_ms: millis(now.since(child.since)),
        heard_age_ms: millis(now.since(child.heard_at)),
        height: child.height,
        is_learning: child.learning,
        leases_remaining_ms: Some(millis(lasts)).filter(|_| !lasts.is_zero()),
        clients_count: child.clients,
    }
}

/// Returns the parent.
pub(super) fn parent(news: ParentNews) -> ParentStatus {
    ParentStatus {
        addresses: news.addresses,
        address: news.address,
        link: news.link.as_str().to_owned(),
        link_age_ms: millis(clock::wall().saturating_sub(news.since)),
        problem: news.problem,
    }
}

/// Returns the state of etcd in the election.
pub(super) fn etcd(contact: EtcdHealth, master_for: Option<Duration>) -> EtcdStatus {
    EtcdStatus {
        candidates: Vec::new(),
        problem: contact.problem,
        age_ms: millis(clock::wall().saturating_sub(contact.since)),
        mastership_remaining_ms: master_for.map(millis),
        mastership_confirmed_ms: master_for.map(|left| millis(contact.term.saturating_sub(left))),
    }
}

/// Returns a document of rules with its age.
pub(super) fn rules((status, since): RulesDocument) -> RulesStatus {
    let age_ms = millis(clock::wall().saturating_sub(since));
    RulesStatus { age_ms, ..status }
}

/// Returns the answers of a rule.
pub(super) fn rule_decisions(tally: &Tally) -> RuleDecisions {
    let age = |at| millis(clock::wall().saturating_sub(at));
    RuleDecisions {
        domain: tally.domain.clone(),
        rule: tally.rule.clone(),
        allowed_count: tally.count(Outcome::Allowed),
        waited_count: tally.count(Outcome::Waited),
        refused_count: tally.count(Outcome::Refused),
        shadow_count: tally.count(Outcome::Shadow),
        refused_age_ms: tally.refused_at().map(age),
    }
}

/// Returns a conflict: two live processes that ask under one name.
pub(super) fn conflict(conflict: &Conflict, now: Time) -> ConflictStatus {
    ConflictStatus {
        holder: conflict.holder.name.to_string(),
        kind: conflict.holder.kind.as_str().to_owned(),
        age_ms: millis(now.since(conflict.at)),
    }
}

/// Returns the states of all machines by name.
pub(super) fn states(sessions: &Sessions, learning: Learning) -> States {
    let streams = sessions.child_streams.streams.iter();
    let streams = streams.map(|(state, streams)| (state.as_str().to_owned(), count(*streams)));
    States {
        parent_session: sessions.parent.map(str::to_owned),
        election: sessions.election.map(|it| it.as_str().to_owned()),
        child_streams: streams.collect(),
        learning: learning.as_str().to_owned(),
    }
}

pub(crate) fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use doorward_session::candidate::state::CandidateState;
    use doorward_session::child_streams::ChildStreams;
    use doorward_session::time::Time;

    use super::*;

    #[test]
    fn the_state_of_a_machine_that_a_server_lacks_is_absent() {
        let status = states(&Sessions::default(), Learning::Over);
        assert_eq!((status.parent_session, status.election), (None, None));
        let mut streams = ChildStreams::new(Duration::ZERO);
        streams.handle_connected(Time::ZERO);
        let sessions = Sessions {
            parent: None,
            election: Some(CandidateState::ALL[0]),
            child_streams: streams.snapshot(),
        };
        let status = states(&sessions, Learning::Above);
        assert_eq!(status.parent_session, None);
        assert_eq!(
            status.election.as_deref(),
            Some(CandidateState::ALL[0].as_str())
        );
        let streams = [("open", 0), ("opening", 1)];
        let streams = streams.map(|(state, count)| (state.to_owned(), count));
        assert_eq!(status.child_streams, BTreeMap::from(streams));
        assert_eq!(status.learning, "above");
    }
}
