//! A little of every attack, at the same time and from different addresses, as the soak bench does for half an hour.

use doorward_tests::attacker::attacker;
use doorward_tests::attacker::catalogue::{ATTACKS, Size};
use doorward_tests::besieged::{Besieged, MEMORY_MAX};
use tokio::task::JoinSet;

#[tokio::test(flavor = "multi_thread")]
async fn a_little_of_every_attack_at_once_disturbs_no_honest_client() {
    let mut besieged = Besieged::start(&[]).await;
    let mut waging = JoinSet::new();
    for (number, attack) in (0..).zip(ATTACKS) {
        let target = besieged.target.from(attacker(number));
        waging.spawn((attack.wage)(target, Size::Slow, 0));
    }
    let sieges = besieged.attacked(waging.join_all()).await;
    assert_eq!(sieges.len(), ATTACKS.len());
    besieged.assert_unmoved(MEMORY_MAX).await;
    drop(sieges);
}
