//! The candidates of a node: real servers that elect their master in etcd, and faults for them.
//!
//! Each has an address to which it returns, and, on request, its own path to every member of etcd, which can be broken
//! ([`Proxy`]). There are two resources: [`SHARED`], whose clients want more than its capacity, and [`WATCHED`], for
//! watchers.

use std::time::Duration;

use doorward::Mode;
use serde_json::Value;
use tokio::time::Instant;

use crate::crowd::Crowd;
use crate::etcd::Etcd;
use crate::ports::lasting_address;
use crate::probe::{Probe, Watcher};
use crate::processes::{PATIENCE, Server};
use crate::proxy::Proxy;
use crate::template_file::TemplateFile;

/// Resource that clients share.
pub const SHARED: &str = "shared";

/// Capacity of that resource.
pub const CAPACITY: f64 = 100.0;

/// Resource that watchers ask for.
pub const WATCHED: &str = "watched";

/// Length of the master's lease in etcd, the shortest possible.
pub const TTL: Duration = Duration::from_secs(2);

/// Longest time of a failover on a busy machine: the lease ends, then a successor is elected. The bench of failovers
/// measures how long it takes on a quiet one.
pub const FAILOVER: Duration = TTL.saturating_mul(2);

/// etcd checks for expired leases every half a second, so a lease may last that much longer.
pub const GRANULARITY: Duration = Duration::from_millis(500);

/// Leases outlive any failover. Learning mode is shorter, because the clients of a [`Crowd`] leave a silent server
/// after two seconds.
pub const TEMPLATES: &str = "
resources:
- identifier_glob: shared
  capacity: 100
  safe_capacity: 0
  algorithm: {kind: FAIR_SHARE, lease_length: 10s, refresh_interval: 300ms,
    learning_mode_duration: 3s}
- identifier_glob: watched
  capacity: 1000
  algorithm: {kind: FAIR_SHARE, lease_length: 10s, refresh_interval: 1s}
";

/// Settings of candidates.
#[derive(Debug)]
pub struct Setup {
    count: usize,
    has_ways: bool,
    templates: Option<String>,
    ttl: Duration,
    /// The node, and its parent's. Absent: the root.
    place: Option<(String, String)>,
}

impl Setup {
    /// Creates settings for a number of candidates, with [`TEMPLATES`] in a file.
    pub fn new(count: usize) -> Self {
        Self {
            count,
            has_ways: false,
            templates: None,
            ttl: TTL,
            place: None,
        }
    }

    /// Sets another TTL than [`TTL`].
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Makes them candidates of another node than the root, below a parent in the same etcd.
    #[must_use]
    pub fn below(mut self, node: &str, parent: &str) -> Self {
        self.place = Some((node.to_owned(), format!("etcd:///{parent}")));
        self
    }

    /// Gives each candidate its own paths to etcd.
    #[must_use]
    pub fn with_ways(mut self) -> Self {
        self.has_ways = true;
        self
    }

    /// Sets another place of the templates, as `--templates` has it.
    #[must_use]
    pub fn with_templates(mut self, templates: &str) -> Self {
        self.templates = Some(templates.to_owned());
        self
    }

