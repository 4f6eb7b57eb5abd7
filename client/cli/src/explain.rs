//! `doorward explain`: each step from the template of a resource to what a client has of it.
//!
//! The command looks for the client at every server of the tree. On the way down, each server grants a lease to the next
//! one, and the last server to the client. The first of these that is less than wanted shows where capacity is short.

use std::io::{self, Write};

use doorward_pages::terminal::Tone;
use doorward_proto::admin::v1::{ChildStatus, GetStatusRequest, LeaseStatus, ResourceStatus};
use doorward_session::visible::line;
use serde::Serialize;

use crate::caller::MasterCaller;
use crate::common::Common;
use crate::failure::{Failure, Result};
use crate::granted::{number, span, tone_of};
use crate::output::{self, Out};
use crate::status::tables::waits_for_parent;
use crate::tree::{Place, needs_master, walk};

/// Leases that are read at a server of the previous release, which does not search.
const LEASES_MAX: u32 = 10_000;

/// A client's lease and its reasons, as `--output json` prints them. Its field names are an interface.
#[derive(Debug, Serialize)]
struct Explanation<'a> {
    limited_by: String,
    /// Advice for people. Absent: none is needed.
    remedy: Option<String>,
    /// The client's lease.
    lease: &'a LeaseStatus,
    /// From the first server down to the client's own.
    path: Vec<&'a Place>,
    #[serde(skip)]
    steps: Vec<Step<'a>>,
}

/// A server on the way to the client, and what it gives to the next one, or to the client.
#[derive(Debug)]
struct Step<'a> {
    place: &'a Place,
    resource: &'a ResourceStatus,
    lease: LeaseStatus,
}

pub(crate) async fn run(common: &Common, resource: &str, client: &str) -> Result {
    let request = GetStatusRequest {
        resource_id: resource.to_owned(),
        holder: client.to_owned(),
        leases_max: LEASES_MAX,
        ..GetStatusRequest::default()
    };
    let places = walk(&MasterCaller::new(common)?, &request).await?;
    let first = places.first().and_then(|it| it.status.as_ref());
    first.map_or(Ok(()), needs_master)?;
    let found = places.iter().filter_map(|it| explain(client, &places, it));
    let found: Vec<_> = found.collect();
    let unknown: Vec<String> = places.iter().filter_map(unknown).collect();
    if found.is_empty() {
        let (client, resource) = (line(client), line(resource));
        let mut problem =
            format!("no client {client} holds any of {resource} at the servers asked");
        for unknown in unknown {
            problem += &format!("\nnot asked: {}", line(&unknown));
        }
        return Err(Failure::No(problem));
    }
    output::print(common, &found, |out| {
        found.iter().try_for_each(|it| write(out, it))?;
        if let Some(parent) = first.and_then(|it| it.parent.as_ref()) {
            let parent = line(&parent.address);
            let explains = format!("--server {parent} explains their steps, too");
            writeln!(out, "not asked: the servers above; {explains}")?;
        }
        let mut unknown = unknown.iter();
        unknown.try_for_each(|it| writeln!(out, "not asked: {}", line(it)))
    })
}

/// Returns why a server was not asked, with what is known of it. None: it was.
fn unknown(place: &Place) -> Option<String> {
    let masterless = place.status.as_ref().filter(|it| !it.is_master);
    let masterless = masterless.map(|_| "no master is known");
    let problem = place.problem.as_deref().or(masterless)?;
    let lease = place.lease.as_ref().map_or_else(String::new, |it| {
        let (clients, granted) = (number(it.clients_count), number(it.granted));
        format!("; its parent grants it {granted} for {clients} clients")
    });
    Some(format!("{}: {problem}{lease}", place.node))
}

