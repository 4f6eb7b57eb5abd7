//! Processes of an embedded group: a test program runs itself as each of them.

use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead as _, BufReader, Read as _, stdin};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use doorward::limiter::rate::Burst;
use doorward_clock::wall;
use doorward_embedded::embedded;

/// Variable with the place of the group, in a process that is to be a member: its folder, or `etcd:` and an address.
const PLACE: &str = "DOORWARD_TEST_GROUP";

/// Limit of all members together, per second.
pub const LIMIT: usize = 300;

/// Runs as a member, if this process was started as one: takes all it gets, and says when, until its standard input ends.
/// Returns whether it was.
pub async fn run_as_member() -> bool {
    let Ok(place) = env::var(PLACE) else {
        return false;
    };
    let group = embedded("test").limit("shared", format!("{LIMIT}/s"));
    let group = match place.strip_prefix("etcd:") {
        Some(hosts) => group.etcd(hosts),
        None => group.folder(&place),
    };
    let group = group.join().await.unwrap();
    let resource = group.client().resource("shared").open().unwrap();
    let limiter = resource.rate_limiter(Burst::default());
    let mut end = tokio::task::spawn_blocking(|| stdin().read_to_end(&mut Vec::new()));
    loop {
        tokio::select! {
            taken = limiter.acquire(1) => drop(taken.unwrap()),
            _ = &mut end => break,
        }
        let (serves, process) = (group.is_serving(), std::process::id());
        println!("took at {} {serves} {process}", wall().as_nanos());
    }
    group.leave().await;
    true
}

/// Reports of a member.
#[derive(Default)]
struct Said {
    /// Times at which it took one.
    takes: Vec<Duration>,
    is_serving: bool,
    /// Numbers of the processes that took one: more than one if it has forked.
    processes: BTreeSet<u32>,
}

/// A process of a group.
pub struct Member {
    process: Child,
    said: Arc<Mutex<Said>>,
}

impl Member {
    /// Starts this program with these arguments, as a member.
    pub fn start(place: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(arguments);
        Self::run(command, place)
    }

    /// Starts a program that forks so many members, each of which joins afterwards.
    pub fn start_forks(number: usize, place: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new("sh");
        // A shell takes the input from what it runs beside itself.
        let forks = "\"$0\" \"$@\" <&3 & ".repeat(number);
        let forks = format!("exec 3<&0; {forks} wait");
        command
            .args(["-c", &forks])
            .arg(env::current_exe().unwrap());
        command.args(arguments);
        Self::run(command, place)
    }

    fn run(mut command: Command, place: &str) -> Self {
        command.env(PLACE, place);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let said = Arc::new(Mutex::new(Said::default()));
        let hears = Arc::clone(&said);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let words: Vec<&str> = line.split(' ').collect();
                if let ["took", "at", nanos, serves, process] = words[..] {
                    let mut said = hears.lock().unwrap();
                    let at = Duration::from_nanos(nanos.parse().unwrap());
                    said.takes.push(at);
                    said.is_serving = serves == "true";
                    said.processes.insert(process.parse().unwrap());
                }
            }
        });
        Self { process, said }
    }

    /// Whether it said last that it serves.
    pub fn is_serving(&self) -> bool {
        self.said.lock().unwrap().is_serving
    }

    /// Returns the number of its processes that took one.
    pub fn processes(&self) -> usize {
        self.said.lock().unwrap().processes.len()
    }

    /// Returns the times at which it took one.
    pub fn takes(&self) -> Vec<Duration> {
        self.said.lock().unwrap().takes.clone()
    }

    /// Ends its input, so that it leaves.
    pub fn tell_to_leave(&mut self) {
        drop(self.process.stdin.take());
    }

    /// Lets it leave. Returns what it took.
    pub fn leave(mut self) -> Vec<Duration> {
        self.tell_to_leave();
        assert!(self.process.wait().unwrap().success());
        self.takes()
    }

    /// Kills it. Returns what it took.
    pub fn kill(mut self) -> Vec<Duration> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.takes()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

/// Returns the largest number of takes in any second.
pub fn most_in_a_second(mut takes: Vec<Duration>) -> usize {
    takes.sort_unstable();
    let (mut first, mut most) = (0, 0);
    for (last, at) in takes.iter().enumerate() {
        while *at - takes[first] >= Duration::from_secs(1) {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most
}
