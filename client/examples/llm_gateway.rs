//! A gateway to a language model: each tenant has tokens a minute, tokens a day and dollars a month, and all share the
//! requests at once.
//!
//! The number of tokens is known only after the answer. So the gateway takes an estimate before the request and settles
//! the difference after it: a smaller use is refunded, and a larger one is paid back by later requests. Tokens a minute
//! are a rate, which protects the model. The day and the month are budgets, which are never overspent.
//!
//! ```sh
//! cargo run -p doorward --example llm_gateway          # without a server, by the client's fake one
//! ```

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use doorward::limiter::demand::AdaptiveWants;
use doorward::limiter::rate::Burst;
use doorward::{Acquire as _, And, BudgetLimiter, Client, ConcurrencyLimiter, Keyed, OnFailure};

/// The tenants of the gateway.
pub const TENANTS: [&str; 3] = ["acme", "umbrella", "initech"];

/// Price of a token, in millionths of a dollar.
const PRICE: u64 = 30;

/// Requests at once, tokens a minute, tokens a day, and dollars a month.
type Limiter = And<And<And<ConcurrencyLimiter, Keyed>, BudgetLimiter>, BudgetLimiter>;

/// Limits of the gateway.
pub struct Gateway {
    tenants: BTreeMap<&'static str, Limiter>,
}

impl Gateway {
    /// Opens the leases and budgets.
    pub fn open(client: &Client) -> Result<Self, Box<dyn Error>> {
        let tokens = client
            .keyed("llm/tokens/{}")
            .adaptive_wants(AdaptiveWants {
                least: 1_000.0,
                ..AdaptiveWants::default()
            })
            .burst(Burst {
                span: Duration::from_secs(1),
                least: 4_000.0,
            })
            .on_failure(OnFailure::UpTo(2_000.0))
            .open()?;
        let requests = client.resource("llm/requests").open()?;
        let requests = requests.concurrency_limiter();
        let mut tenants = BTreeMap::new();
        for tenant in TENANTS {
            let day = client.budget(format!("llm/tokens-a-day/{tenant}"))?;
            let month = client.budget(format!("llm/dollars-a-month/{tenant}"))?;
            let limiter = requests.clone().and(tokens.clone()).and(day).and(month);
            tenants.insert(tenant, limiter);
        }
        Ok(Self { tenants })
    }

    /// Asks the model for a tenant.
    pub async fn complete(&self, tenant: &str, prompt: &str) -> Result<String, Box<dyn Error>> {
        let limiter = self.tenants.get(tenant).ok_or("there is no such tenant")?;
        // A token has about four letters; the answer is at most as long as the request allows.
        let estimate = prompt.len() as u64 / 4 + 500;
        let cost = (((1, (tenant, estimate)), estimate), estimate * PRICE);
        let (((_place, tokens), day), month) = limiter.acquire(cost).await?;
        let (answer, used) = model(prompt).await;
        tokens.settle(used);
        day.settle(used);
        month.settle(used * PRICE);
        Ok(answer)
    }
}

/// Stands for the model: returns its answer, and the tokens that it used.
async fn model(prompt: &str) -> (String, u64) {
    (format!("about {prompt}"), prompt.len() as u64 / 4 + 20)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (client, server) = Client::fake("gateway-1");
    server.set_capacity("llm/requests", 16.0);
    let gateway = Gateway::open(&client)?;
    for tenant in TENANTS {
        println!("{tenant}: {}", gateway.complete(tenant, "leases").await?);
    }
    Ok(())
}
