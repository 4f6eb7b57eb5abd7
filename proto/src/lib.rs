//! Doorward's wire protocol as Rust types: generated code, the JSON form of the status, the judgement of limits, and
//! the list of states.
//!
//! [`doorman`] is Doorman's protocol (package `doorman`, proto2) with optional fields numbered from 101 that an old
//! peer ignores. [`doorward`] carries the same messages on streams. [`admin`] has the server's status and rule
//! documents for operators and tools. The `.proto` files beside this crate define every field; `docs/protocol.md`
//! explains how they work together.

/// Doorman's protocol: clients and child servers ask for capacity and get leases.
#[allow(missing_docs, clippy::all, reason = "generated code")]
pub mod doorman {
    tonic::include_proto!("doorman");
}

/// Doorman's messages on streams, between servers.
#[allow(missing_docs, clippy::all, reason = "generated code")]
pub mod doorward {
    /// The first version of the streams.
    pub mod v1 {
        tonic::include_proto!("doorward.v1");
    }
}

/// Envoy's protocols for limits, as far as Doorward speaks them.
#[allow(missing_docs, clippy::all, reason = "generated code")]
pub mod envoy {
    /// RLS: a call for each request.
    pub mod ratelimit {
        tonic::include_proto!("envoy.service.ratelimit.v3");
    }
    /// RLQS: reports and assignments on a stream.
    pub mod rate_limit_quota {
        tonic::include_proto!("envoy.service.rate_limit_quota.v3");
        pub use crate::quota_reports::*;
    }
}

pub mod budget;
pub mod codec;
#[cfg(feature = "json")]
mod json;
mod limits;
#[cfg(feature = "json")]
pub mod plan;
mod quota_reports;
mod states;
#[cfg(feature = "json")]
pub mod tree;

/// Version of the model [`admin::v1::GetStatusResponse`]. It grows when a field is renamed, removed or given another
/// meaning, and not when one is added.
pub const STATUS_SCHEMA_VERSION: u32 = 1;

/// The status of a server, for operators and tools.
#[allow(missing_docs, clippy::all, reason = "generated code")]
pub mod admin {
    /// The first version of the admin service.
    pub mod v1 {
        tonic::include_proto!("doorward.admin.v1");
    }
}

/// The compiled descriptors of every service, for gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
