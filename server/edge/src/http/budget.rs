//! `/v1/reserve`, `/v1/settle` and `/v1/refund`: calls that use budgets.
//!
//! A program reserves an estimate before a call, and settles what it used. Both carry the key of the reservation, so a
//! repeated request counts once. A reservation that is not ended within its time counts as estimated. Programs of one
//! identity share their keys.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use doorward_engine::messages::AMOUNT_MAX;
use serde::Deserialize;
use serde_json::{Value, json};

use super::peer::Peer;
use super::problem::{Body, Problem};
use crate::caller::{Amounts, Caller, Kind, Refused};
use crate::clock;
use crate::edge::Edge;

/// Longest key, in bytes.
const KEY_BYTES_MAX: usize = 128;

/// Budgets of a reservation, at most.
const BUDGETS_MAX: usize = 16;

/// Longest wait for an answer of the node. A call ends by a timeout after ten seconds.
const WAIT_MAX: f64 = 9.0;

/// Shortest time of a reservation.
const LASTS_MIN: Duration = Duration::from_secs(1);

/// Longest time of a reservation.
const LASTS_MAX: f64 = 86_400.0;

/// Body of a reservation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReserveForm {
    /// Absent: the answer has one.
    key: Option<String>,
    budgets: Amounts,
    /// Absent: a second.
    wait_seconds: Option<f64>,
    /// Absent: ten minutes.
    lasts_seconds: Option<f64>,
}

/// Body of its end. A budget that is not named used what was reserved.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SettleForm {
    key: String,
    #[serde(default)]
    used: Amounts,
}

/// Body of a refund.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RefundForm {
    key: String,
}

pub(super) async fn reserve(
    State(edge): State<Arc<Edge>>,
    peer: Peer,
    body: Body<ReserveForm>,
) -> Result<Json<Value>, Problem> {
    let Json(form) = body?;
    if form.budgets.is_empty() || form.budgets.len() > BUDGETS_MAX {
        let count = form.budgets.len();
        let detail = format!("budgets: there are {count}; give 1 to {BUDGETS_MAX}");
        return Err(Problem::invalid(detail));
    }
    check_amounts("budgets", &form.budgets)?;
    let key = form
        .key
        .unwrap_or_else(|| format!("{:016x}", clock::incarnation().get()));
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        let detail = format!("key: give 1 to {KEY_BYTES_MAX} bytes");
        return Err(Problem::invalid(detail));
    }
    let wait = seconds("wait_seconds", form.wait_seconds.unwrap_or(1.0), WAIT_MAX)?;
    let lasts = seconds(
        "lasts_seconds",
        form.lasts_seconds.unwrap_or(600.0),
        LASTS_MAX,
    )?;
    // A reservation that ends at once would have no key.
    let lasts = lasts.max(LASTS_MIN);
    let caller = caller(&edge, &peer)?;
    let reserved = caller.reserve(&key, &form.budgets, (wait, lasts), edge.clock);
    let budgets = reserved.await.inspect_err(|refused| {
        let early = u64::from(refused.kind == Kind::NotYet);
        edge.refused_early.fetch_add(early, Ordering::Relaxed);
    })?;
    Ok(Json(json!({"key": key, "budgets": budgets})))
}

pub(super) async fn settle(
    State(edge): State<Arc<Edge>>,
    peer: Peer,
    body: Body<SettleForm>,
) -> Result<Json<Value>, Problem> {
    let Json(form) = body?;
    check_amounts("used", &form.used)?;
    end(&edge, &peer, &form.key, Some(&form.used))
}

pub(super) async fn refund(
    State(edge): State<Arc<Edge>>,
    peer: Peer,
    body: Body<RefundForm>,
) -> Result<Json<Value>, Problem> {
    let Json(form) = body?;
    end(&edge, &peer, &form.key, None)
}

fn end(
    edge: &Arc<Edge>,
    peer: &Peer,
    key: &str,
    used: Option<&Amounts>,
) -> Result<Json<Value>, Problem> {
    let counted = caller(edge, peer)?.end(key, used, edge.clock.now())?;
    Ok(Json(json!({"counted": counted})))
}

fn caller(edge: &Arc<Edge>, peer: &Peer) -> Result<Arc<Caller>, Problem> {
    let caller = edge.caller(peer.asker(None).identity(), 0);
    caller.ok_or_else(|| Problem::invalid("the caller's identity cannot name a client"))
}

fn check_amounts(field: &str, amounts: &Amounts) -> Result<(), Problem> {
    let is_invalid = |it: &(&String, &u64)| *it.1 > AMOUNT_MAX;
    amounts
        .iter()
        .find(is_invalid)
        .map_or(Ok(()), |(id, amount)| {
            let detail = format!("{field}.{id}: is {amount}; give at most {AMOUNT_MAX}");
            Err(Problem::invalid(detail))
        })
}

fn seconds(field: &str, value: f64, most: f64) -> Result<Duration, Problem> {
    let time = Duration::try_from_secs_f64(value).ok();
    let time = time.filter(|_| value <= most);
    time.ok_or_else(|| Problem::invalid(format!("{field}: {value} is not in 0 to {most}")))
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let status = match refused.kind {
            Kind::UsedUp => StatusCode::TOO_MANY_REQUESTS,
            Kind::NotYet | Kind::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
            Kind::Unknown => StatusCode::NOT_FOUND,
            Kind::Conflict => StatusCode::CONFLICT,
            Kind::Invalid => StatusCode::BAD_REQUEST,
        };
        Self::new(status, refused.detail).retry_in(refused.retry_in)
    }
}
