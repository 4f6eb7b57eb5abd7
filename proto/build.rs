//! Compiles the `.proto` files with protox, a compiler written in Rust: a fresh machine has no
//! `protoc`.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

/// Every file of the protocol, relative to this crate.
const FILES: [&str; 3] = [
    "doorman/doorman.proto",
    "doorward/v1/capacity_stream.proto",
    "doorward/admin/v1/admin.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    for file in FILES {
        println!("cargo::rerun-if-changed={file}");
    }
    let descriptors = protox::compile(FILES, ["."])?;
    // Served by gRPC reflection.
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    // Whoever calls a service brings its own channel: the generated code alone needs none.
    tonic_prost_build::configure()
        .build_transport(false)
        .compile_fds(descriptors)?;
    Ok(())
}
