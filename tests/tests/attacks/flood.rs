//! Attackers with frames that cost the server more than their sender: the server cuts them, and serves the others.

use doorward_tests::attacker::flood::{Amount, Flood, flood};
use doorward_tests::besieged::{Besieged, MEMORY_MAX};

/// Some ten thousand frames of an attacker that reconnects again and again; the bench sends millions.
const AMOUNT: Amount = Amount {
    times: 50_000,
    connections_max: 100,
};

#[tokio::test(flavor = "multi_thread")]
async fn every_flood_is_cut_and_nobody_else_notices() {
    let mut besieged = Besieged::start(&[]).await;
    for what in Flood::ALL {
        let outcome = besieged
            .attacked(flood(besieged.target, what, AMOUNT))
            .await;
        assert!(outcome.opened > 0, "{what:?}: {outcome}");
        assert!(
            outcome.cut > 0 || outcome.refused > 0,
            "{what:?}: {outcome}"
        );
        println!("{what:?}: {outcome}");
        let (served, memory) = besieged.assert_unmoved(MEMORY_MAX).await;
        println!("  honest: {served}; {memory:?}");
    }
    besieged.assert_counted(&["control_frames"]);
}