    /// Starts all candidates.
    pub fn start(self, etcd: &Etcd) -> Candidates {
        let file = TemplateFile::new(TEMPLATES);
        let templates = self.templates.unwrap_or_else(|| file.path.clone());
        let mut list = Vec::new();
        for _ in 0..self.count {
            let mut ways = Vec::new();
            if self.has_ways {
                ways.extend((0..etcd.len()).map(|member| Proxy::to(etcd.address(member))));
            }
            let endpoints = match &ways[..] {
                [] => etcd.endpoints().join(","),
                ways => ways
                    .iter()
                    .map(Proxy::address)
                    .collect::<Vec<_>>()
                    .join(","),
            };
            let ttl = format!("{}s", self.ttl.as_secs());
            let place = match &self.place {
                Some((node, parent)) => vec![("--node", node.as_str()), ("--parent", parent)],
                None => vec![("--templates", templates.as_str())],
            };
            let flags = [
                ("--etcd-endpoints", endpoints.as_str()),
                ("--election-ttl", &ttl),
                ("--refresh-floor", "20ms"),
                ("--http-listen", "127.0.0.1:0"),
                ("--shutdown-grace", "5s"),
            ];
            let flags = flags.into_iter().chain(place);
            let flags: Vec<&str> = flags.flat_map(|(flag, value)| [flag, value]).collect();
            list.push(Candidate {
                ways,
                ..Candidate::new(&flags)
            });
        }
        list.iter_mut().for_each(Candidate::start);
        Candidates { list, _file: file }
    }
}

/// A place where a server runs, or ran.
#[derive(Debug)]
pub struct Candidate {
    /// Address of its gRPC.
    pub address: String,
    /// Its paths to the members of etcd, if it has its own.
    pub ways: Vec<Proxy>,
    /// A connection to it.
    pub probe: Probe,
    flags: Vec<String>,
    server: Option<Server>,
}

impl Candidate {
    /// Chooses an address for a server with these flags, which does not run yet.
    pub fn new(flags: &[&str]) -> Self {
        let address = lasting_address();
        Self {
            probe: Probe::to(&address),
            address,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            server: None,
            ways: Vec::new(),
        }
    }

    /// Starts it at its address.
    pub fn start(&mut self) {
        assert!(self.server.is_none(), "it runs");
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.server = Some(Server::start_at(&self.address, &flags));
    }

    /// Returns its process.
    pub fn server(&mut self) -> &mut Server {
        self.server.as_mut().unwrap()
    }

    /// Kills it (SIGKILL).
    pub fn kill(&mut self) {
        self.server.take().unwrap().kill();
    }

    /// Waits until it has ended for any reason.
    pub fn reap(&mut self) {
        self.server.take().unwrap().terminate();
    }

    /// Stops it as operators do (SIGTERM), and checks that it ends in order, and soon.
    pub fn terminate(&mut self) -> Vec<Value> {
        let (status, logged) = self.server.take().unwrap().terminate();
        assert_eq!(status.code(), Some(0), "{logged:#?}");
        logged
    }

    /// Returns whether it runs, frozen or not.
    pub fn runs(&self) -> bool {
        self.server.is_some()
    }

    /// Returns its `/status`.
    pub fn status(&mut self) -> Value {
        self.server().status()
    }

