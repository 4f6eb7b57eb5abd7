//! Doorward's wire protocol as Rust types: generated code, how the status reads as JSON, and how limits stand.
//!
//! [`doorman`] is Doorman's protocol (package `doorman`, proto2) with optional fields numbered
//! from 101 that an old peer ignores. [`doorward`] carries the same messages on streams. [`admin`]
//! is what operators and tools need beyond it. The meaning of every field stands in the `.proto`
//! files beside this crate, and in `docs/protocol.md`.

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

#[cfg(feature = "json")]
mod json;
mod limits;

/// The version of [`admin::v1::GetStatusResponse`] as a model: it grows when a field is renamed, removed or given
/// another meaning, and not when one is added.
pub const STATUS_SCHEMA_VERSION: u32 = 1;

/// What a server says of itself to operators and tools.
#[allow(missing_docs, clippy::all, reason = "generated code")]
pub mod admin {
    /// The first version of the admin service.
    pub mod v1 {
        tonic::include_proto!("doorward.admin.v1");
    }
}

/// The compiled descriptors of every service, for gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
