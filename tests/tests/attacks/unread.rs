//! Attackers that ask and never read: the server bounds unsent answers, and cuts the connection after a while.

use doorward_tests::attacker::{Siege, claims, unread};
use doorward_tests::besieged::{Besieged, MEMORY_MAX};

const HASTY: [&str; 2] = ["--patience", "2s"];

/// Waits until the server has ended every stream of a siege, or every connection.
async fn until_ended(besieged: &Besieged, siege: &mut Siege, streams: u64) {
    let ended = async {
        for connection in &mut siege.held {
            while connection.seen().ended < streams && !connection.is_cut() {
                // Nothing may arrive for a while.
                let _ = connection.read_some().await;
            }
        }
    };
    besieged.attacked(ended).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn child_servers_that_never_read_are_cut() {
    let mut besieged = Besieged::start(&HASTY).await;
    let attack = unread::child_streams(besieged.target, 30, 200);
    let mut siege = besieged.attacked(attack).await;
    until_ended(&besieged, &mut siege, 1).await;
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&[
        "patience_ms",
        "outgoing_bytes",
        "outgoing_bytes_per_address",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_for_operators_that_nobody_reads_take_bounded_memory_and_are_dropped() {
    let mut besieged = Besieged::start(&HASTY).await;
    // For large answers.
    let filled = claims::invented_resources(besieged.target, "read", 1_000, 500);
    let filled = besieged.attacked(filled).await;
    assert!(filled.granted > 0, "{filled}");
    let attack = unread::statuses(besieged.target, 30, 60);
    let mut siege = besieged.attacked(attack).await;
    until_ended(&besieged, &mut siege, 60).await;
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&[
        "patience_ms",
        "outgoing_bytes",
        "outgoing_bytes_per_address",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_and_descriptors_that_nobody_reads_take_bounded_memory() {
    let mut besieged = Besieged::start(&HASTY).await;
    let attack = unread::health_watches(besieged.target, 30, 60);
    let watches = besieged.attacked(attack).await;
    let attack = unread::reflections(besieged.target, 30, 60);
    let descriptors = besieged.attacked(attack).await;
    let attack = unread::pings(besieged.target, 30, 20_000);
    let pings = besieged.attacked(attack).await;
    besieged.assert_unmoved(MEMORY_MAX).await;
    drop((watches, descriptors, pings));
}
