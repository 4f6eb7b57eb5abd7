//! Compiles the `.proto` files with protox, a compiler written in Rust: a fresh machine has no
//! `protoc`.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

/// Every file of the protocol, relative to this crate.
const FILES: [&str; 6] = [
    "doorman/doorman.proto",
    "doorward/v1/capacity_stream.proto",
    "doorward/admin/v1/admin.proto",
    "doorward/admin/v1/rules.proto",
    "envoy/service/ratelimit/v3/rls.proto",
    "envoy/service/rate_limit_quota/v3/rlqs.proto",
];

/// Messages with a JSON form, if the feature `json` is on.
const ADMIN: &str = ".doorward.admin.v1";
const JSON: &str = "#[cfg_attr(feature = \"json\", derive(serde::Serialize))]";

/// An enum is a number in generated code.
const UNIT: &str = ".doorward.admin.v1.LimitStatus.unit";
const UNIT_BY_NAME: &str =
    "#[cfg_attr(feature = \"json\", serde(serialize_with = \"crate::json::unit\"))]";

/// A message that is decoded within bounds.
const QUOTA_REPORTS: &str = ".envoy.service.rate_limit_quota.v3.RateLimitQuotaUsageReports";

fn main() -> Result<(), Box<dyn Error>> {
    for file in FILES {
        println!("cargo::rerun-if-changed={file}");
    }
    let descriptors = protox::compile(FILES, ["."])?;
    // For gRPC reflection.
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    // The callers bring their own channels, so the generated code needs no transport.
    tonic_prost_build::configure()
        .build_transport(false)
        .codec_path("crate::codec::Codec")
        .type_attribute(ADMIN, JSON)
        .field_attribute(UNIT, UNIT_BY_NAME)
        .extern_path(
            QUOTA_REPORTS,
            "crate::quota_reports::RateLimitQuotaUsageReports",
        )
        .btree_map(ADMIN)
        .btree_map(".envoy")
        .compile_fds(descriptors)?;
    Ok(())
}
