//! Addresses on loopback for servers that must listen at a given address, and return to it.
//!
//! The ports are below those that systems assign to outgoing connections. So no other program takes one while its
//! server is down.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

const FIRST: u32 = 10_000;
const COUNT: u32 = 20_000;

/// Returns an address that this process uses once.
pub fn lasting_address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Test processes that run at the same time begin at different ports.
    let begin = std::process::id().wrapping_mul(128);
    for _ in 0..COUNT {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + begin.wrapping_add(next) % COUNT;
        let address = format!("127.0.0.1:{port}");
        if TcpListener::bind(&address).is_ok() {
            return address;
        }
    }
    unreachable!("a port is free");
}
