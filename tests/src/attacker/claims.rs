//! Attacks by well-formed requests: invented names, forged child servers, lies. Any gRPC library could send them.

use std::time::Duration;

use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_proto::doorman::{
    GetCapacityRequest, GetServerCapacityRequest, Lease, PriorityBandAggregate, ResourceRequest,
    ServerCapacityResourceRequest,
};
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::{Outcome, Target};

/// Longest time of a call.
const PATIENCE: Duration = Duration::from_secs(20);

/// Opens a connection from the attacker's address, as a gRPC library does.
pub fn channel(target: Target) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{}", target.grpc)).unwrap();
    endpoint
        .local_address(Some(target.from))
        .timeout(PATIENCE)
        .connect_lazy()
}

fn client(target: Target) -> CapacityClient<Channel> {
    CapacityClient::new(channel(target)).max_decoding_message_size(64 << 20)
}

/// Returns a claim of one resource.
pub fn claim(resource: String, priority: i64, wants: f64, has: Option<f64>) -> ResourceRequest {
    ResourceRequest {
        budget: None,
        resource_id: resource,
        priority,
        has: has.map(lease),
        wants,
    }
}

fn lease(capacity: f64) -> Lease {
    Lease {
        expiry_time: 0,
        refresh_interval: 1,
        capacity,
        expires_in_ms: Some(60_000),
        refresh_in_ms: None,
        granted_by: None,
    }
}

/// Returns a child server's request for a number of resources, each with a demand curve of the largest size.
pub fn child_request(child: &str, prefix: &str, resources: usize) -> GetServerCapacityRequest {
    const POINTS: u32 = 64;
    // D(w) of 64 clients that want 1, 2, … 64.
    let level = (1..=POINTS).map(f64::from);
    let demand = (1..=POINTS).map(|k| f64::from(k * (k + 1) / 2 + k * (POINTS - k)));
    let band = PriorityBandAggregate {
        priority: 0,
        num_clients: i64::from(POINTS),
        wants: f64::from(POINTS * (POINTS + 1) / 2),
        level: level.collect(),
        demand: demand.collect(),
    };
    let ask = |number: usize| ServerCapacityResourceRequest {
        resource_id: format!("{prefix}-{number}"),
        wants: vec![band.clone()],
        ..ServerCapacityResourceRequest::default()
    };
    GetServerCapacityRequest {
        server_id: child.to_owned(),
        resource: (0..resources).map(ask).collect(),
        ..GetServerCapacityRequest::default()
    }
}

/// Counts a call that names a number of resources.
fn count<T>(
    outcome: &mut Outcome,
    asked: usize,
    answer: &Result<T, Status>,
    granted: impl Fn(&T) -> usize,
) {
    outcome.done += 1;
    match answer {
        Ok(answer) => {
            let granted = granted(answer).min(asked);
            outcome.granted += granted as u64;
            outcome.refused += (asked - granted) as u64;
        }
        Err(status) if status.code() == Code::ResourceExhausted => outcome.refused += asked as u64,
        // The connection was cut, or the call took too long.
        Err(_) => outcome.cut += 1,
    }
}

async fn ask(client: &CapacityClient<Channel>, id: &str, claims: Vec<ResourceRequest>) -> Outcome {
    let (mut outcome, asked) = (Outcome::default(), claims.len());
    let request = GetCapacityRequest {
        client_id: id.to_owned(),
        resource: claims,
        ..GetCapacityRequest::default()
    };
    let answer = client.clone().get_capacity(request).await;
    let answer = answer.map(tonic::Response::into_inner);
    count(&mut outcome, asked, &answer, |it| it.response.len());
    outcome
}

/// Asks for new resources, as one client, a number of them in each call.
pub async fn invented_resources(
    target: Target,
    prefix: &str,
    resources: usize,
    each_call: usize,
) -> Outcome {
    let client = client(target);
    let mut outcome = Outcome::default();
    let mut numbers = (0..resources).peekable();
    while numbers.peek().is_some() {
        let numbers = numbers.by_ref().take(each_call.max(1));
        let claims = numbers.map(|number| claim(format!("{prefix}-{number}"), 0, 1.0, None));
        outcome.add(ask(&client, "inventor", claims.collect()).await);
    }
    outcome
}

/// Asks for one resource as many new clients, some of them at a time.
pub async fn invented_ids(
    target: Target,
    resource: &str,
    ids: std::ops::Range<usize>,
    at_once: usize,
) -> Outcome {
    let mut asking = JoinSet::new();
    let at_once = at_once.max(1);
    for part in 0..at_once {
        // Ten calls at a time on a connection.
        let client = client(target);
        let (resource, ids) = (resource.to_owned(), ids.clone().skip(part).step_by(at_once));
        asking.spawn(async move {
            let mut outcome = Outcome::default();
            for number in ids {
                let claims = vec![claim(resource.clone(), 0, 1.0, None)];
                outcome.add(ask(&client, &format!("invented-{number}"), claims).await);
            }
            outcome
        });
    }
    let mut outcome = Outcome::default();
    while let Some(part) = asking.join_next().await {
        outcome.add(part.unwrap_or_default());
    }
    outcome
}

/// Sends child servers that do not exist, each with as many demand curves as a message holds.
pub async fn forged_children(
    target: Target,
    prefix: &str,
    children: usize,
    curves: usize,
) -> Outcome {
    let client = client(target);
    let mut outcome = Outcome::default();
    for number in 0..children {
        let request = child_request(&format!("forged-{number}"), prefix, curves);
        let answer = client.clone().get_server_capacity(request).await;
        let answer = answer.map(tonic::Response::into_inner);
        count(&mut outcome, curves, &answer, |it| it.response.len());
    }
    outcome
}

/// Claims a resource at a number of priorities, from the highest downwards.
pub async fn priorities(target: Target, resource: &str, count: usize) -> Outcome {
    let client = client(target);
    let mut outcome = Outcome::default();
    for (number, priority) in (0..count).zip((i64::MIN..=i64::MAX).rev()) {
        let claims = vec![claim(resource.to_owned(), priority, 1e6, None)];
        outcome.add(ask(&client, &format!("important-{number}"), claims).await);
    }
    outcome
}

/// Reports a large lease, as a client.
pub async fn claimed(target: Target, resource: &str, has: f64) -> Outcome {
    let claims = vec![claim(resource.to_owned(), 0, has, Some(has))];
    ask(&client(target), "liar", claims).await
}

/// Reports a number of clients that each want a million, as a child server.
pub async fn crowded_child(target: Target, resource: &str, clients: i64) -> Outcome {
    let request = GetServerCapacityRequest {
        server_id: "crowded".to_owned(),
        resource: vec![ServerCapacityResourceRequest {
            resource_id: resource.to_owned(),
            wants: vec![PriorityBandAggregate {
                num_clients: clients,
                wants: clients as f64 * 1e6,
                ..PriorityBandAggregate::default()
            }],
            ..ServerCapacityResourceRequest::default()
        }],
        ..GetServerCapacityRequest::default()
    };
    let mut outcome = Outcome::default();
    let answer = client(target).get_server_capacity(request).await;
    let answer = answer.map(tonic::Response::into_inner);
    count(&mut outcome, 1, &answer, |it| it.response.len());
    outcome
}
