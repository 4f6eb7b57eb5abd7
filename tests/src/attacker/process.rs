//! The attacker as a process of its own, so that what it costs the machine is known; and a process that costs as
//! much and attacks nobody.
//!
//! A bench starts itself again with other arguments; what the process did is the last line that it prints.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench that cannot go on says so, and JSON answers for everything"
)]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::catalogue::{ATTACKS, Attack, Size, named};
use super::{Outcome, Target, attacker};
use crate::figures::cpu_time;

/// How long a round of an attack may take.
const ROUND_MAX: Duration = Duration::from_secs(120);

/// How long what a round holds is held, if the server does not end it.
const HELD: Duration = Duration::from_secs(5);

/// What a process is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// An attack, again and again, at full size.
    Attack(String),
    /// All attacks beside one another, slowly, each from an address of its own.
    AllSlowly,
    /// So many processors busy.
    Burn(f64),
}

/// What a process did.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// What the attack came to.
    pub outcome: Outcome,
    /// How often it was begun anew.
    pub rounds: u64,
    /// Whether a round was given up because it took too long.
    pub is_given_up: bool,
    /// How many processors it kept busy.
    pub processors: f64,
}

/// A process that does that for a while, once at least.
pub fn spawn(order: &Order, target: Target, lasts: Duration) -> Child {
    let order = match order {
        Order::Attack(name) => name.clone(),
        Order::AllSlowly => "all-slowly".to_owned(),
        Order::Burn(processors) => format!("burn={processors}"),
    };
    let http = target.http.map_or_else(String::new, |it| it.to_string());
    Command::new(std::env::current_exe().unwrap())
        .args([ORDER, &order])
        .args([target.grpc.to_string(), http])
        .arg(lasts.as_millis().to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for its end. Blocks.
pub fn wait(process: Child) -> Done {
    let output = process.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let last = printed.lines().last().unwrap_or_default();
    let done: Value = serde_json::from_str(last).unwrap_or_default();
    let count = |name: &str| done[name].as_u64().unwrap_or(0);
    Done {
        outcome: Outcome {
            opened: count("opened"),
            not_opened: count("not_opened"),
            cut: count("cut"),
            done: count("done"),
            refused: count("refused"),
            granted: count("granted"),
            bytes_sent: count("bytes_sent"),
        },
        rounds: count("rounds"),
        is_given_up: done["is_given_up"].as_bool().unwrap_or(true),
        processors: done["processors"].as_f64().unwrap_or(0.0),
    }
}

const ORDER: &str = "--order";

/// Does what the arguments of the process say, if they are an order. To be called first of all.
pub fn obey_arguments() -> bool {
    let mut arguments = std::env::args().skip_while(|it| it != ORDER).skip(1);
    let Some(order) = arguments.next() else {
        return false;
    };
    let mut next = || arguments.next().unwrap();
    let target = Target {
        grpc: next().parse().unwrap(),
        http: next().parse().ok(),
        from: attacker(0),
    };
    let lasts = Duration::from_millis(next().parse().unwrap());
    if let Some(processors) = order.strip_prefix("burn=") {
        burn(processors.parse().unwrap(), lasts);
        println!("{}", json!({"is_given_up": false}));
        return true;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let began = Instant::now();
    let done = runtime.block_on(async {
        match named(&order) {
            Some(attack) => wage(attack, target, Size::Full, lasts).await,
            None => wage_all_slowly(target, lasts).await,
        }
    });
    let busy = cpu_time(std::process::id());
    let outcome = done.outcome;
    let told = json!({
        "opened": outcome.opened,
        "not_opened": outcome.not_opened,
        "cut": outcome.cut,
        "done": outcome.done,
        "refused": outcome.refused,
        "granted": outcome.granted,
        "bytes_sent": outcome.bytes_sent,
        "rounds": done.rounds,
        "is_given_up": done.is_given_up,
        "processors": busy.as_secs_f64() / began.elapsed().as_secs_f64(),
    });
    println!("{told}");
    // What is left hangs on connections that nobody serves.
    runtime.shutdown_background();
    true
}

async fn wage(attack: &Attack, target: Target, size: Size, lasts: Duration) -> Done {
    let until = Instant::now() + lasts;
    let mut done = Done::default();
    while Instant::now() < until {
        let Ok(mut siege) = timeout(ROUND_MAX, (attack.wage)(target, size, done.rounds)).await
        else {
            done.is_given_up = true;
            break;
        };
        let held_until = until.min(Instant::now() + HELD);
        let has_any = !siege.held.is_empty();
        let all_cut = timeout_at(held_until, siege.until_cut_to(0)).await;
        if size == Size::Slow && (all_cut.is_ok() || !has_any) {
            // Slowly is not at once again.
            sleep_until(until.min(Instant::now() + Duration::from_secs(1))).await;
        }
        done.outcome.add(siege.lift());
        done.rounds += 1;
    }
    done
}

async fn wage_all_slowly(target: Target, lasts: Duration) -> Done {
    let mut waging = JoinSet::new();
    for (number, attack) in (0..).zip(ATTACKS) {
        let target = target.from(attacker(number));
        waging.spawn(wage(attack, target, Size::Slow, lasts));
    }
    let mut all = Done::default();
    for done in waging.join_all().await {
        all.outcome.add(done.outcome);
        all.rounds += done.rounds;
        all.is_given_up |= done.is_given_up;
    }
    all
}

/// Keeps so many processors busy: each thread for its part of every five milliseconds.
fn burn(processors: f64, lasts: Duration) {
    const TURN: Duration = Duration::from_millis(5);
    let threads = processors.ceil().max(1.0);
    let part = processors / threads;
    let until = Instant::now() + lasts;
    std::thread::scope(|scope| {
        for _ in 0..threads as usize {
            scope.spawn(|| {
                let mut turn = Instant::now();
                while turn < until {
                    let busy_until = turn + TURN.mul_f64(part);
                    while Instant::now() < busy_until {
                        std::hint::spin_loop();
                    }
                    turn += TURN;
                    std::thread::park_timeout(turn.saturating_duration_since(Instant::now()));
                }
            });
        }
    });
}
