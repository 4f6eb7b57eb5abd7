//! Effect of attacks at full size on honest clients: the time of their calls during each attack, during a plain load,
//! and alone; the server's peak memory, and its refusals. The plain load keeps processors busy as long as the attacker
//! and the server's work for it did.
//!
//! `cargo bench -p doorward-tests --bench attacks [-- NAME …]` takes about a minute for each attack; `-- --list` names
//! them. It fails if an honest call fails, if the 99th percentile during an attack is above twice that of the plain
//! load or above 20 ms, or if the server has more memory than `--memory-max-mib` (512).
//!
//! Percentiles below a millisecond are not compared, because on a busy machine the scheduler causes them.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use doorward_tests::attacker::Target;
use doorward_tests::attacker::catalogue::{ATTACKS, Attack};
use doorward_tests::attacker::process::{self, Done, Load, Order};
use doorward_tests::besieged::Besieged;
use doorward_tests::figures::{memory, refused};
use doorward_tests::honest::{Honest, Served};
use doorward_tests::processes::Server;

/// Time for which calls are measured alone.
const BESIDE_NOTHING: Duration = Duration::from_secs(10);
/// Shortest time of an attack.
const BESIDE_ATTACK: Duration = Duration::from_secs(20);
/// Time between two calls of the measured client.
const PACE: Duration = Duration::from_millis(4);
/// Longest 99th percentile.
const P99_MAX: Duration = Duration::from_millis(20);
/// Times below this are not compared.
const COMPARED_MIN: Duration = Duration::from_millis(1);

struct Options {
    names: Vec<String>,
    memory_max: u64,
    flags: Vec<String>,
}

impl Options {
    /// `[NAME …] [--memory-max-mib N] [--server-flag FLAG …]`
    fn read() -> Self {
        let mut options = Self {
            names: Vec::new(),
            memory_max: 512 << 20,
            flags: Vec::new(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                // Cargo passes this itself.
                "--bench" => {}
                "--memory-max-mib" => {
                    let mebibytes: u64 = arguments.next().unwrap().parse().unwrap();
                    options.memory_max = mebibytes << 20;
                }
                "--server-flag" => options.flags.push(arguments.next().unwrap()),
                _ => options.names.push(argument),
            }
        }
        options
    }

    fn wants(&self, attack: &Attack) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| attack.name.contains(name))
    }
}

/// Returns the times of honest calls, the result of the process, and the server's cost.
async fn beside(
    honest: &Honest,
    server: &Server,
    order: &Order,
    target: Target,
    lasts: Duration,
) -> (Served, Done, Load) {
    honest.take();
    let is_over = Arc::new(AtomicBool::new(false));
    let (process, watched_until) = (server.process(), Arc::clone(&is_over));
    let watching = tokio::task::spawn_blocking(move || Load::watch(process, &watched_until));
    let process = process::spawn(order, target, lasts);
    let done = tokio::task::spawn_blocking(move || process::wait(process));
    let done = done.await.unwrap();
    is_over.store(true, Ordering::Relaxed);
    (honest.take(), done, watching.await.unwrap())
}

/// Measures one attack and prints it. Returns the violations.
async fn measure(attack: &Attack, options: &Options) -> Vec<String> {
    println!("\n{}: {}", attack.name, attack.what);
    let flags: Vec<&str> = options.flags.iter().map(String::as_str).collect();
    let mut besieged = Besieged::start(&flags).await;
    let (address, pace) = (besieged.server.address.clone(), PACE);
    let mut honest = Honest::start(&address, "measured", "honest/measured", pace);
    honest.until_served(100).await;
    let target = besieged.target;

    let nothing = Order::Burn(Load::none(BESIDE_NOTHING));
    let server = &besieged.server;
    let (alone, _, alone_cost) = beside(&honest, server, &nothing, target, BESIDE_NOTHING).await;
    println!("  alone              {alone}");
    let order = Order::Attack(attack.name.to_owned());
    let (attacked, done, cost) = beside(&honest, server, &order, target, BESIDE_ATTACK).await;
    println!("  beside the attack  {attacked}");
    let peak = memory(server.process()).peak;
    let load = done.load.with(&cost, alone_cost.processors());
    let (processors, attackers) = (load.processors(), done.load.processors());
    let (lasts, load) = (load.lasts(), Order::Burn(load));
    let (loaded, _, _) = beside(&honest, server, &load, target, lasts).await;
    println!(
        "  beside plain load  {loaded} ({processors:.3} processors, {attackers:.3} of them the attacker)"
    );
    println!("  attacker: {} rounds; {}", done.rounds, done.outcome);
    let mut problems = Vec::new();
    if besieged.server.is_running() {
        let refused = refused(&besieged.server.get("/metrics"));
        let refused: Vec<String> = refused
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(limit, count)| format!("{limit} {count}"))
            .collect();
        println!("  refused: {}", refused.join(", "));
    } else {
        problems.push("the server is gone".to_owned());
    }
    println!("  memory at its worst: {} MiB", peak >> 20);

    if let Some(failure) = attacked.failures.first() {
        problems.push(format!(
            "{} honest calls failed: {failure}",
            attacked.failed
        ));
    }
    let (beside_attack, beside_load) = (attacked.quantile(0.99), loaded.quantile(0.99));
    let twice = 2 * beside_load.max(COMPARED_MIN / 2);
    if beside_attack > twice || beside_attack > P99_MAX {
        problems.push(format!(
            "p99 {beside_attack:.2?}, of at most {twice:.2?} and {P99_MAX:?}"
        ));
    }
    if peak > options.memory_max {
        problems.push(format!("{} MiB of memory", peak >> 20));
    }
    for problem in &problems {
        println!("  FAILED: {problem}");
    }
    problems
}

fn main() -> ExitCode {
    if process::obey_arguments() {
        return ExitCode::SUCCESS;
    }
    if std::env::args().any(|argument| argument == "--list") {
        for attack in ATTACKS {
            println!("{:26}{}", attack.name, attack.what);
        }
        return ExitCode::SUCCESS;
    }
    let options = Options::read();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut failed = Vec::new();
    for attack in ATTACKS.iter().filter(|attack| options.wants(attack)) {
        if !runtime.block_on(measure(attack, &options)).is_empty() {
            failed.push(attack.name);
        }
    }
    runtime.shutdown_background();
    if failed.is_empty() {
        println!("\nno honest client noticed anything");
        return ExitCode::SUCCESS;
    }
    println!("\nFAILED: {}", failed.join(", "));
    ExitCode::FAILURE
}