    /// Returns a metric.
    pub fn metric(&mut self, name: &str) -> f64 {
        let answer = self.server().get("/metrics");
        let mut lines = answer.lines();
        let line = lines.find(|line| line.split(['{', ' ']).next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {answer}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Changes its paths to etcd.
    pub fn change_ways(&mut self, change: impl Fn(&mut Proxy)) {
        assert!(!self.ways.is_empty(), "it has no ways of its own");
        self.ways.iter_mut().for_each(change);
    }
}

/// The servers of a node.
#[derive(Debug)]
pub struct Candidates {
    /// In no particular order.
    pub list: Vec<Candidate>,
    _file: TemplateFile,
}

impl Candidates {
    /// Returns all addresses.
    pub fn addresses(&self) -> Vec<String> {
        let all = self.list.iter();
        all.map(|candidate| candidate.address.clone()).collect()
    }

    /// Starts to ask all of them.
    pub fn watch(&self) -> Watcher {
        Watcher::start(&self.addresses(), WATCHED)
    }

    /// Starts many clients of all servers, which want more than the capacity together, and waits until it is divided.
    pub async fn crowd(&self) -> Crowd {
        let mut crowd = Crowd::new(SHARED, CAPACITY);
        let mut addresses = self.addresses();
        for index in 0..12 {
            addresses.rotate_left(1);
            crowd.join_any(&addresses, 4.0 + f64::from(index), Mode::Safe);
        }
        until_fair(&crowd, "clients have what is fair").await;
        crowd.mark();
        crowd
    }

    /// Waits until the first master, which learns, knows the most that leases of [`WATCHED`] have in use.
    pub async fn until_marked(&mut self) {
        until("its mark has a bound", async || {
            let master = self.master().await;
            let metrics = self.list[master].server().get("/metrics");
            let of_watched = format!("resource=\"{WATCHED}\"}} ");
            let mut marks = metrics.lines().filter_map(|line| {
                let (labels, value) = line.split_once(&of_watched)?;
                labels
                    .starts_with("doorward_resource_mark{")
                    .then_some(value)
            });
            marks.any(|value| value.parse::<f64>().unwrap() > 0.0)
        })
        .await;
    }

    /// Returns the server that answers that it is the master, once there is one.
    pub async fn master(&self) -> usize {
        self.master_but(None).await
    }

    /// Returns the master and its epoch.
    pub async fn mastership(&self) -> (usize, u64) {
        let master = self.master().await;
        (master, self.epoch_of(master).await)
    }

    /// Returns the epoch of the mastership that one of them knows.
    pub async fn epoch_of(&self, number: usize) -> u64 {
        let discovered = self.list[number].probe.discover().await.unwrap();
        discovered.epoch.unwrap()
    }

    /// Waits until all of them run, and know the term of that master.
    pub async fn until_all_follow(&self, master: usize) {
        let epoch = Some(self.epoch_of(master).await);
        for candidate in &self.list {
            until("all candidates know the master", async || {
                let discovered = candidate.probe.discover().await;
                discovered.is_ok_and(|it| it.epoch == epoch)
            })
            .await;
        }
    }

    /// Returns the master, once it is another server than `but`.
    pub async fn master_but(&self, but: Option<usize>) -> usize {
        let began = Instant::now();
        loop {
            for (number, candidate) in self.list.iter().enumerate() {
                if Some(number) == but || !candidate.runs() {
                    continue;
                }
                let asked = tokio::time::timeout(TTL / 4, candidate.probe.discover()).await;
                if asked.is_ok_and(|answer| answer.is_ok_and(|answer| answer.is_master)) {
                    return number;
                }
            }
            assert!(began.elapsed() < PATIENCE, "there is no master");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Candidates {
    /// Waits until a new master has left learning mode and divided the capacity. Meanwhile no client had less than
    /// before, the use never exceeded the capacity, and there were never two masters.
    pub async fn assert_kept(&mut self, master: usize, crowd: &Crowd, watcher: &Watcher) {
        let master = &mut self.list[master];
        until("the successor has learned", async || {
            let status = master.status();
            let resources = status["resources"].as_array().unwrap();
            let mut shared = resources.iter().filter(|it| it["resource_id"] == SHARED);
            shared.any(|it| it["learning_remaining_ms"].is_null())
        })
        .await;
        until_fair(crowd, "divided by the successor").await;
        assert_kept(crowd, watcher, "after a failover");
        crowd.mark();
    }
}

/// Waits until every client has its fair share.
pub async fn until_fair(crowd: &Crowd, when: &str) {
    let fair = crowd.fair(CAPACITY, |_| true);
    crowd.until(when, || crowd.check(&fair)).await;
}

/// Waits until something holds.
pub async fn until(what: &str, mut check: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !check().await {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Checks after a failover that no client ever had less than before, and that the use never exceeded the capacity.
pub fn assert_kept(crowd: &Crowd, watcher: &Watcher, when: &str) {
    watcher.assert_one_master(when);
    crowd.assert_no_overshoot(when);
    let kept = crowd.check_kept(1.0 - 1e-6);
    assert!(kept.is_ok(), "{when}: a client fell{}", kept.unwrap_err());
}
