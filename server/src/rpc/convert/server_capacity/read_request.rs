//! Parser of a child server's request. A message may name a thousand resources, so it is parsed a few resources at a
//! time.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::claims::{BandDemand, DemandCurve, ServerDemand, Subclients};
use doorward_engine::id::{Caller, Incarnation, MastershipId, ResourceId};
use doorward_engine::messages::{GetServerCapacity, Has, ReportedLeases, ServerAsk};
use doorward_proto::budget;
use doorward_proto::doorman as wire;
use doorward_session::address::Address;
use smol_str::SmolStr;
use tonic::Status as RpcStatus;

use super::{BANDS_MAX, MASTERSHIPS_MAX};
use crate::rpc::convert::{
    NAMED_TWICE, amount, amount_if_given, check_count, has, holder_name, refusal,
};

/// A partly parsed request of a child server. It may name a thousand resources with dozens of points each, so the
/// server serves other calls in between.
#[derive(Debug)]
pub struct ReadRequest {
    /// The valid part of the request.
    pub request: GetServerCapacity,
    /// Refusals of invalid resources.
    pub refused: Vec<wire::Refusal>,
    named: HashSet<ResourceId>,
}

impl ReadRequest {
    /// Parses a request without its resources.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` if the request is invalid as a whole.
    pub fn begin(
        request: &wire::GetServerCapacityRequest,
        caller: Option<Caller>,
    ) -> Result<Self, RpcStatus> {
        let server = holder_name("server_id", &request.server_id)?;
        check_count(request.resource.len())?;
        let request = GetServerCapacity {
            caller,
            incarnation: request.incarnation.and_then(Incarnation::new),
            mastership: request.mastership.map(MastershipId::new),
            server,
            sequence: request.sequence,
            // A Doorman server sends neither epoch nor height. It counts as a leaf.
            epoch: request.epoch,
            height: request.height.unwrap_or(1).clamp(1, 64),
            address: valid_address(request.address.as_deref()),
            asks: Vec::with_capacity(request.resource.len()),
        };
        Ok(Self {
            request,
            refused: Vec::new(),
            named: HashSet::new(),
        })
    }

    /// Parses more resources of the request.
    pub fn read(&mut self, resources: &[wire::ServerCapacityResourceRequest], wall: Duration) {
        for asked in resources {
            match server_ask(asked, wall) {
                Ok(ask) if self.named.insert(ask.resource.clone()) => self.request.asks.push(ask),
                Ok(_) => {
                    let message = NAMED_TWICE.to_owned();
                    self.refused.push(refusal(&asked.resource_id, message));
                }
                Err(message) => self.refused.push(refusal(&asked.resource_id, message)),
            }
        }
    }
}

/// Returns the address, if it is one: it only helps those who look for the child.
fn valid_address(text: Option<&str>) -> Option<SmolStr> {
    let address = Address::parse(text?).ok()?;
    Some(address.as_str().into())
}

fn server_ask(
    asked: &wire::ServerCapacityResourceRequest,
    wall: Duration,
) -> Result<ServerAsk, String> {
    let resource =
        ResourceId::new(&asked.resource_id).map_err(|error| format!("resource_id {error}"))?;
    let said = |error: String| format!("{resource}: {error}");
    let has = asked.has.as_ref().map(|lease| has(lease, wall));
    let has = has.transpose().map_err(said)?;
    let outstanding = amount_if_given("outstanding", asked.outstanding).map_err(said)?;
    let outstanding = outstanding.map(|capacity| Has {
        expires_in: asked.outstanding_for_ms.map(Duration::from_millis),
        ..Has::untimed(capacity)
    });
    let unreported = amount_if_given("unheard", asked.unheard).map_err(said)?;
    let mut reported = Vec::with_capacity(asked.reported.len().min(MASTERSHIPS_MAX));
    for part in asked.reported.iter().take(MASTERSHIPS_MAX) {
        reported.push(ReportedLeases {
            granted_by: part.granted_by.map(MastershipId::new),
            capacity: amount("reported", part.capacity).map_err(said)?,
        });
    }
    let count = asked.wants.len();
    if count > BANDS_MAX {
        let problem = format!("wants has {count} priorities; at most {BANDS_MAX}");
        return Err(said(problem));
    }
    let mut seen = BTreeSet::new();
    let mut bands = Vec::with_capacity(count);
    for wanted in &asked.wants {
        if !seen.insert(wanted.priority) {
            return Err(said(format!("priority {} is given twice", wanted.priority)));
        }
        let band = band(wanted);
        let place = |error| said(format!("priority {}: {error}", wanted.priority));
        bands.push(band.map_err(place)?);
    }
    Ok(ServerAsk {
        reported,
        unreported: unreported.unwrap_or(Amount::ZERO),
        demand: Arc::new(ServerDemand::new(bands)),
        has,
        outstanding,
        learning: asked.learning.unwrap_or_default(),
        budget: budget::word(asked.budget.as_ref()),
        resource,
    })
}

fn band(wanted: &wire::PriorityBandAggregate) -> Result<BandDemand, String> {
    let wants = amount("wants", wanted.wants)?;
    let (number, most) = (wanted.num_clients, Subclients::MAX.get());
    if number < 0 {
        let problem = format!("num_clients is {number}; give a number that is not negative");
        return Err(problem);
    }
    // Exact: the conversion rounds only numbers that the check refuses.
    let count = number as f64;
    if count > most {
        return Err(format!("num_clients is {number}; at most {most}"));
    }
    // Without a curve, the request has counts and sums only: the demand of `clients` equal clients.
    let has_curve = !wanted.level.is_empty() || !wanted.demand.is_empty();
    let clients = match has_curve || wants.is_zero() {
        true => count,
        false => count.max(1.0),
    };
    let curve = match has_curve {
        true => DemandCurve::parse(&wanted.level, &wanted.demand, wants, count)
            .map_err(|error| format!("the demand curve {error}"))?,
        false => DemandCurve::of_equals(wants, clients),
    };
    Ok(BandDemand {
        priority: wanted.priority,
        clients,
        wants,
        curve,
    })
}
