//! The candidates of a node: real servers that elect their master in etcd, and what can happen to
//! them.
//!
//! Each has an address that it comes back to, and, if that is asked for, a way of its own to every
//! member of etcd, which can be broken ([`Proxy`]). Two resources are there: [`SHARED`], of which
//! everybody wants more than there is, and [`WATCHED`], for watchers.

use std::fs;
use std::time::Duration;

use doorward_client::Mode;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::crowd::Crowd;
use crate::etcd::Etcd;
use crate::ports::lasting_address;
use crate::probe::{Probe, Watcher};
use crate::processes::{PATIENCE, Server};
use crate::proxy::Proxy;

/// What clients share.
pub const SHARED: &str = "shared";

/// How much of it there is.
pub const CAPACITY: f64 = 100.0;

/// The resource that watchers ask for.
pub const WATCHED: &str = "watched";

/// How long the master's lease in etcd lasts. As short as it can be.
pub const TTL: Duration = Duration::from_secs(2);

/// How long a failover may take: the lease ends, then a successor is elected.
pub const FAILOVER: Duration = TTL.saturating_add(Duration::from_secs(1));

/// etcd looks for leases that are over every half a second, so one may last that much longer.
pub const GRANULARITY: Duration = Duration::from_millis(500);

/// Leases outlive any failover. Learning is shorter than that: the clients of a [`Crowd`] leave a
/// server that says nothing after two seconds.
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

/// How candidates are to be.
#[derive(Debug)]
pub struct Setup {
    count: usize,
    has_ways: bool,
    templates: Option<String>,
    ttl: Duration,
}

impl Setup {
    /// So many, with [`TEMPLATES`] in a file.
    pub fn new(count: usize) -> Self {
        Self {
            count,
            has_ways: false,
            templates: None,
            ttl: TTL,
        }
    }

    /// With another TTL than [`TTL`].
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Each has its own ways to etcd.
    #[must_use]
    pub fn with_ways(mut self) -> Self {
        self.has_ways = true;
        self
    }

    /// Templates are somewhere else, as `--templates` has it.
    #[must_use]
    pub fn with_templates(mut self, templates: &str) -> Self {
        self.templates = Some(templates.to_owned());
        self
    }

    /// Starts them all.
    pub fn start(self, etcd: &Etcd) -> Candidates {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("templates.yaml");
        fs::write(&file, TEMPLATES).unwrap();
        let templates = self.templates.unwrap_or_else(|| file.display().to_string());
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
            let flags = [
                ("--etcd-endpoints", endpoints.as_str()),
                ("--election-ttl", &ttl),
                ("--refresh-floor", "20ms"),
                ("--http-listen", "127.0.0.1:0"),
                ("--templates", &templates),
                ("--shutdown-grace", "5s"),
            ]
            .iter()
            .flat_map(|(flag, value)| [(*flag).to_owned(), (*value).to_owned()])
            .collect();
            let address = lasting_address();
            list.push(Candidate {
                probe: Probe::to(&address),
                address,
                flags,
                server: None,
                ways,
            });
        }
        list.iter_mut().for_each(Candidate::start);
        Candidates {
            list,
            _folder: folder,
        }
    }
}

/// A place where a server runs, or ran.
#[derive(Debug)]
pub struct Candidate {
    /// Where it serves gRPC.
    pub address: String,
    /// Its ways to the members of etcd, if it has ways of its own.
    pub ways: Vec<Proxy>,
    /// A connection to it.
    pub probe: Probe,
    flags: Vec<String>,
    server: Option<Server>,
}

impl Candidate {
    /// Starts it, at its address.
    pub fn start(&mut self) {
        assert!(self.server.is_none(), "it runs");
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.server = Some(Server::start_at(&self.address, &flags));
    }

    /// Its process.
    pub fn server(&mut self) -> &mut Server {
        self.server.as_mut().unwrap()
    }

    /// Kills it (SIGKILL).
    pub fn kill(&mut self) {
        self.server.take().unwrap().kill();
    }

    /// Waits until it has ended, whatever ended it.
    pub fn reap(&mut self) {
        self.server.take().unwrap().terminate();
    }

    /// Stops it as operators do (SIGTERM). It is done in order, and soon.
    pub fn terminate(&mut self) -> Vec<Value> {
        let (status, logged) = self.server.take().unwrap().terminate();
        assert_eq!(status.code(), Some(0), "{logged:#?}");
        logged
    }

    /// Whether it runs, frozen or not.
    pub fn runs(&self) -> bool {
        self.server.is_some()
    }

    /// What `/status` says.
    pub fn status(&mut self) -> Value {
        self.server().status()
    }

    /// What a metric is.
    pub fn metric(&mut self, name: &str) -> f64 {
        let answer = self.server().get("/metrics");
        let mut lines = answer.lines();
        let line = lines.find(|line| line.split(['{', ' ']).next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {answer}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// What its ways to etcd are from now on.
    pub fn change_ways(&mut self, change: impl Fn(&mut Proxy)) {
        assert!(!self.ways.is_empty(), "it has no ways of its own");
        self.ways.iter_mut().for_each(change);
    }
}

/// The servers of a node.
#[derive(Debug)]
pub struct Candidates {
    /// In no order.
    pub list: Vec<Candidate>,
    _folder: TempDir,
}

impl Candidates {
    /// Where all are.
    pub fn addresses(&self) -> Vec<String> {
        let all = self.list.iter();
        all.map(|candidate| candidate.address.clone()).collect()
    }

    /// Begins to ask all of them.
    pub fn watch(&self) -> Watcher {
        Watcher::start(&self.addresses(), WATCHED)
    }

    /// Many clients of all of them, who want more together than there is, and have it.
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

    /// The server that answers that it is the master. Waits until there is one.
    pub async fn master(&self) -> usize {
        self.master_but(None).await
    }

    /// Which one is the master, and by which epoch.
    pub async fn mastership(&self) -> (usize, u64) {
        let master = self.master().await;
        (master, self.epoch_of(master).await)
    }

    /// The epoch of the mastership that one of them knows.
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

    /// Which one is the master. Waits until one is that is not this one.
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
    /// Waits until a new master has learned and divided. Meanwhile no client ever had less than before,
    /// never was more in use than there is, and never were there two masters.
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

/// Waits until everybody has what is fair.
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

/// After a failover: no client ever had less than before, and never was more in use than there is.
pub fn assert_kept(crowd: &Crowd, watcher: &Watcher, when: &str) {
    watcher.assert_one_master(when);
    crowd.assert_no_overshoot(when);
    let kept = crowd.check_kept(1.0 - 1e-6);
    assert!(kept.is_ok(), "{when}: a client fell{}", kept.unwrap_err());
}
