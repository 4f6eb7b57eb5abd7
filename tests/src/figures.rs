//! Memory and processor time of a process, by the system, and a server's refusals, by its own metrics.
//!
//! Linux only: other systems have no `/proc`, so the values are unknown there.

use std::fs;
use std::time::Duration;

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Present memory.
    pub resident: u64,
    /// Peak memory.
    pub peak: u64,
}

/// Returns the memory of a process. All 0 if it has ended.
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

/// Returns the time for which a process has kept processors busy.
pub fn cpu_time(process: u32) -> Duration {
    /// The value on every known Linux.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // `number (name) state parent …`: the 14th and 15th field; the name may contain spaces.
    let rest = stat.rsplit(") ").next().unwrap_or_default();
    let ticks: u64 = rest
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
}

/// Returns a metric of a server, with its labels if it has others than the node's. None: it is absent.
pub fn value(metrics: &str, name: &str) -> Option<f64> {
    metrics.lines().find_map(|line| {
        let (labels, value) = line.strip_prefix(name)?.split_once(' ')?;
        let is_name = labels.is_empty() || labels.starts_with('{');
        is_name.then(|| value.parse().ok())?
    })
}

/// Returns the number of refusals of each limit, by its name, from a server's metrics.
pub fn refused(metrics: &str) -> Vec<(String, u64)> {
    let limits = metrics.lines().filter_map(|line| {
        let labels = line.strip_prefix("doorward_limit_refused_total{")?;
        let (_, limit) = labels.split_once("limit=\"")?;
        let (limit, count) = limit.split_once("\"} ")?;
        Some((limit.to_owned(), count.parse().unwrap()))
    });
    limits.collect()
}
