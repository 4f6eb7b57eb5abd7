//! Three real Envoys behind one agent, in real time on loopback: how much of a shared limit passes, how fairly, and
//! what an agent that is killed or frozen lets through.
//!
//! `cargo bench -p doorward-tests --bench envoy` takes ten minutes; `-- rlqs`, `rls`, `killed`, `away`, `frozen`, `reset`
//! or `calls` selects one. `-- buckets 20` runs for 20 minutes, and `-- kills 50` kills an agent with a state directory 50
//! times, in seven minutes. It needs an Envoy: `tests/install-envoy`.

mod buckets;
mod calls;
mod kills;

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorward_tests::http_load::{Passed, load};
use doorward_tests::processes::Server;
use tempfile::TempDir;
use tokio::time::sleep;

/// The echo has the allocator of the agent.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of Envoys.
const ENVOYS: usize = 3;

/// Requests per second that the Envoys share, and the loads of each.
const LIMIT: f64 = 300.0;
const LOADS: [f64; ENVOYS] = [40.0, 150.0, 400.0];

/// Largest number of requests above the limit at once: a tenth of a second of the rule for each Envoy, and a little.
const EXCESS_MAX: f64 = 100.0;

/// Time after which loads change places that never do.
const NEVER: Duration = seconds(100_000);

/// Longest time until a new agent has learned what its predecessor assigned, and the first reports have come.
const WARM_UP: Duration = Duration::from_secs(22);

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns an address that nothing listens at.
fn free_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// An Envoy. Killed when dropped.
struct Envoy {
    process: Child,
    address: SocketAddr,
}

