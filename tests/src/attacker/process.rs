//! The attacker as a process of its own, so that its cost to the machine is known; and a process of the same cost
//! without an attack.
//!
//! A bench starts itself again with other arguments; the last printed line has the result of the process.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::catalogue::{ATTACKS, Attack, Size, named};
use super::{Outcome, Target, attacker};
use crate::figures::cpu_time;

/// Longest time of a round of an attack.
const ROUND_MAX: Duration = Duration::from_secs(120);

/// Time for which a round holds its connections, if the server does not end them.
const HELD: Duration = Duration::from_secs(5);

/// Task of a process.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// An attack, again and again, at full size.
    Attack(String),
    /// All attacks at the same time, slowly, each from an address of its own.
    AllSlowly,
    /// The same load without an attack.
    Burn(Load),
}

/// Load on the machine: the time for which processors are busy in each slot. An attack comes in bursts, and so does a
/// load like it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load(Vec<Duration>);

impl Load {
    /// Length of a slot: several times the kernel's unit of accounting.
    const SLOT: Duration = Duration::from_millis(50);

    /// Returns no load, for a time.
    pub fn none(lasts: Duration) -> Self {
        let slots = lasts.as_millis() / Self::SLOT.as_millis();
        Self(vec![Duration::ZERO; slots as usize])
    }

    /// Returns the number of busy processors.
    pub fn processors(&self) -> f64 {
        let lasts = self.lasts().max(Self::SLOT);
        let busy: Duration = self.0.iter().sum();
        busy.as_secs_f64() / lasts.as_secs_f64()
    }

    /// Returns the duration of the load.
    pub fn lasts(&self) -> Duration {
        let slots = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        Self::SLOT * slots
    }

    /// Returns the sum of both loads, where the other one costs `other_by_itself` of a processor alone.
    #[must_use]
    pub fn with(&self, other: &Self, other_by_itself: f64) -> Self {
        let by_itself = Self::SLOT.mul_f64(other_by_itself);
        let more = |slot: usize| other.0.get(slot).copied().unwrap_or_default();
        let slots = self.0.iter().enumerate();
        Self(
            slots
                .map(|(slot, busy)| *busy + more(slot).saturating_sub(by_itself))
                .collect(),
        )
    }

    /// Measures the load of a process, until `is_over`. Blocks.
    pub fn watch(process: u32, is_over: &AtomicBool) -> Self {
        let began = Instant::now();
        let mut slots = Vec::new();
        let mut spent = cpu_time(process);
        let mut slot_ends = began;
        while !is_over.load(Ordering::Relaxed) {
            slot_ends += Self::SLOT;
            rest_until(slot_ends);
            let now_spent = cpu_time(process);
            slots.push(now_spent.saturating_sub(spent));
            spent = now_spent;
        }
        Self(slots)
    }

    /// Keeps processors as busy as this load.
    fn burn(&self) {
        let began = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let mut slot_begins = began;
                    for busy in &self.0 {
                        rest_until(slot_begins);
                        while slot_begins.elapsed() < *busy / THREADS {
                            std::hint::spin_loop();
                        }
                        slot_begins += Self::SLOT;
                    }
                    rest_until(slot_begins);
                });
            }
        });
    }

    fn to_argument(&self) -> String {
        let millis = self.0.iter().map(|busy| busy.as_millis().to_string());
        millis.collect::<Vec<_>>().join(",")
    }

    fn of_argument(argument: &str) -> Self {
        let millis = argument.split(',').filter(|it| !it.is_empty());
        let busy = millis.map(|it| Duration::from_millis(it.parse().unwrap()));
        Self(busy.collect())
    }
}

fn rest_until(moment: Instant) {
    while moment > Instant::now() {
        std::thread::park_timeout(moment.saturating_duration_since(Instant::now()));
    }
}

/// Number of threads of an attacker, and of a load like it.
const THREADS: u32 = 2;

/// Result of a process.
#[derive(Clone, Debug, Default)]
pub struct Done {
    /// Result of the attack.
    pub outcome: Outcome,
    /// Number of rounds.
    pub rounds: u64,
    /// Whether a round was stopped because it took too long.
    pub is_given_up: bool,
    /// Cost to the machine.
    pub load: Load,
}

/// Starts a process that does this for a while, at least once.
pub fn spawn(order: &Order, target: Target, lasts: Duration) -> Child {
    let order = match order {
        Order::Attack(name) => name.clone(),
        Order::AllSlowly => "all-slowly".to_owned(),
        Order::Burn(load) => format!("{BURN}{}", load.to_argument()),
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

/// Waits for the end of the process. Blocks.
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
        load: Load::of_argument(done["load"].as_str().unwrap_or_default()),
    }
}

const ORDER: &str = "--order";

/// Prefix of the order for a load without an attack.
const BURN: &str = "burn=";

/// Executes the order in the arguments of the process, if there is one. Must be called first.
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
    if let Some(load) = order.strip_prefix(BURN) {
        Load::of_argument(load).burn();
        println!("{}", json!({"is_given_up": false}));
        return true;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS as usize)
        .enable_all()
        .build()
        .unwrap();
    let is_over = AtomicBool::new(false);
    let (done, load) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| Load::watch(std::process::id(), &is_over));
        let done = runtime.block_on(async {
            match named(&order) {
                Some(attack) => wage(attack, target, Size::Full, lasts).await,
                None => wage_all_slowly(target, lasts).await,
            }
        });
        is_over.store(true, Ordering::Relaxed);
        (done, watching.join().unwrap())
    });
    let outcome = done.outcome;
    let report = json!({
        "opened": outcome.opened,
        "not_opened": outcome.not_opened,
        "cut": outcome.cut,
        "done": outcome.done,
        "refused": outcome.refused,
        "granted": outcome.granted,
        "bytes_sent": outcome.bytes_sent,
        "rounds": done.rounds,
        "is_given_up": done.is_given_up,
        "load": load.to_argument(),
    });
    println!("{report}");
    // The rest waits for connections that are not served.
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
            // A slow attack does not repeat at once.
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
