//! A server under attack, with two honest clients: one that asks all the time and one of the client library. Both
//! are served as if there were no attack, and so are later clients.

use std::future::Future;
use std::time::Duration;

use doorward::Mode;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use crate::attacker::{Target, attacker};
use crate::crowd::Crowd;
use crate::figures::{Memory, memory, refused};
use crate::honest::{Honest, HonestClient, Served, channel};
use crate::processes::{PATIENCE, Server};
use crate::template_file::TemplateFile;

/// Templates whose resources keep honest clients and attackers apart.
pub const TEMPLATES: &str = "
resources:
- identifier_glob: honest/*
  capacity: 1000000
  algorithm: &shared {kind: FAIR_SHARE, lease_length: 60s, refresh_interval: 1s, learning_mode_duration: 0s}
- identifier_glob: banded
  capacity: 1000
  algorithm: {kind: PRIORITY_BANDS, lease_length: 60s, refresh_interval: 1s, learning_mode_duration: 0s}
- identifier_glob: attacked/*
  capacity: 1000
  algorithm: *shared
- identifier_glob: '*'
  capacity: 1000
  algorithm: *shared
";

/// Largest memory of a server under attack, in bytes, unless its flags allow more.
pub const MEMORY_MAX: u64 = 256 << 20;

/// Time between two calls of an honest client.
const PACE: Duration = Duration::from_millis(10);

/// Number of calls that must be answered before an attack, and after it.
const CALLS: usize = 30;

/// Attacks flood the machine, so at most two tests of a program attack at the same time.
static TURNS: Semaphore = Semaphore::const_new(2);

/// A server under attack.
pub struct Besieged {
    /// The server.
    pub server: Server,
    /// Addresses of the attack.
    pub target: Target,
    /// The client that asks all the time.
    pub honest: Honest,
    library: Crowd,
    began: Instant,
    _file: TemplateFile,
    _turn: SemaphorePermit<'static>,
}

impl Besieged {
    /// Starts a server, and its honest clients.
    pub async fn start(flags: &[&str]) -> Self {
        Self::start_limited(&[], TEMPLATES, flags).await
    }

    /// Does the same with limits of the system, as `ulimit` takes them, and templates.
    pub async fn start_limited(ulimits: &[(&str, u64)], templates: &str, flags: &[&str]) -> Self {
        let turn = TURNS.acquire().await.unwrap();
        let file = TemplateFile::new(templates);
        let own = ["--http-listen", "127.0.0.1:0", "--templates"];
        let own = [&own[..], &[file.path.as_str()]].concat();
        let began = Instant::now();
        let mut server = Server::start_limited(ulimits, &[&own[..], flags].concat());
        let target = Target {
            grpc: server.address.parse().unwrap(),
            http: Some(server.pages().parse().unwrap()),
            from: attacker(0),
        };
        let mut library = Crowd::new("honest/library", 1e6);
        // An attack may take the whole machine for seconds. Only a refusal counts as a failure, as for `honest`.
        library.timeout = PATIENCE;
        library.join(&server.address, 50.0, Mode::Pessimistic);
        let has_all = || library.check(&[50.0]);
        library
            .until("the library's client has a lease", has_all)
            .await;
        library.mark();
        let mut honest = Honest::start(&server.address, "honest", "honest/steady", PACE);
        honest.until_served(CALLS).await;
        Self {
            server,
            target,
            honest,
            library,
            began,
            _file: file,
            _turn: turn,
        }
    }

    /// Attacks, and gives up an attack that does not end. Honest clients must be served meanwhile and afterwards.
    pub async fn attacked<T>(&self, attack: impl Future<Output = T>) -> T {
        match timeout(PATIENCE, attack).await {
            Ok(outcome) => outcome,
            Err(_) => panic!("the attack does not end; honest: {}", self.honest.so_far()),
        }
    }

    /// Checks that no honest client has noticed the attack, that the server's memory is within the limit, and that it
    /// accepts new clients.
    pub async fn assert_unmoved(&mut self, memory_max: u64) -> (Served, Memory) {
        assert!(self.server.is_running(), "the server is gone");
        self.honest.until_served(CALLS).await;
        let served = self.honest.so_far();
        assert_eq!(served.failed, 0, "{:#?}", served.failures);
        if let Err(fallen) = self.library.check_kept(1.0) {
            panic!("the library's client had less: {fallen}");
        }
        let (_, failed) = self.library.answer_counts(0);
        assert_eq!(failed, 0, "requests of the library's client failed");
        for number in 0..3 {
            let id = format!("newcomer-{number}");
            let connection = channel(&self.server.address);
            let mut newcomer = HonestClient::new(connection, id, "honest/new");
            newcomer.ask().await.unwrap();
            newcomer.release().await.unwrap();
        }
        let memory = memory(self.server.process());
        let Memory { peak, .. } = memory;
        assert!(peak <= memory_max, "{peak} bytes, of at most {memory_max}");
        (served, memory)
    }

    /// Returns the number of refusals of a limit, by the metrics.
    pub fn refused(&mut self, limit: &str) -> u64 {
        let refused = refused(&self.server.get("/metrics"));
        let of_limit = refused.iter().find(|(name, _)| name == limit);
        of_limit.map_or(0, |(_, count)| *count)
    }

    /// Fails unless one of these limits has refused something, or if one was logged more than once a minute.
    #[track_caller]
    pub fn assert_counted(&mut self, limits: &[&str]) {
        let logged = self.server.logged("a limit is reached");
        let logged: Vec<&str> = logged
            .iter()
            .filter_map(|line| line["limit"].as_str())
            .collect();
        let minutes = 1 + self.began.elapsed().as_secs() / 60;
        for limit in &logged {
            let lines = logged.iter().filter(|it| *it == limit).count();
            assert!(lines as u64 <= minutes, "{limit} is logged too often");
        }
        let refused = refused(&self.server.get("/metrics"));
        let counted = refused
            .iter()
            .any(|(limit, count)| *count > 0 && limits.contains(&limit.as_str()));
        assert!(
            counted,
            "none of {limits:?} among {refused:?}; logged are {logged:?}"
        );
    }
}
