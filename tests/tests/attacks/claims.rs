//! Attackers with well-formed requests: invented names, child servers that do not exist. One address takes a bounded
//! part of the server, and no holder loses its lease.

use doorward_tests::attacker::claims::{forged_children, invented_ids, invented_resources};
use doorward_tests::besieged::{Besieged, MEMORY_MAX};
use doorward_tests::honest::{HonestClient, channel};

#[tokio::test(flavor = "multi_thread")]
async fn invented_resources_of_one_address_leave_room_for_others() {
    // A resource and its first lease are some 1,000 bytes.
    let mut besieged = Besieged::start(&["--memory-per-address-max=25MiB"]).await;
    let attack = invented_resources(besieged.target, "invented", 100_000, 1_000);
    let outcome = besieged.attacked(attack).await;
    assert!(outcome.refused > 50_000, "{outcome}");
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["memory_per_address_bytes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn newcomers_of_one_address_are_as_many_each_second_as_it_may_bring() {
    let few = ["--newcomers-per-second-per-address-max=1000"];
    let mut besieged = Besieged::start(&few).await;
    let attack = invented_resources(besieged.target, "invented", 50_000, 1_000);
    let outcome = besieged.attacked(attack).await;
    assert!(outcome.refused > 0, "{outcome}");
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["newcomers_per_address"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn invented_resources_do_not_take_the_place_of_a_newcomer() {
    // As after a long attack: the address has used up its limits.
    let small = [
        "--memory-max=1000kB",
        "--memory-per-address-max=480kB",
        "--newcomers-per-second-per-address-max=100000",
    ];
    let mut besieged = Besieged::start(&small).await;
    let attack = invented_resources(besieged.target, "invented", 5_000, 100);
    let outcome = besieged.attacked(attack).await;
    assert!((1..=500).contains(&outcome.granted), "{outcome}");
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["memory_per_address_bytes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn invented_clients_of_one_address_leave_room_for_others() {
    let small = [
        "--memory-max=1040kB",
        "--memory-per-address-max=520kB",
        "--newcomers-per-second-per-address-max=100000",
        "--calls-per-second-per-address-max=100000",
    ];
    let mut besieged = Besieged::start(&small).await;
    let attack = invented_ids(besieged.target, "attacked/ids", 0..5_000, 16);
    let outcome = besieged.attacked(attack).await;
    assert!((1..=2_000).contains(&outcome.granted), "{outcome}");
    // The same resource still has room for others.
    let connection = channel(&besieged.server.address);
    let mut newcomer = HonestClient::new(connection, "newcomer", "attacked/ids");
    let less = newcomer.ask().await;
    assert!(newcomer.has.is_some(), "{less:?}");
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["memory_per_address_bytes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_address_are_as_many_as_it_may_make() {
    let mut besieged = Besieged::start(&["--calls-per-second-per-address-max=400"]).await;
    let attack = invented_ids(besieged.target, "attacked/ids", 0..10_000, 64);
    let outcome = besieged.attacked(attack).await;
    assert!(outcome.refused > 0, "{outcome}");
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["calls_per_address"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_child_servers_are_bounded() {
    let mut besieged = Besieged::start(&["--memory-per-address-max=64MiB"]).await;
    let attack = forged_children(besieged.target, "attacked/curve", 117, 900);
    let outcome = besieged.attacked(attack).await;
    assert!(outcome.refused > 0, "{outcome}");
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["memory_per_address_bytes"]);
}