/// Explains what the client has at that server. None: nothing.
fn explain<'a>(client: &str, places: &'a [Place], leaf: &'a Place) -> Option<Explanation<'a>> {
    let leases = &leaf.resource()?.leases;
    let mut leases = leases.iter();
    let lease = leases.find(|it| it.kind == "client" && it.holder == client)?;
    let above = leaf.above.iter().filter_map(|node| {
        let mut answered = places.iter().filter(|it| it.status.is_some());
        answered.find(|it| it.node == *node)
    });
    let path: Vec<&Place> = above.chain([leaf]).collect();
    let below = path.iter().skip(1);
    let below = below.map(|it| it.lease.as_ref().map(of_child));
    let given = below.chain([Some(lease.clone())]);
    let step = |(place, lease): (&&'a Place, Option<LeaseStatus>)| {
        let (resource, lease) = (place.resource()?, lease?);
        Some(Step {
            place,
            resource,
            lease,
        })
    };
    let steps: Vec<_> = path.iter().zip(given).filter_map(step).collect();
    let root = places.first().and_then(|it| it.status.as_ref());
    let matched = root.and_then(|it| it.template_match.as_ref());
    let is_matched = matched.is_none_or(|it| it.glob.is_some());
    let (limited_by, remedy) = limit(&steps, is_matched);
    Some(Explanation {
        limited_by,
        remedy,
        lease,
        path,
        steps,
    })
}

/// Returns the lease of a child server as one of any holder.
fn of_child(child: &ChildStatus) -> LeaseStatus {
    LeaseStatus {
        holder: child.child.clone(),
        kind: "server".to_owned(),
        subclients: child.clients_count,
        wants: child.wants,
        share: child.share,
        granted: child.granted,
        reserved: child.reserved,
        expires_in_ms: child.expires_in_ms,
        why: child.why.clone(),
        wants_more: child.wants_more,
        ..LeaseStatus::default()
    }
}

fn write(out: &mut Out<impl Write>, explanation: &Explanation<'_>) -> io::Result<()> {
    for step in &explanation.steps {
        let (place, resource, lease) = (step.place, step.resource, &step.lease);
        let node = out.paint(Tone::Strong, &line(&place.node));
        let address = line(place.address.as_deref().unwrap_or("an unknown address"));
        let from = match (&resource.template, &resource.own_lease) {
            (Some(glob), _) => format!("the template {:?}", line(glob)),
            (None, Some(_)) => "its parent".to_owned(),
            (None, None) => "a template that is gone".to_owned(),
        };
        let (capacity, all_want) = (number(resource.capacity), number(resource.wants));
        let algorithm = Some(resource.algorithm()).filter(|it| !it.is_empty());
        let algorithm = line(algorithm.unwrap_or("what its parent has not sent"));
        let divides = format!("{capacity} from {from}, divided by {algorithm}");
        let wants = format!("its holders want {all_want}");
        writeln!(out, "{node} at {address}: {divides}; {wants}")?;
        let (kind, why) = (line(&lease.kind), line(&lease.why));
        let holder = out.paint(Tone::Strong, &line(&lease.holder));
        let granted = out.paint(tone_of(lease.granted, lease.wants), &number(lease.granted));
        let [wants, share, reserved] = [lease.wants, lease.share, lease.reserved].map(number);
        let lasts = span(lease.expires_in_ms);
        write!(out, "  {kind} {holder}: {granted} of {wants} for {lasts}")?;
        writeln!(out, ", share {share}, reserved {reserved}: {why}")?;
    }
    writeln!(out, "limited by: {}", line(&explanation.limited_by))?;
    let mut remedy = explanation.remedy.iter();
    remedy.try_for_each(|it| writeln!(out, "what helps: {}", line(it)))
}

