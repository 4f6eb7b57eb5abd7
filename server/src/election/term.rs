//! The rules of an election in etcd: how long a mastership holds, and when a successor may begin.
//!
//! The master's key goes with a lease. The master renews the lease, and then confirms in one
//! transaction that the key still is its own, writing its *term* under another key, which stays when
//! the mastership is over. It believes in its mastership until one TTL has passed since it *sent* the
//! last renewal that was confirmed so, less a margin.
//!
//! etcd lets a lease end no earlier than one TTL after it was renewed, so the key cannot go before
//! the master has stopped, as a rule. There are exceptions: an operator deletes the key, or revokes
//! the lease; an etcd leader that was deposed revokes one that was renewed elsewhere; etcd is wiped.
//! The master learns of these only if it reaches etcd. So a successor does not trust the absence of
//! the key alone: unless its predecessor has resigned, it does not begin before one TTL has passed
//! since it *saw* the predecessor's last confirmation. After a crash that time is over anyway when
//! the key goes, so it costs nothing then.

use std::time::Duration;

use doorward_clock::Instant;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::tolerance::Tolerance;
use doorward_etcd::directory::{Servers, Term};

/// What the master's clock may be slow by, over one TTL: a tenth of it, and not less than this.
const MARGIN_MIN: Duration = Duration::from_millis(100);

/// Until when a mastership holds that was confirmed after a renewal sent at that time. If clocks may
/// be wrong by more than a little, the margin is what a slow one of the master's and a fast one of
/// its successor's can differ by over one TTL.
pub fn valid_until(renewal_sent: Instant, ttl: Duration, tolerance: Tolerance) -> Instant {
    let part = tolerance.part();
    let differ = ttl.mul_f64(2.0 * part / (1.0 + part));
    renewal_sent + ttl.saturating_sub((ttl / 10).max(MARGIN_MIN).max(differ))
}

/// When the master of a term that was seen then has stopped to believe in it, at the latest.
pub fn is_over(term: &Term, seen: Instant) -> Instant {
    if term.resigned {
        seen
    } else {
        seen + Duration::from_millis(term.length_ms)
    }
}

/// When a candidate that has just won may begin. `last` is the last term of anybody, and when it
/// was seen here, which is no earlier than it was written.
pub fn may_begin(last: Option<(&Term, Instant)>, own_server: &str, won: Instant) -> Instant {
    match last {
        Some((term, seen)) if term.server != own_server => won.max(is_over(term, seen)),
        _ => won,
    }
}

/// Since when no master has decided anything, at the latest when the next one begins: since the last
/// one resigned, or could no longer believe in its mastership. Be it our own: what we have forgotten
/// since, we may have granted until then. `others` is until when masters before the last one may have
/// believed in theirs.
pub fn vacant_since(
    last: Option<(&Term, Instant)>,
    others: Option<Instant>,
    begins: Instant,
) -> Instant {
    // If nothing is known of anybody, etcd may have been set up anew.
    let over = last.map_or(begins, |(term, seen)| is_over(term, seen));
    others.map_or(over, |others| others.max(over)).min(begins)
}

/// What a term says of its length. One that has not begun covers what is left of its predecessor's,
/// whose place it has taken: who succeeds it early must wait as long.
pub fn length(begins: Instant, ttl: Duration, now: Instant) -> Duration {
    ttl.max(begins.saturating_duration_since(now))
}

/// What a candidate adds to the revision at which it creates the master's key, to have its epoch:
/// nothing, unless etcd has gone back, because it was set up anew or restored from a backup. Then
/// its epoch is above the highest one that is known all the same, so that clients believe it.
/// `revision` is one at which etcd was before the key is created.
pub fn epoch_offset(highest_epoch: u64, revision: u64) -> u64 {
    highest_epoch.saturating_sub(revision)
}

