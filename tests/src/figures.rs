//! What a process uses, as the system says, and what a server has refused, as it says itself.
//!
//! Linux only: other systems have no `/proc`, and there nothing is known.

use std::fs;
use std::time::Duration;

/// The memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// What it has now.
    pub resident: u64,
    /// The most that it had.
    pub peak: u64,
}

/// The memory of a process. All 0 if it is gone.
pub fn memory(process: u32) -> Memory {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kilobytes = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.unwrap_or(0)
    };
    Memory {
        resident: kilobytes("VmRSS:") * 1_024,
        peak: kilobytes("VmHWM:") * 1_024,
    }
}

/// For how long a process has kept processors busy.
pub fn cpu_time(process: u32) -> Duration {
    /// As it is on every Linux that there is.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // `number (name) state parent …`: the 14th and 15th, and the name may hold spaces.
    let rest = stat.rsplit(") ").next().unwrap_or_default();
    let ticks: u64 = rest
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
}

/// What the metrics of a server say by that name, with its labels if it has others than the node's. None: nothing.
pub fn value(metrics: &str, name: &str) -> Option<f64> {
    metrics.lines().find_map(|line| {
        let (labels, value) = line.strip_prefix(name)?.split_once(' ')?;
        let is_name = labels.is_empty() || labels.starts_with('{');
        is_name.then(|| value.parse().ok())?
    })
}

/// How often each limit has refused something, by its name, as the metrics of a server say.
pub fn refused(metrics: &str) -> Vec<(String, u64)> {
    let limits = metrics.lines().filter_map(|line| {
        let labels = line.strip_prefix("doorward_limit_refused_total{")?;
        let (_, limit) = labels.split_once("limit=\"")?;
        let (limit, count) = limit.split_once("\"} ")?;
        Some((limit.to_owned(), count.parse().unwrap()))
    });
    limits.collect()
}
