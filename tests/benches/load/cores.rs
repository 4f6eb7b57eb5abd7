//! Division of processor cores: the server has one of its own, the measuring program has the others.
//!
//! With one core they share it. On other systems than Linux, nothing is pinned, and figures mean less.

/// The cores of this machine, divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    /// Cores of the server.
    pub(crate) server: Vec<usize>,
    /// Cores of everything else.
    pub(crate) rest: Vec<usize>,
}

impl Cores {
    /// Returns the first core for the server, the others for the rest. None: there is only one, or their number is
    /// unknown.
    pub(crate) fn divide() -> Option<Self> {
        let mut cores = platform::allowed();
        if cores.len() < 2 {
            return None;
        }
        let rest = cores.split_off(1);
        let server = cores;
        Some(Self { server, rest })
    }

    /// Keeps this thread, and later threads of it, off the server's core.
    pub(crate) fn leave_server_alone(&self) {
        platform::run_on(&self.rest);
    }

    /// Starts something on the server's core.
    pub(crate) fn start_server<T>(cores: Option<&Self>, start: impl FnOnce() -> T) -> T {
        let Some(cores) = cores else {
            return start();
        };
        // A process begins on the core of the thread that starts it.
        platform::run_on(&cores.server);
        let started = start();
        platform::run_on(&cores.rest);
        started
    }
}

#[cfg(target_os = "linux")]
mod platform {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    pub(super) fn allowed() -> Vec<usize> {
        let Ok(set) = sched_getaffinity(None) else {
            return Vec::new();
        };
        (0..CpuSet::MAX_CPU)
            .filter(|core| set.is_set(*core))
            .collect()
    }

    pub(super) fn run_on(cores: &[usize]) {
        let mut set = CpuSet::new();
        cores.iter().for_each(|core| set.set(*core));
        sched_setaffinity(None, &set).unwrap();
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    pub(super) fn allowed() -> Vec<usize> {
        Vec::new()
    }

    pub(super) fn run_on(_: &[usize]) {}
}