impl Envoy {
    fn start(folder: &TempDir, number: usize, config: &str, agent: &str) -> Self {
        let (address, admin, service) = (free_port(), free_port(), free_port());
        let agent = agent.parse::<SocketAddr>().unwrap();
        let config = fs::read_to_string(format!("envoy/{config}")).unwrap();
        let config = config
            .replace(
                "port_value: 10000",
                &format!("port_value: {}", address.port()),
            )
            .replace(
                "port_value: 10100",
                &format!("port_value: {}", service.port()),
            )
            .replace("port_value: 9901", &format!("port_value: {}", admin.port()))
            .replace("port_value: 6980", &format!("port_value: {}", agent.port()))
            .replace("envoy-1", &format!("envoy-{number}"));
        let path = folder.path().join(format!("envoy-{number}.yaml"));
        fs::write(&path, config).unwrap();
        let log = File::create(folder.path().join(format!("envoy-{number}.log"))).unwrap();
        let installed = Command::new("./install-envoy").output().unwrap();
        let program = String::from_utf8(installed.stdout).unwrap();
        let process = Command::new(program.trim())
            .args(["--concurrency", "1", "--log-level", "error"])
            .arg("--use-dynamic-base-id")
            .arg("-c")
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        while TcpStream::connect(address).is_err() {
            std::thread::yield_now();
        }
        Self { process, address }
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn agent(at: &str) -> Server {
    Server::agent(at, &["--rules", "envoy/rules.yaml"])
}

/// Requests that passed each Envoy, by second.
type BySecond = Arc<Mutex<Vec<[u32; ENVOYS]>>>;

/// Puts loads on three Envoys while something happens to their agent. `rotates`: time after which the loads change
/// places; the largest one stops after 50 s of the measured time.
async fn run<F: Future<Output = Server>>(
    what: &str,
    config: &'static str,
    limit: f64,
    loads: [f64; ENVOYS],
    (time, rotates): (Duration, Duration),
    happens: impl FnOnce(Server) -> F,
) {
    let folder = TempDir::new().unwrap();
    let agent = agent("127.0.0.1:0");
    let envoys = (1..=ENVOYS).map(|number| Envoy::start(&folder, number, config, &agent.address));
    let envoys: Vec<Envoy> = envoys.collect();
    let passed = Passed::new(limit);
    let seconds = usize::try_from(time.as_secs()).unwrap() + 2;
    let by_second: BySecond = Arc::new(Mutex::new(vec![[0; ENVOYS]; seconds]));
    let tasks = envoys.iter().enumerate().map(|(number, envoy)| {
        let rate = move |at: Duration| {
            let at = at.saturating_sub(WARM_UP);
            let turn = usize::try_from(at.as_secs() / rotates.as_secs()).unwrap();
            loads[(number + turn) % ENVOYS]
        };
        let (passed, by_second) = (passed.clone(), by_second.clone());
        let count = move |at: Duration, has_passed: bool| {
            let Some(at) = at.checked_sub(WARM_UP) else {
                return;
            };
            if !has_passed {
                passed.refused.fetch_add(1, Ordering::Relaxed);
                return;
            }
            passed.add();
            let mut seconds = by_second.lock().unwrap();
            if let Some(second) = seconds.get_mut(usize::try_from(at.as_secs()).unwrap()) {
                second[number] += 1;
            }
        };
        tokio::spawn(load(
            envoy.address,
            "x-user: ann\r\n",
            rate,
            WARM_UP + time,
            count,
        ))
    });
    let tasks: Vec<_> = tasks.collect();
    sleep(WARM_UP).await;
    let agent = happens(agent).await;
    for task in tasks {
        task.await.unwrap();
    }
    drop(agent);
    passed.report(what, limit * 0.1 * 3.0, time);
    assert!(passed.highest() <= EXCESS_MAX, "{what}");
    let seconds = by_second.lock().unwrap();
    for (number, chunk) in seconds.chunks_exact(5).enumerate() {
        let mean = |envoy: usize| f64::from(chunk.iter().map(|it| it[envoy]).sum::<u32>()) / 5.0;
        let means: Vec<String> = (0..ENVOYS).map(|it| format!("{:6.1}", mean(it))).collect();
        println!("  from {:3} s: {} a second", number * 5, means.join(" "));
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if wanted.iter().any(|it| it == calls::ECHO) {
        return calls::echo().await;
    }
    if wanted.iter().any(|it| it == "buckets") {
        let minutes = wanted.iter().find_map(|it| it.parse().ok());
        return buckets::run(minutes.unwrap_or(20)).await;
    }
    if wanted.iter().any(|it| it == "kills") {
        let rounds = wanted.iter().find_map(|it| it.parse().ok());
        return kills::kills(rounds.unwrap_or(50)).await;
    }
    let runs = |name: &str| wanted.iter().all(|it| it.starts_with('-') || it == name);
    let (minute, turn) = (seconds(60), seconds(20));
    if runs("calls") {
        let agent = Server::agent("127.0.0.1:0", &["--rules", "envoy/calls.yaml"]);
        calls::compare(&agent).await;
    }
    if runs("rlqs") {
        let rotating = (minute, turn);
        run(
            "RLQS, 300/s",
            "rlqs.yaml",
            LIMIT,
            LOADS,
            rotating,
            |agent| async { agent },
        )
        .await;
    }
    if runs("rls") {
        let loads = [16.0, 60.0, 160.0];
        let steady = (seconds(30), NEVER);
        run(
            "RLS, 300/s, wants of 236",
            "rls.yaml",
            LIMIT,
            loads,
            steady,
            |agent| async { agent },
        )
        .await;
        let loads = [40.0, 150.0, 400.0];
        run(
            "RLS, 300/s",
            "rls.yaml",
            LIMIT,
            loads,
            steady,
            |agent| async { agent },
        )
        .await;
    }
    accidents(runs).await;
}

/// Measures the requests that pass while something happens to the agent.
async fn accidents(runs: impl Fn(&str) -> bool) {
    for (name, away) in [
        ("killed", Duration::from_millis(500)),
        ("away", seconds(25)),
    ] {
        if runs(name) {
            let what = format!("RLQS, agent killed and back after {away:?}");
            let kill = async |killed: Server| {
                sleep(seconds(5)).await;
                let address = killed.address.clone();
                killed.kill();
                sleep(away).await;
                agent(&address)
            };
            let time = (seconds(30) + away + WARM_UP, NEVER);
            run(&what, "rlqs.yaml", LIMIT, LOADS, time, kill).await;
        }
    }
    if runs("reset") {
        kills::reset().await;
    }
    if runs("frozen") {
        let freeze = async |agent: Server| {
            sleep(seconds(5)).await;
            agent.freeze();
            sleep(seconds(25)).await;
            agent.thaw();
            agent
        };
        let time = (seconds(60), NEVER);
        run(
            "RLQS, agent frozen for 25 s",
            "rlqs.yaml",
            LIMIT,
            LOADS,
            time,
            freeze,
        )
        .await;
    }
}