/// The mastership as a candidate that is not the master sees it, and who has seen that epoch.
pub fn seen_by_follower(servers: &Servers, own_address: &str, highest_epoch: u64) -> Mastership {
    match &servers.master {
        // Who has seen a higher one would not believe it: etcd was restored from a backup, and shows
        // somebody who was the master once, or does not know yet that its epoch must be higher.
        Some((_, epoch)) if *epoch < highest_epoch => Mastership::Unknown,
        // Under our own address there is nobody but us: a process before this one.
        Some((master, epoch)) if master.address != own_address => Mastership::Follower {
            master_address: master.address.clone(),
            epoch: Some(*epoch),
        },
        _ => Mastership::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use doorward_etcd::directory::Master;

    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn term(server: &str, resigned: bool) -> Term {
        Term {
            epoch: 7,
            address: "there:1".to_owned(),
            server: server.to_owned(),
            length_ms: 10_000,
            resigned,
            leases: None,
        }
    }

    #[tokio::test]
    async fn a_mastership_ends_before_its_lease_can() {
        let sent = Instant::now();
        for (ttl, holds) in [(10_000, 9_000), (2_000, 1_800), (500, 400), (50, 0)] {
            let until = valid_until(sent, Duration::from_millis(ttl), Tolerance::LEAST);
            assert_eq!(until, sent + Duration::from_millis(holds), "TTL {ttl} ms");
        }
    }

    #[test]
    fn a_mastership_ends_before_its_successor_begins_whichever_clock_is_wrong() {
        let sent = Instant::now();
        for part in [0.001, 0.01, 0.05, 0.1, 0.25] {
            let tolerance = Tolerance::of_part(part).unwrap();
            let holds = (valid_until(sent, TTL, tolerance) - sent).as_secs_f64();
            // The master's clock is as slow as it may be, the successor's as fast.
            let (ends, begins) = (holds / (1.0 - part), TTL.as_secs_f64() / (1.0 + part));
            assert!(ends <= begins + 1e-6, "{part}: {ends} {begins}");
            // And there is time to renew it: that is done every third of the TTL.
            assert!(holds > TTL.as_secs_f64() * 0.55, "{part}: {holds}");
        }
    }

    #[tokio::test]
    async fn a_successor_begins_when_its_predecessor_has_ended_for_certain() {
        let seen = Instant::now();
        let later = |seconds| seen + Duration::from_secs(seconds);
        let theirs = term("theirs", false);
        for (what, last, won, begins) in [
            ("there was nobody before", None, later(1), later(1)),
            (
                "it crashed, and its lease ran out",
                Some(&theirs),
                later(11),
                later(11),
            ),
            (
                "its key was deleted by hand",
                Some(&theirs),
                later(3),
                later(10),
            ),
            (
                "it resigned",
                Some(&term("theirs", true)),
                later(3),
                later(3),
            ),
            (
                "it was this process",
                Some(&term("ours", false)),
                later(3),
                later(3),
            ),
        ] {
            let last = last.map(|term| (term, seen));
            assert_eq!(may_begin(last, "ours", won), begins, "{what}");
        }
        // What the predecessor believes is over before.
        assert!(
            valid_until(seen, TTL, Tolerance::LEAST)
                < may_begin(Some((&theirs, seen)), "ours", seen)
        );
    }

    #[tokio::test]
    async fn a_node_is_vacant_since_nobody_can_have_decided() {
        let seen = Instant::now();
        let later = |seconds| seen + Duration::from_secs(seconds);
        let (theirs, ours) = (term("theirs", false), term("ours", false));
        let resigned = term("theirs", true);
        for (what, last, others, begins, vacant) in [
            ("nothing is known", None, None, 60, 60),
            ("it was cut off from etcd", Some(&theirs), None, 60, 10),
            ("it was this process", Some(&ours), None, 60, 10),
            ("it resigned", Some(&resigned), None, 60, 0),
            ("it began early", Some(&theirs), None, 3, 3),
            ("one before it has time", Some(&resigned), Some(7), 60, 7),
            ("ones before it had", Some(&theirs), Some(7), 60, 10),
        ] {
            let last = last.map(|term| (term, seen));
            let found = vacant_since(last, others.map(later), later(begins));
            assert_eq!(found, later(vacant), "{what}");
        }
    }

    #[test]
    fn epochs_go_on_although_revisions_go_back() {
        for (highest, revision, offset) in [(0, 3, 0), (7, 7, 0), (7, 20, 0), (7, 1, 6)] {
            let found = epoch_offset(highest, revision);
            assert_eq!(found, offset, "{highest} {revision}");
            assert!(highest < revision + 1 + found);
        }
    }

    #[tokio::test]
    async fn a_term_that_has_not_begun_covers_what_is_left_of_the_one_before() {
        let now = Instant::now();
        assert_eq!(length(now, TTL, now + TTL), TTL);
        assert_eq!(length(now + TTL / 2, TTL, now), TTL);
        assert_eq!(length(now + TTL * 3, TTL, now), TTL * 3);
    }

    #[test]
    fn a_follower_sends_to_the_master_and_never_to_itself() {
        let servers = |address: Option<&str>| Servers {
            master: address.map(|address| {
                let (address, server) = (address.to_owned(), "x".to_owned());
                (Master { address, server }, 9)
            }),
            ..Servers::default()
        };
        assert_eq!(
            seen_by_follower(&servers(None), "here:1", 9),
            Mastership::Unknown
        );
        assert_eq!(
            seen_by_follower(&servers(Some("here:1")), "here:1", 9),
            Mastership::Unknown
        );
        assert_eq!(
            seen_by_follower(&servers(Some("there:1")), "here:1", 10),
            Mastership::Unknown
        );
        assert_eq!(
            seen_by_follower(&servers(Some("there:1")), "here:1", 9),
            Mastership::Follower {
                master_address: "there:1".to_owned(),
                epoch: Some(9)
            }
        );
    }
}
