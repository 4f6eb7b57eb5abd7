//! A follower of etcd continues through all faults of its members.

use std::ops::Range;

use doorward_tests::etcd::Etcd;
use tokio::join;

use crate::processes::etcd::follow::{LOOK, Reader};
use crate::processes::etcd::impatient;

#[tokio::test]
async fn members_may_die_or_freeze_one_after_the_other() {
    let mut etcd = Etcd::cluster(3).await;
    let config = impatient(etcd.config());
    // Their number is so large that some follow each of the members.
    let mut readers: Vec<_> = (0..4).map(|_| Reader::start(&config, LOOK)).collect();
    let mut number = 0;
    for freezes in [false, true] {
        // The leader, another member, and the new leader.
        for leads in [true, false, true] {
            let member = match leads {
                true => etcd.leader().await,
                false => etcd.follower().await,
            };
            if freezes {
                etcd.freeze(member);
            } else {
                etcd.kill(member);
            }
            number += 1;
            let value = number.to_string();
            etcd.put("/a/1", "gone").await;
            etcd.put("/a/1", &value).await;
            etcd.compact().await;
            for reader in &mut readers {
                reader.until_shows(&[("/a/1", &value)]).await;
            }
            if freezes {
                etcd.thaw(member);
            } else {
                etcd.restart(member);
            }
            etcd.settled().await;
        }
    }
    for reader in &mut readers {
        reader
            .until("no problem", |now| now.problem.is_none())
            .await;
    }
}

#[tokio::test]
async fn a_member_that_was_frozen_while_the_past_was_forgotten_goes_on() {
    let mut etcd = Etcd::cluster(3).await;
    let member = etcd.follower().await;
    // There is no other endpoint.
    let config = impatient(etcd.config_at(&[etcd.address(member)]));
    let mut reader = Reader::start(&config, LOOK);
    etcd.put("/a/1", "x").await;
    reader.until_shows(&[("/a/1", "x")]).await;
    etcd.freeze(member);
    for number in 0..10 {
        etcd.put("/a/2", &number.to_string()).await;
    }
    etcd.delete("/a/1").await;
    etcd.compact().await;
    reader.until("a problem", |now| now.problem.is_some()).await;
    etcd.thaw(member);
    reader.until_shows(&[("/a/2", "9")]).await;
    reader
        .until("no problem", |now| now.problem.is_none())
        .await;
}

#[tokio::test]
async fn while_etcd_is_away_it_says_so_and_what_was_known_stays() {
    let [some, all] = [0..2, 0..3];
    join!(
        is_away(some.clone(), Etcd::freeze, Etcd::thaw),
        is_away(some, Etcd::kill, Etcd::restart),
        is_away(all, Etcd::kill, Etcd::restart),
    );
}

/// Checks that etcd is away without a majority.
async fn is_away(members: Range<usize>, goes: fn(&mut Etcd, usize), comes: fn(&mut Etcd, usize)) {
    let mut etcd = Etcd::cluster(3).await;
    let config = impatient(etcd.config());
    etcd.put("/a/1", "x").await;
    let mut reader = Reader::start(&config, LOOK);
    reader.until_shows(&[("/a/1", "x")]).await;
    members.clone().for_each(|member| goes(&mut etcd, member));
    let away = reader.until("a problem", |now| now.problem.is_some()).await;
    let problem = away.problem.unwrap().to_string();
    assert!(problem.contains("does not answer"), "{problem}");
    // It keeps asking, without an answer.
    for _ in 0..5 {
        tokio::time::sleep(LOOK).await;
        let now = reader.now();
        assert_eq!((now.heard_at, now.view), (away.heard_at, away.view.clone()));
        assert!(now.problem.is_some());
    }
    members.for_each(|member| comes(&mut etcd, member));
    let back = reader
        .until("no problem", |now| now.problem.is_none())
        .await;
    assert!(back.heard_at > away.heard_at);
    assert_eq!(back.view.unwrap().entries, away.view.unwrap().entries);
    etcd.put("/a/2", "y").await;
    reader.until_shows(&[("/a/1", "x"), ("/a/2", "y")]).await;
}
