//! An agent with a state directory that is killed again and again, and an Envoy whose connection is reset.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorward_tests::http_load::{Passed, load};
use doorward_tests::processes::{Server, doorward_server};
use doorward_tests::proxy::Proxy;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, interval, sleep};

use crate::{ENVOYS, Envoy, LIMIT, LOADS, free_port, seconds};

/// Requests per second that the agent's own callers want.
const OWN_LOAD: f64 = 400.0;

/// Largest number of requests above the limit at once: a tenth of a second of the rule for each Envoy, and for the
/// agent's own callers, and for them again after a restart, and a little.
const EXCESS_MAX: f64 = LIMIT * 0.1 * 5.0 + 10.0;

/// Longest time until Envoys have what they want: their first report comes at once, and the next ones tell more.
const WARM_UP: Duration = seconds(12);

const CHECK: &str = r#"{"domain": "api", "entries": {"user": "ann"}}"#;

/// An agent that says nothing of the past when it starts for the first time: nothing is in use.
struct Agent {
    flags: Vec<String>,
    _state: TempDir,
}

impl Agent {
    fn new(http: SocketAddr) -> Self {
        let state = TempDir::new().unwrap();
        let path = state.path().display().to_string();
        let made = doorward_server(&["state", "init", &path, "--node", "bench/agent"]);
        assert!(made.status.success());
        let http = http.to_string();
        let flags = ["--node", "bench/agent", "--rules", "envoy/rules.yaml"];
        let more = ["--state-dir", &path, "--http-listen", &http];
        Self {
            flags: flags.into_iter().chain(more).map(str::to_owned).collect(),
            _state: state,
        }
    }

    fn start(&self, at: &str) -> Server {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        Server::agent(at, &flags)
    }
}

/// Numbers that look random.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as u32 % most
    }
}

/// Requests that passed, in all and at each Envoy.
#[derive(Clone)]
struct Counts {
    all: Arc<Passed>,
    /// By second.
    seconds: Arc<Mutex<Vec<u32>>>,
    by_envoy: Arc<[AtomicU64; ENVOYS]>,
    /// Load of each Envoy.
    loads: Arc<[AtomicU32; ENVOYS]>,
    is_over: Arc<AtomicBool>,
    began: Instant,
}

impl Counts {
    fn new(loads: [f64; ENVOYS]) -> Self {
        Self {
            all: Passed::new(LIMIT),
            seconds: Arc::default(),
            by_envoy: Arc::default(),
            loads: Arc::new(loads.map(|load| AtomicU32::new(load as u32))),
            is_over: Arc::default(),
            began: Instant::now(),
        }
    }

    fn add(&self) {
        self.all.add();
        let second = usize::try_from(self.began.elapsed().as_secs()).unwrap();
        let mut seconds = self.seconds.lock().unwrap();
        let length = seconds.len().max(second + 1);
        seconds.resize(length, 0);
        seconds[second] += 1;
    }

    fn load(&self, number: usize, envoy: &Envoy, time: Duration) {
        let (counts, loads) = (self.clone(), Arc::clone(&self.loads));
        let rate = move |_| f64::from(loads[number].load(Ordering::Relaxed));
        let passed = move |_, has_passed| {
            if has_passed {
                counts.add();
                counts.by_envoy[number].fetch_add(1, Ordering::Relaxed);
            } else {
                counts.all.refused.fetch_add(1, Ordering::Relaxed);
            }
        };
        let address = envoy.address;
        tokio::spawn(load(address, "x-user: ann\r\n", rate, time, passed));
    }

    /// Ends the loads, and prints what passed.
    async fn end(&self, what: &str) {
        for load in self.loads.iter() {
            load.store(0, Ordering::Relaxed);
        }
        self.is_over.store(true, Ordering::Relaxed);
        sleep(seconds(1)).await;
        self.all.report(what, EXCESS_MAX, self.began.elapsed());
        assert!(self.all.highest() <= EXCESS_MAX, "more than the bursts");
    }

    fn of_envoys(&self) -> [u64; ENVOYS] {
        self.by_envoy
            .each_ref()
            .map(|it| it.load(Ordering::Relaxed))
    }
}

