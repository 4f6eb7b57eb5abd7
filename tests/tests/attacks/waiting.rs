//! Attackers that stay silent or slow: connections, headers and messages that do not end. The server cuts them, and
//! honest clients notice nothing.

use doorward_tests::attacker::waiting::{
    GET_CAPACITY, STREAM, announced_calls, half_open_calls, idle_http, one_byte,
    quiet_child_streams, reopen, silent_sockets, slow_http_headers, stopped_child_streams,
    unfinished_headers,
};
use doorward_tests::besieged::{Besieged, MEMORY_MAX, TEMPLATES};

/// Patience of the server: it closes connections that take longer.
const HASTY: [&str; 2] = ["--patience", "1s"];

/// Announces messages in as many calls as a connection may have, and as many as it can begin before it is cut, for
/// clients and for child servers.
async fn announce(besieged: &mut Besieged) {
    let mut sieges = Vec::new();
    for (path, calls) in [
        (GET_CAPACITY, 60),
        (GET_CAPACITY, 999),
        (STREAM, 60),
        (STREAM, 999),
    ] {
        let attack = announced_calls(besieged.target, 20, calls, path);
        sieges.push(besieged.attacked(attack).await);
    }
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["message_bytes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_announced_and_never_sent_take_no_memory() {
    announce(&mut Besieged::start(&[]).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_announced_do_not_abort_a_server_with_little_address_space() {
    let two_gigabytes = [("-v", 2 << 20)];
    announce(&mut Besieged::start_limited(&two_gigabytes, TEMPLATES, &[]).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_do_not_end_are_given_up() {
    let mut besieged = Besieged::start(&HASTY).await;
    let mut siege = half_open_calls(besieged.target, 3, 20).await;
    let ended = async {
        for connection in &mut siege.held {
            while connection.seen().ended < 20 && !connection.is_cut() {
                // Nothing may arrive for a while.
                let _ = connection.read_some().await;
            }
        }
    };
    besieged.attacked(ended).await;
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["patience_ms", "message_bytes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn child_servers_that_stop_shortly_before_the_end_of_a_message_are_bounded_and_cut() {
    let mut besieged = Besieged::start(&["--patience", "3s"]).await;
    let attack = stopped_child_streams(besieged.target, 60);
    let mut siege = besieged.attacked(attack).await;
    println!("{}", siege.outcome);
    let ended = async {
        for connection in &mut siege.held {
            while connection.seen().ended == 0 && !connection.is_cut() {
                let _ = connection.read_some().await;
            }
        }
    };
    besieged.attacked(ended).await;
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&[
        "patience_ms",
        "incoming_bytes_per_address",
        "incoming_bytes",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn child_servers_with_nothing_to_say_are_not_cut() {
    let mut besieged = Besieged::start(&HASTY).await;
    let mut siege = quiet_child_streams(besieged.target, 3).await;
    // A later connection that has waited for longer than the patience is closed before.
    let mut silent = silent_sockets(besieged.target.from([127, 0, 0, 9].into()), 1).await;
    besieged.attacked(silent.until_cut_to(0)).await;
    let mut slow = slow_http_headers(besieged.target.from([127, 0, 0, 9].into()), 1).await;
    besieged.attacked(slow.until_cut_to(0)).await;
    for connection in &mut siege.held {
        connection.look();
        assert!(!connection.is_cut());
        assert_eq!(connection.seen().ended, 0);
    }
    besieged.assert_unmoved(MEMORY_MAX).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_never_keep_anybody_from_being_accepted() {
    // No connection is cut for being silent too long.
    let few = ["--patience=10m", "--connections-max=500"];
    let mut besieged = Besieged::start(&few).await;
    let attack = silent_sockets(besieged.target, 2_200);
    let mut siege = besieged.attacked(attack).await;
    let anew = reopen(&mut siege, besieged.target, 150, 450);
    besieged.attacked(anew).await;
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["connections", "connections_per_address"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_are_cut_when_the_patience_is_over() {
    let mut besieged = Besieged::start(&HASTY).await;
    let mut siege = silent_sockets(besieged.target, 200).await;
    besieged.attacked(siege.until_cut_to(0)).await;
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["patience_ms"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_said_one_byte_are_bounded_and_cut() {
    let mut besieged = Besieged::start(&["--patience", "3s"]).await;
    let attack = one_byte(besieged.target, 5_000);
    let mut siege = besieged.attacked(attack).await;
    besieged.attacked(siege.until_cut_to(0)).await;
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["connections", "connections_per_address", "patience_ms"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_whose_headers_do_not_end_are_cut() {
    let mut besieged = Besieged::start(&HASTY).await;
    let mut siege = unfinished_headers(besieged.target, 200).await;
    besieged.attacked(siege.until_cut_to(0)).await;
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["patience_ms"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_and_idle_readers_of_pages_keep_nobody_from_them() {
    let mut besieged = Besieged::start(&["--patience", "3s"]).await;
    let attack = slow_http_headers(besieged.target, 3_000);
    let mut siege = besieged.attacked(attack).await;
    assert!(besieged.server.get("/healthz").ends_with("ok\n"));
    besieged.attacked(siege.until_cut_to(0)).await;
    let mut idle = idle_http(besieged.target, 500).await;
    assert!(besieged.server.get("/healthz").ends_with("ok\n"));
    besieged.attacked(idle.until_cut_to(0)).await;
    besieged.assert_unmoved(MEMORY_MAX).await;
    besieged.assert_counted(&["http_connections", "http_connections_per_address"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_64_files_serves_honest_clients_beside_any_number_of_connections() {
    let files = [("-n", 64)];
    let mut besieged = Besieged::start_limited(&files, TEMPLATES, &[]).await;
    let attack = silent_sockets(besieged.target, 1_000);
    let silent = besieged.attacked(attack).await;
    let attack = one_byte(besieged.target.from([127, 0, 0, 8].into()), 1_000);
    let hesitant = besieged.attacked(attack).await;
    let attack = slow_http_headers(besieged.target, 200);
    let slow = besieged.attacked(attack).await;
    assert!(besieged.server.get("/healthz").ends_with("ok\n"));
    besieged.assert_unmoved(MEMORY_MAX).await;
    drop((silent, hesitant, slow));
}