/// Returns what limits the client at the end of the steps, and what helps. `is_matched`: unless the root says that no
/// template matches the resource.
fn limit(steps: &[Step<'_>], is_matched: bool) -> (String, Option<String>) {
    let is_less = |less: f64, more: f64| less < more * (1.0 - 1e-6);
    let is_short = |it: &&Step<'_>| is_less(it.lease.granted, it.lease.wants);
    let (Some(last), Some(first)) = (steps.last(), steps.first()) else {
        return ("nothing is known".to_owned(), None);
    };
    let mut steps = steps.iter();
    let own_lease = |it: &Step<'_>| it.resource.own_lease.clone();
    let is_unleased = |it: &&Step<'_>| waits_for_parent(it.resource);
    let above = own_lease(first).and_then(|it| it.parent_learning_remaining_ms);
    let learning = |it: &Step<'_>| it.resource.learning_remaining_ms;
    let parent = |it: &Step<'_>| it.place.status.as_ref()?.parent.clone();
    let is_cut_off = |it: &&Step<'_>| parent(it).is_some_and(|it| it.link == "down");
    let waits = |it: &&Step<'_>| is_less(it.lease.granted, it.lease.share);
    let is_cut = |it: &&Step<'_>| it.lease.kind == "server" && it.lease.wants_more;
    let limited = |limit: String, remedy: &str| (limit, Some(remedy.to_owned()));
    if let Some(why) = steps.clone().find_map(|it| own_lease(it)?.refusal) {
        let limit = format!("a parent refuses the resource: {why}");
        return limited(limit, "a template at the root that matches it");
    }
    if !is_matched || own_lease(first).is_none() && first.resource.template.is_none() {
        let limit = "no template matches the resource: it is refused, and leases run down";
        return limited(limit.to_owned(), "a template at the root that matches it");
    }
    if let Some(Step { place, .. }) = steps.clone().find(is_unleased) {
        let limit = format!("{} has no lease from its parent", place.node);
        return limited(limit, "the link between them: doorward tree");
    }
    if !is_short(&last) && last.lease.wants_more {
        let limit = "wants_max: it wants more than counts".to_owned();
        return limited(limit, "a larger bound in the template");
    }
    if !is_short(&last) {
        return ("nothing; it has all that it wants".to_owned(), None);
    }
    if let Some(Step { place, .. }) = steps.clone().find(is_cut_off) {
        let node = &place.node;
        let limit = format!("{node} cannot reach its parent, and divides what it has");
        return limited(limit, "the link between them: doorward tree");
    }
    if let Some(left) = above.or_else(|| steps.clone().find_map(learning)) {
        let limit = format!("learning mode, {} left at most", span(left));
        let end = "waiting; at the root, doorward learning end, if nobody held anything before";
        return limited(limit, end);
    }
    if let Some(it) = steps.clone().find(waits) {
        let (node, holder, share) = (&it.place.node, &it.lease.holder, number(it.lease.share));
        let then = format!("{holder} gets its share, {share}, once they shrink");
        let limit = format!("leases of others at {node}; {then}");
        let wait = format!("waiting, for {} at most", span(it.resource.lease_length_ms));
        return limited(limit, &wait);
    }
    if let Some(Step { place, lease, .. }) = steps.clone().find(is_cut) {
        let (node, holder, most) = (&place.node, &lease.holder, number(lease.subclients));
        let limit = format!("subclients_max at {node}: only {most} clients of {holder} count");
        return limited(limit, "a larger subclients_max in the template");
    }
    let short = steps.find(|it| is_less(it.lease.share, it.lease.wants));
    let (limit, remedy) = division(short.unwrap_or(last), first.resource.template.as_deref());
    limited(limit, &remedy)
}

/// Returns the division that gives the client less than it wants, and what helps. `glob`: the template at the first
/// server.
fn division(short: &Step<'_>, glob: Option<&str>) -> (String, String) {
    let (resource, node) = (short.resource, &short.place.node);
    let [want, has] = [resource.wants, resource.capacity].map(number);
    let glob = glob.unwrap_or("of the resource");
    let less = format!("or less demand: doorward status {}", resource.resource_id);
    let or = match resource.algorithm() {
        "STATIC" => String::new(),
        "PRIORITY_BANDS" => format!(", a higher priority, {less}"),
        _ => format!(", {less}"),
    };
    let limit = format!("the division at {node}: its holders want {want} of {has}");
    (
        limit,
        format!("a larger capacity in the template {glob}{or}"),
    )
}