/// Asks the agent itself, and notes the time of the last request that passed since the start of this measurement.
async fn ask(agent: SocketAddr, counts: Counts, last: Arc<Mutex<Option<Instant>>>) {
    let request = format!(
        "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{CHECK}",
        CHECK.len()
    );
    let mut ticks = interval(Duration::from_secs_f64(1.0 / OWN_LOAD));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let (mut stream, mut answer) = (None, [0; 4_096]);
    while !counts.is_over.load(Ordering::Relaxed) {
        ticks.tick().await;
        if stream.is_none() {
            stream = TcpStream::connect(agent).await.ok();
        }
        let Some(connected) = &mut stream else {
            continue;
        };
        let written = connected.write_all(request.as_bytes()).await;
        match connected.read(&mut answer).await {
            Ok(12..) if written.is_ok() => {
                if answer.get(9..12) == Some(b"200") {
                    counts.add();
                    *last.lock().unwrap() = Some(Instant::now());
                }
            }
            _ => stream = None,
        }
    }
}

/// Kills the agent at random instants, while the loads of Envoys change and its own callers use the rest.
pub(crate) async fn kills(rounds: u32) {
    let (folder, http, counts) = (
        TempDir::new().unwrap(),
        free_port(),
        Counts::new([60.0; ENVOYS]),
    );
    let agent = Agent::new(http);
    let mut server = agent.start(&free_port().to_string());
    let mut envoys = Vec::new();
    for number in 0..ENVOYS {
        let envoy = Envoy::start(&folder, number + 1, "rlqs.yaml", &server.address);
        counts.load(number, &envoy, seconds(100_000));
        envoys.push(envoy);
    }
    let last = Arc::default();
    tokio::spawn(ask(http, counts.clone(), Arc::clone(&last)));
    sleep(WARM_UP).await;
    let (mut chance, mut took) = (Chance(11), Vec::new());
    for _ in 0..rounds {
        for load in counts.loads.iter() {
            // Together less than the limit, so that some of it is free.
            load.store(20 + chance.below(60), Ordering::Relaxed);
        }
        sleep(Duration::from_millis(u64::from(
            2_000 + chance.below(9_000),
        )))
        .await;
        let address = server.address.clone();
        server.kill();
        sleep(Duration::from_millis(u64::from(chance.below(1_000)))).await;
        let began = Instant::now();
        server = agent.start(&address);
        while last.lock().unwrap().is_none_or(|at| at < began) {
            assert!(began.elapsed() < seconds(30), "no growth");
            sleep(Duration::from_millis(2)).await;
        }
        took.push(began.elapsed());
    }
    took.sort();
    let (median, worst) = (took[took.len() / 2], took[took.len() - 1]);
    let most = counts.seconds.lock().unwrap().iter().copied().max();
    println!(
        "{rounds} kills: growth {median:.3?} after the start at the median, {worst:.3?} at worst; most in a second: {most:?}; \
         passed at Envoys: {:?}",
        counts.of_envoys()
    );
    counts.end("RLQS and /v1/check, killed").await;
    assert!(worst <= seconds(1), "growth came late");
}

/// Resets the connection of the Envoy with the largest load.
pub(crate) async fn reset() {
    const NUMBER: usize = ENVOYS - 1;
    let (folder, counts) = (TempDir::new().unwrap(), Counts::new(LOADS));
    let server = Agent::new(free_port());
    let server = server.start("127.0.0.1:0");
    let mut proxy = Proxy::to(&server.address);
    let mut envoys = Vec::new();
    for number in 0..ENVOYS {
        let agent = if number == NUMBER {
            proxy.address()
        } else {
            server.address.clone()
        };
        let envoy = Envoy::start(&folder, number + 1, "rlqs.yaml", &agent);
        counts.load(number, &envoy, seconds(100_000));
        envoys.push(envoy);
    }
    sleep(WARM_UP).await;
    let share = (LIMIT - LOADS[0]) / 2.0;
    let mut least = f64::MAX;
    for number in 0..3 {
        proxy.sever();
        let accepted = proxy.accepted();
        let passed = || counts.of_envoys()[NUMBER];
        let mut by_second = Vec::new();
        for _ in 0..12 {
            let before = passed();
            sleep(seconds(1)).await;
            by_second.push(passed() - before);
        }
        assert!(proxy.accepted() > accepted, "it does not come back");
        println!("  reset {number}, by second: {by_second:?}");
        least = by_second
            .iter()
            .fold(least, |least, it| least.min(*it as f64));
    }
    println!("  its share: {share}; the least in a second: {least}");
    counts.end("RLQS, a connection is reset").await;
    assert!(least >= 0.9 * share, "it lost its share");
}
