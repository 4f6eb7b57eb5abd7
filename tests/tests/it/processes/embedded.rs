//! Processes that share a limit without a server: this program runs itself as each of them.

use std::collections::VecDeque;
use std::env;
use std::fmt;
use std::io::{BufRead, BufReader, Read, stdin};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use doorward::limiter::rate::Burst;
use doorward_embedded::embedded;
use doorward_tests::etcd::Etcd;
use doorward_tests::processes::PATIENCE;

/// Variable with the place of the group, in a process that is to be a member: its folder, or `etcd:` and an address.
const PLACE: &str = "DOORWARD_TEST_GROUP";

const LIMIT: usize = 300;

/// Largest burst of all limiters together.
const BURST: usize = LIMIT / 10;

/// Not a check: this is a member of a group, if it runs as one. It takes all it gets, and says when, until its standard
/// input ends.
#[tokio::test]
async fn member() {
    let Ok(place) = env::var(PLACE) else {
        return;
    };
    let group = embedded("test").limit("shared", format!("{LIMIT}/s"));
    let group = match place.strip_prefix("etcd:") {
        Some(hosts) => group.etcd(hosts),
        None => group.folder(&place),
    };
    let client = group.join().await.unwrap();
    let limiter = client
        .resource("shared")
        .open()
        .unwrap()
        .rate_limiter(Burst::default());
    let mut end = tokio::task::spawn_blocking(|| stdin().read_to_end(&mut Vec::new()));
    loop {
        tokio::select! {
            taken = limiter.acquire(1) => drop(taken.unwrap()),
            _ = &mut end => break,
        }
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        println!("took at {} {}", at.as_nanos(), client.is_serving());
    }
    client.leave().await;
}

/// What a member has said.
#[derive(Default)]
struct Said {
    /// Times at which it took one.
    takes: Vec<Duration>,
    is_serving: bool,
}

struct Member {
    process: Child,
    said: Arc<Mutex<Said>>,
}

impl Member {
    fn start(place: &str) -> Self {
        let program = env::current_exe().unwrap();
        let mut command = Command::new(program);
        command.args(["processes::embedded::member", "--exact", "--nocapture"]);
        command
            .env(PLACE, place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let said = Arc::new(Mutex::new(Said::default()));
        let hears = Arc::clone(&said);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let words: Vec<&str> = line.split(' ').collect();
                if let ["took", "at", nanos, serves] = words[..] {
                    let mut said = hears.lock().unwrap();
                    said.takes
                        .push(Duration::from_nanos(nanos.parse().unwrap()));
                    said.is_serving = serves == "true";
                }
            }
        });
        Self { process, said }
    }

    fn is_serving(&self) -> bool {
        self.said.lock().unwrap().is_serving
    }

    fn takes(&self) -> usize {
        self.said.lock().unwrap().takes.len()
    }

    /// Ends its input, so that it leaves. Waits for that.
    fn leave(mut self) -> Vec<Duration> {
        drop(self.process.stdin.take());
        assert!(self.process.wait().unwrap().success());
        self.taken()
    }

    fn kill(mut self) -> Vec<Duration> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.taken()
    }

    fn taken(&self) -> Vec<Duration> {
        self.said.lock().unwrap().takes.clone()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

/// Waits until something holds for a group.
#[track_caller]
fn until(what: impl fmt::Display, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until each member has taken so many more.
#[track_caller]
fn until_each_takes(members: &[Member], more: usize) {
    let before: Vec<usize> = members.iter().map(Member::takes).collect();
    let now = || members.iter().map(Member::takes);
    until(
        format_args!("each member takes {more} more, after {before:?}"),
        || now().zip(&before).all(|(now, before)| now >= before + more),
    );
}

/// Returns the place in the list of the only member that serves, when there is one.
#[track_caller]
fn serving(members: &[Member]) -> usize {
    let mut found = None;
    until("one of the members serves", || {
        found = members.iter().position(Member::is_serving);
        found.is_some()
    });
    let all = members.iter().filter(|it| it.is_serving()).count();
    assert_eq!(all, 1, "one serves at a time");
    found.unwrap()
}

/// Demands that no second had more than the limit and a burst.
#[track_caller]
fn check_never_above(mut takes: Vec<Duration>) {
    takes.sort_unstable();
    let mut second = VecDeque::new();
    for at in takes {
        second.push_back(at);
        while at - second[0] >= Duration::from_secs(1) {
            second.pop_front();
        }
        let number = second.len();
        assert!(
            number <= LIMIT + BURST,
            "{number} in the second before {at:?}"
        );
    }
}

/// Three members share; one that serves is killed, and one leaves; a new one comes.
fn check_group(place: &str) {
    let mut members: Vec<Member> = (0..3).map(|_| Member::start(place)).collect();
    until_each_takes(&members, 100);
    let mut takes = members.remove(serving(&members)).kill();
    serving(&members);
    until_each_takes(&members, 100);
    members.push(Member::start(place));
    until_each_takes(&members, 50);
    takes.extend(members.remove(serving(&members)).leave());
    serving(&members);
    until_each_takes(&members, 100);
    takes.extend(members.into_iter().flat_map(Member::leave));
    check_never_above(takes);
}

#[test]
fn members_on_one_machine_share_a_limit_also_when_the_one_that_serves_is_killed_or_leaves() {
    let folder = tempfile::tempdir().unwrap();
    check_group(folder.path().to_str().unwrap());
    let has_socket = Path::new(folder.path()).join("socket").exists();
    assert!(!has_socket, "the last one removes the socket");
}

#[tokio::test]
async fn members_of_a_group_in_etcd_share_a_limit_also_when_the_master_is_killed_or_leaves() {
    let etcd = Etcd::start().await;
    let place = format!("etcd:{}", etcd.address(0));
    tokio::task::spawn_blocking(move || check_group(&place))
        .await
        .unwrap();
    drop(etcd);
}
