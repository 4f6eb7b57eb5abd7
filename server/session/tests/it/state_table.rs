//! A table: the reaction of a candidate to each event in each state.

use std::time::Duration;

use doorward_session::candidate::store::{LeaseId, OpAnswer, Role, TreePlace};

use crate::driven_candidate::{DrivenCandidate, TTL};

/// Lets one event of the table happen.
fn happen(event: &str, played: &mut DrivenCandidate) {
    match event {
        "" => {}
        "yes" => played.transacted(true),
        "no" => played.transacted(false),
        "failed" => played.answer(OpAnswer::Failed),
        "lease gone" => played.answer(OpAnswer::LeaseGone),
        "granted" => played.answer(OpAnswer::Granted(LeaseId(9), TTL)),
        "probed" => played.answer(OpAnswer::Probed),
        "renewed" => played.answer(OpAnswer::Renewed),
        "revoked" => played.answer(OpAnswer::Revoked),
        "unanswered" => played.asked = None,
        "resign" => played.resign(),
        "key gone" => played.lose_key(),
        "registration waits" => played.is_registered = false,
        "not able" => played.candidate.handle_able(false, played.now),
        "moved" => {
            let (role, level) = (Role::Leaf, Some(1));
            let place = TreePlace { role, level };
            played.candidate.handle_place(place, played.now);
            played.drain();
        }
        "epoch 5000 elsewhere" => played.other_saw = Some(5_000),
        "wait" => played.wait(Duration::ZERO),
        "wait 1s" => played.wait(Duration::from_secs(1)),
        "wait 11s" => played.wait(Duration::from_secs(11)),
        "wait TTL/3" => played.wait(TTL / 3),
        "wait TTL" => played.wait(TTL),
        // The key of a process, at a revision and under a lease; 0 is none.
        key => {
            let ["key", process, created, lease] = *key.split(' ').collect::<Vec<_>>() else {
                panic!("{event:?} is no event");
            };
            let created = match created {
                "old" => played.revision - 2,
                "own" => played.epoch(),
                revision => revision.parse().unwrap(),
            };
            played.see(Some((process, created, lease.parse().unwrap())), None);
        }
    }
}

/// Each row has a title, the events, and then the state and the request.
#[track_caller]
fn check(from: fn() -> DrivenCandidate, table: &str) {
    for row in table.trim().lines() {
        let [_, events, state, asks] = *row.split('|').map(str::trim).collect::<Vec<_>>() else {
            panic!("{row:?} has not four columns");
        };
        let mut played = from();
        for event in events.split(',') {
            happen(event.trim(), &mut played);
        }
        let came = (format!("{:?}", played.state()), played.asks());
        assert_eq!(came, (state.to_owned(), asks), "{row}");
    }
}

#[test]
fn outside() {
    check(
        DrivenCandidate::outside,
        "nothing                    |                                 | Outside  | grant
         it has a lease             | registration waits, granted     | Watching | register
         the other endpoint at once | failed                          | Outside  | probe
         none of both, it waits     | failed, failed                  | Outside  |
         and then tries again       | failed, failed, wait 1s, probed | Outside  | grant
         it resigns                 | resign                          | Over     |",
    );
}

#[test]
fn watching() {
    check(
        DrivenCandidate::watching,
        "nothing                            |                                   | Watching  |
         there is no master                 | key gone                          | Standing  | stand for election
         there is none, and it is not able  | not able, key gone                | Watching  |
         the lease is due                   | wait TTL/3                        | Watching  | renew
         neither endpoint answers, it waits | wait TTL/3, failed, failed        | Watching  |
         the lost answer was that it won    | key ours 120 9                    | Elected   | confirm a mastership
         a key without a lease for no time  | key hand 120 0                    | Watching  |
         and for a TTL                      | key hand 120 0, wait 11s, renewed | Watching  | delete a key without a lease
         its place is another one           | moved                             | Watching  |
         it resigns                         | resign                            | Resigning | revoke",
    );
}

#[test]
fn failures_are_forgotten_once_all_requests_are_answered() {
    check(
        || {
            let mut played = DrivenCandidate::watching();
            for event in [
                "wait TTL/3",
                "failed",
                "failed",
                "wait 1s",
                "probed",
                "renewed",
            ] {
                happen(event, &mut played);
            }
            played
        },
        "it renews                  | wait TTL/3         | Watching | renew
         the other endpoint at once | wait TTL/3, failed | Watching | probe",
    );
}

#[test]
fn standing() {
    check(
        DrivenCandidate::standing,
        "it won                                 | yes                   | Elected   | confirm a mastership
         another was faster                     | no                    | Watching  |
         no answer: it asks again, elsewhere    | failed                | Standing  | stand for election
         its lease is gone                      | lease gone            | Outside   |
         a master came meanwhile                | key theirs 120 7, no  | Watching  |
         an epoch came meanwhile that is higher | key theirs 500 7, yes | Watching  | give a mastership back
         it resigns                             | resign                | Resigning | revoke",
    );
}

#[test]
fn elected() {
    check(
        DrivenCandidate::elected,
        "it is confirmed                                    | yes        | Master    |
         it is not                                          | no         | Watching  |
         no answer: it asks again, elsewhere                | failed     | Elected   | confirm a mastership
         the lease of its span is gone: it gets another one | lease gone, renewed | Elected | confirm a mastership
         its key is gone                                    | key gone   | Standing  | stand for election
         it resigns                                         | resign     | Resigning | resign",
    );
}

#[test]
fn master() {
    check(
        DrivenCandidate::master,
        "nothing                                                   |                                      | Master    |
         its key is gone                                           | key gone                             | Standing  | stand for election
         another has its key                                       | key theirs 300 7                     | Watching  |
         etcd was restored, and another has a key of that revision | key theirs old 7                     | Watching  |
         another server saw a higher epoch: etcd went back         | epoch 5000 elsewhere, key ours own 9 | Watching  | give a mastership back
         its key was overwritten by hand                           | key hand own 0                       | Master    | confirm a mastership
         time passes without an answer                             | wait TTL                             | Lapsed    | confirm a mastership
         it resigns                                                | resign                               | Resigning | resign",
    );
}

#[test]
fn renewing() {
    check(
        DrivenCandidate::renewing,
        "renewed and confirmed                    | yes             | Master   |
         confirmed no more, but it sees its key   | no              | Watching | give a mastership back
         no answer                                | failed          | Master   | probe
         the lease of its span or its own is gone | lease gone      | Master   | renew
         it is that of its span                   | lease gone, renewed | Master | confirm a mastership
         it is its own                            | lease gone, lease gone | Outside |
         its place is another one                 | yes, moved      | Master   | confirm a mastership
         its key is gone: the renewal is given up | key gone        | Watching | renew",
    );
}

#[test]
fn lapsed() {
    check(
        DrivenCandidate::lapsed,
        "nothing                                           |           | Lapsed  | confirm a mastership
         renewed and confirmed, by the time of the renewal | yes, wait | Lapsed  | confirm a mastership
         its lease is gone                                 | lease gone, lease gone | Outside |",
    );
}

#[test]
fn resigning() {
    check(
        DrivenCandidate::resigning,
        "nothing                    |                        | Resigning | resign
         it has resigned            | yes                    | Resigning | revoke
         the key was not its own    | no                     | Resigning | revoke
         no answer                  | failed                 | Resigning | resign
         no answer from any, thrice | failed, failed, failed | Resigning | revoke
         all is given back          | yes, revoked           | Over      |
         the time is over           | unanswered, wait 1s    | Over      |",
    );
}
