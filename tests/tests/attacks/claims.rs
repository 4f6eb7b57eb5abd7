//! Attackers with well-formed requests: invented names, child servers that do not exist, lies. One address takes a
//! bounded part of the server, and no holder loses its lease.

use std::fs;
use std::time::Duration;

use doorward_tests::attacker::claims::{
    claimed, crowded_child, forged_children, invented_ids, invented_resources, priorities,
    released_for,
};
use doorward_tests::attacker::{Target, attacker};
use doorward_tests::besieged::{Besieged, MEMORY_MAX, TEMPLATES};
use doorward_tests::honest::{HonestClient, WANTS, channel};
use doorward_tests::ports::lasting_address;
use doorward_tests::processes::Server;
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn invented_resources_of_one_address_leave_room_for_others() {
    let mut besieged = Besieged::start(&[]).await;
    let attack = invented_resources(besieged.target, "invented", 100_000, 1_000);
    let outcome = besieged.attacked(attack).await;
    assert!(outcome.refused > 50_000, "{outcome}");
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["new_resources_per_address", "resources_per_address"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn invented_resources_do_not_take_the_place_of_a_newcomer() {
    // As after a long attack: the address has used up its limits.
    let small = [
        "--resources-max=1000",
        "--resources-per-address-max=500",
        "--new-resources-per-second-per-address-max=100000",
        "--new-resources-per-second-per-template-max=100000",
    ];
    let mut besieged = Besieged::start(&small).await;
    let attack = invented_resources(besieged.target, "invented", 5_000, 100);
    let outcome = besieged.attacked(attack).await;
    assert!((1..=500).contains(&outcome.granted), "{outcome}");
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["resources_per_address"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn invented_clients_of_one_address_leave_room_for_others() {
    let small = [
        "--leases-max=4000",
        "--leases-per-address-max=2000",
        "--new-leases-per-second-per-address-max=100000",
        "--new-leases-per-second-per-template-max=100000",
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
    besieged.assert_counted(&["leases_per_address"]);
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
    let mut besieged = Besieged::start(&[]).await;
    let attack = forged_children(besieged.target, "attacked/curve", 117, 900);
    let outcome = besieged.attacked(attack).await;
    assert!(outcome.refused > 0, "{outcome}");
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["child_servers_per_address", "curves", "curve_points"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn invented_priorities_do_not_use_up_those_of_a_resource() {
    let mut besieged = Besieged::start(&[]).await;
    let outcome = besieged
        .attacked(priorities(besieged.target, "banded", 64))
        .await;
    assert!(outcome.refused > 0, "{outcome}");
    // Honest clients' priorities are accepted, whatever the attackers left of the capacity.
    let connection = channel(&besieged.server.address);
    let mut newcomer = HonestClient::new(connection, "newcomer", "banded");
    let less = newcomer.ask().await;
    assert!(newcomer.has.is_some(), "{less:?}");
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["priorities_per_address", "priorities"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_server_of_any_number_of_clients_counts_for_what_the_template_lets_it() {
    let templates = "
resources:
- identifier_glob: attacked
  capacity: 100
  subclients_max: 5
  algorithm: {kind: FAIR_SHARE, lease_length: 3s, refresh_interval: 1s, learning_mode_duration: 0s}
";
    let templates = format!("{}{}", TEMPLATES, templates.replace("\nresources:\n", ""));
    // The first template that matches counts.
    let templates = put_first(&templates, "attacked");
    let mut besieged = Besieged::start_limited(&[], &templates, &["--refresh-floor=0s"]).await;
    let outcome = crowded_child(besieged.target, "attacked", 1_000_000_000_000).await;
    assert_eq!(outcome.done, 1);
    // A share of 100 / (5 + 1) is more than it wants, after the child server has shrunk or ended.
    let connection = channel(&besieged.server.address);
    let mut newcomer = HonestClient::new(connection, "newcomer", "attacked");
    let served = async {
        let mut turns = tokio::time::interval(Duration::from_millis(50));
        loop {
            turns.tick().await;
            crowded_child(besieged.target, "attacked", 1_000_000_000_000).await;
            if newcomer.ask().await.is_ok() {
                break;
            }
        }
    };
    besieged.attacked(served).await;
    besieged.assert_unmoved(MEMORY_MAX).await;
}

/// Moves the last template before all others.
fn put_first(templates: &str, glob: &str) -> String {
    let (others, last) = templates
        .rsplit_once(&format!("- identifier_glob: {glob}\n"))
        .unwrap();
    let others = others.replacen("resources:\n", "", 1);
    format!("resources:\n- identifier_glob: {glob}\n{last}{others}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lie_in_learning_mode_takes_nothing_from_who_says_the_truth() {
    const LEARNING: &str = "
resources:
- identifier_glob: '*'
  capacity: 100
  algorithm: {kind: FAIR_SHARE, lease_length: 60s, refresh_interval: 1s, learning_mode_duration: 30s}
";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("templates.yaml");
    fs::write(&path, LEARNING).unwrap();
    // A new server is in learning mode, as after a restart: it knows no holder.
    let address = lasting_address();
    let flags = ["--templates", path.to_str().unwrap(), "--refresh-floor=0s"];
    let _server = Server::start_at(&address, &flags);
    let target = Target {
        grpc: address.parse().unwrap(),
        http: None,
        from: attacker(0),
    };
    let outcome = claimed(target, "shared", 1e15).await;
    assert_eq!(outcome.done, 1);
    let mut clients = Vec::new();
    for number in 0..3 {
        let id = format!("truthful-{number}");
        let mut client = HonestClient::new(channel(&address), id, "shared");
        client.has = Some(WANTS);
        clients.push(client);
    }
    // The sum of the confirmed leases is at most the capacity, so the liar must shrink first: its lease is short, and a
    // second lie does not help. The earlier grants of the others last as long.
    let mut turns = tokio::time::interval(Duration::from_millis(50));
    let confirmed = async {
        loop {
            turns.tick().await;
            claimed(target, "shared", 1e15).await;
            let mut all = true;
            for client in &mut clients {
                client.has = Some(WANTS);
                all &= client.ask().await.is_ok();
            }
            if all {
                break;
            }
        }
    };
    let patience = tokio::time::timeout(Duration::from_secs(20), confirmed);
    patience.await.expect("within learning mode");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_by_a_process_that_never_asked_frees_nothing() {
    let mut besieged = Besieged::start(&[]).await;
    // The library's client has it, and does not refresh it within a second.
    let outcome = released_for(besieged.target, "client-0", "honest/library").await;
    assert_eq!(outcome.granted, 1, "it was answered: {outcome}");
    let status = besieged.server.status();
    let resources = status["resources"].as_array().unwrap();
    let of_library = |it: &&Value| it["resource_id"] == "honest/library";
    let library = resources.iter().find(of_library);
    let leases = library.map(|library| &library["leases_count"]);
    assert_eq!(leases, Some(&Value::from(1)), "{library:#?}");
    besieged.assert_unmoved(MEMORY_MAX).await;
}
