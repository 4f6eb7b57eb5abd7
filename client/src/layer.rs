//! Layers by which a service limits its callers, and a client obeys the limits of others: for axum, hyper and tonic.
//!
//! ```no_run
//! use std::net::SocketAddr;
//!
//! use axum::{Router, routing::get};
//! use doorward::layer::{LimitLayer, Limits};
//! use doorward::rules::{Rules, client_ip};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let limits = Limits::new(Rules::named("api").per(client_ip(), "100/s"))?;
//! let app = Router::new().route("/", get(|| async { "hello\n" })).layer(LimitLayer::new(limits));
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
//! # Ok(()) }
//! ```
//!
//! A [`LimitLayer`] limits by [rules](crate::rules), overload control or leases, or several of them. Around one service of
//! tonic, it limits that service alone; [`Limits::interceptor`] is for a server of tonic that takes no layer. Around a
//! client, it lets requests wait for a lease. [`RetryPolicy`] repeats refused ones.
//!
//! The documents `docs/overload.md`, `docs/services.md` and `docs/rules.md` of the repository explain their use.

mod body;
mod clock;
#[cfg(feature = "tonic")]
mod grpc;
#[cfg(feature = "tonic")]
mod interceptor;
mod leases;
mod limit_layer;
mod limits;
mod meters;
pub mod overload;
mod pass;
mod refusal;
mod request;
mod retry;

pub use body::RefusableBody;
#[cfg(feature = "tonic")]
pub use interceptor::RulesInterceptor;
pub use limit_layer::{LimitLayer, LimitService, ResponseFuture};
pub use limits::{BuildError, Limits, LimitsBuilder};
pub use overload::Overload;
pub use request::{Degraded, Login};
pub use retry::{RetryConfig, RetryPolicy};

/// The guide and the package's page, whose programs compile as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/services.md")]
#[doc = include_str!("../../docs/coming_from.md")]
#[doc = include_str!("../README.md")]
struct Guide;

/// The guide of overload control.
#[cfg(doctest)]
#[doc = include_str!("../../docs/overload.md")]
struct OverloadGuide;
