//! Effect of attacks at full size on honest clients: the time of their calls alone and during each attack; the server's
//! peak memory, and its refusals.
//!
//! `cargo bench -p doorward-tests --bench attacks [-- NAME …]` takes about half a minute for each attack; `-- --list`
//! names them. It fails if an honest call fails, if the 99th percentile during an attack is above 20 ms, or if the
//! server has more than 512 MiB of memory. A machine with few cores is busy with the attacker alone, so compare with
//! the calls alone before you blame the server.

use std::process::ExitCode;
use std::time::Duration;

use doorward_tests::attacker::catalogue::{ATTACKS, Attack, Size};
use doorward_tests::attacker::rounds::wage;
use doorward_tests::besieged::Besieged;
use doorward_tests::figures::{memory, refused};
use doorward_tests::honest::Honest;
use tokio::runtime::Runtime;
use tokio::time::sleep;

/// Time for which calls are measured alone.
const BESIDE_NOTHING: Duration = Duration::from_secs(10);
/// Shortest time of an attack.
const BESIDE_ATTACK: Duration = Duration::from_secs(20);
/// Time between two calls of the measured client.
const PACE: Duration = Duration::from_millis(4);
/// Longest 99th percentile.
const P99_MAX: Duration = Duration::from_millis(20);
/// Largest memory of the server, in bytes.
const MEMORY_MAX: u64 = 512 << 20;

/// Measures one attack, which has a runtime of its own, and prints it. Returns the violations.
async fn measure(attack: &'static Attack, attacker: &Runtime) -> Vec<String> {
    println!("\n{}: {}", attack.name, attack.what);
    let mut besieged = Besieged::start(&[]).await;
    let address = &besieged.server.address;
    let mut honest = Honest::start(address, "measured", "honest/measured", PACE);
    honest.until_served(100).await;

    honest.take();
    sleep(BESIDE_NOTHING).await;
    println!("  alone              {}", honest.take());
    let waging = wage(attack, besieged.target, Size::Full, BESIDE_ATTACK);
    let (outcome, rounds) = attacker.spawn(waging).await.unwrap();
    let attacked = honest.take();
    println!("  beside the attack  {attacked}");
    println!("  attacker: {rounds} rounds; {outcome}");
    let peak = memory(besieged.server.process()).peak;
    println!("  memory at its worst: {} MiB", peak >> 20);

    let mut problems = Vec::new();
    if besieged.server.is_running() {
        for (limit, count) in refused(&besieged.server.get("/metrics")) {
            if count > 0 {
                println!("  refused for {limit}: {count}");
            }
        }
    } else {
        problems.push("the server is gone".to_owned());
    }
    if let Some(failure) = attacked.failures.first() {
        problems.push(format!(
            "{} honest calls failed: {failure}",
            attacked.failed
        ));
    }
    let p99 = attacked.quantile(0.99);
    if p99 > P99_MAX {
        problems.push(format!("p99 {p99:.2?}, of at most {P99_MAX:?}"));
    }
    if peak > MEMORY_MAX {
        problems.push(format!("{} MiB of memory", peak >> 20));
    }
    for problem in &problems {
        println!("  FAILED: {problem}");
    }
    problems
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let names: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| it != "--bench")
        .collect();
    if names == ["--list"] {
        for attack in ATTACKS {
            println!("{:26}{}", attack.name, attack.what);
        }
        return ExitCode::SUCCESS;
    }
    let (honest, attacker) = (runtime(), runtime());
    let mut failed = Vec::new();
    for attack in ATTACKS {
        let is_chosen = names.is_empty() || names.iter().any(|name| attack.name.contains(name));
        if is_chosen && !honest.block_on(measure(attack, &attacker)).is_empty() {
            failed.push(attack.name);
        }
    }
    honest.shutdown_background();
    // The rest waits for connections that are not served.
    attacker.shutdown_background();
    if failed.is_empty() {
        println!("\nno honest client noticed anything");
        return ExitCode::SUCCESS;
    }
    println!("\nFAILED: {}", failed.join(", "));
    ExitCode::FAILURE
}
