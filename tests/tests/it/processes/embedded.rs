//! Processes that share a limit without a server.

use std::fmt;
use std::time::Duration;

use doorward_tests::etcd::Etcd;
use doorward_tests::group::{self, LIMIT, Member};
use doorward_tests::processes::PATIENCE;
use tokio::time::{Instant, sleep};

/// Largest burst of all limiters together.
const BURST: usize = LIMIT / 10;

/// Not a check: this is a member of a group, if it runs as one.
#[tokio::test]
async fn member() {
    group::run_as_member().await;
}

/// Arguments of a process that is a member.
const AS_MEMBER: [&str; 3] = ["processes::embedded::member", "--exact", "--nocapture"];

fn start(place: &str) -> Member {
    Member::start(place, &AS_MEMBER)
}

/// Waits until something holds for a group.
async fn until(what: impl fmt::Display, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until each member has taken so many more.
async fn until_each_takes(members: &[Member], more: usize) {
    let now = || members.iter().map(|it| it.takes().len());
    let before: Vec<usize> = now().collect();
    let what = format_args!("each member takes {more} more, after {before:?}");
    until(what, || {
        now().zip(&before).all(|(now, before)| now >= before + more)
    })
    .await;
}

/// Returns the place in the list of the only member that serves, when there is one.
async fn serving(members: &[Member]) -> usize {
    let mut found = None;
    until("one of the members serves", || {
        found = members.iter().position(Member::is_serving);
        found.is_some()
    })
    .await;
    let all = members.iter().filter(|it| it.is_serving()).count();
    assert_eq!(all, 1, "one serves at a time");
    found.unwrap()
}

/// Three members share; one that serves is killed, and one leaves; a new one comes.
async fn check_group(place: &str) {
    let mut members: Vec<Member> = (0..3).map(|_| start(place)).collect();
    until_each_takes(&members, 100).await;
    let mut takes = members.remove(serving(&members).await).kill();
    serving(&members).await;
    until_each_takes(&members, 100).await;
    members.push(start(place));
    until_each_takes(&members, 50).await;
    takes.extend(members.remove(serving(&members).await).leave());
    serving(&members).await;
    until_each_takes(&members, 100).await;
    takes.extend(members.into_iter().flat_map(Member::leave));
    let most = group::most_in_a_second(takes);
    assert!(most <= LIMIT + BURST, "{most} in a second");
}

#[tokio::test]
async fn members_on_one_machine_share_a_limit_also_when_the_one_that_serves_is_killed_or_leaves() {
    let folder = tempfile::tempdir().unwrap();
    check_group(folder.path().to_str().unwrap()).await;
    let socket = folder.path().join("embedded-test/socket");
    assert!(!socket.exists(), "the last one removes it");
}

#[tokio::test]
async fn members_of_a_group_in_etcd_share_a_limit_also_when_the_master_is_killed_or_leaves() {
    let etcd = Etcd::start().await;
    let place = format!("etcd:{}", etcd.address(0));
    check_group(&place).await;
}

#[tokio::test]
async fn processes_that_a_server_forks_for_its_cores_share_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let server = Member::start_forks(5, folder.path().to_str().unwrap(), &AS_MEMBER);
    until("all five have a part", || server.processes() == 5).await;
    let before = server.takes().len();
    until("they take more", || {
        server.takes().len() >= before + 2 * LIMIT
    })
    .await;
    let most = group::most_in_a_second(server.leave());
    assert!(most <= LIMIT + BURST, "{most} in a second");
}
