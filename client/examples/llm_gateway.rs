//! A gateway to a language model: each tenant has tokens per minute, and all share the requests at once.
//!
//! The number of tokens is known only after the answer. So the gateway takes an estimate before the request and settles
//! the difference after it: a smaller use is refunded, and a larger one is paid back by later requests.
//!
//! ```sh
//! cargo run -p doorward --example llm_gateway          # without a server, by the client's fake one
//! ```

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::error::Error;
use std::time::Duration;

use doorward::limiter::demand::AdaptiveWants;
use doorward::limiter::rate::Burst;
use doorward::{Acquire as _, And, Client, ConcurrencyLimiter, Keyed, OnFailure, Refusal};

/// Limits of the gateway.
pub struct Gateway {
    requests_and_tokens: And<ConcurrencyLimiter, Keyed>,
}

impl Gateway {
    /// Opens the leases: tokens per second of each tenant, and requests at once of all of them.
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
        Ok(Self {
            requests_and_tokens: requests.concurrency_limiter().and(tokens),
        })
    }

    /// Asks the model for a tenant.
    pub async fn complete(&self, tenant: &str, prompt: &str) -> Result<String, Refusal> {
        // A token has about four letters; the answer is at most as long as the request allows.
        let estimate = prompt.len() as u64 / 4 + 500;
        let cost = (1, (tenant, estimate));
        let (_place, tokens) = self.requests_and_tokens.acquire(cost).await?;
        let (answer, used) = model(prompt).await;
        tokens.settle(used);
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
    for tenant in ["acme", "umbrella"] {
        println!("{tenant}: {}", gateway.complete(tenant, "leases").await?);
    }
    Ok(())
}
