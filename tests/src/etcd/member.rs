//! One member of an etcd: a process, and its data after it was killed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::ports::lasting_address;
use crate::processes;

/// Number of printed lines of a log.
const LINES: usize = 20;

/// A process, or its data when it does not run.
#[derive(Debug)]
pub(super) struct Member {
    name: String,
    /// Its address for clients, `host:port`.
    pub(super) address: String,
    /// Its address for the other members.
    peer_address: String,
    data: PathBuf,
    log: PathBuf,
    process: Option<Child>,
    is_frozen: bool,
}

impl Member {
    pub(super) fn new(folder: &Path, number: usize) -> Self {
        let name = format!("member-{number}");
        Self {
            address: lasting_address(),
            peer_address: lasting_address(),
            data: folder.join(&name),
            log: folder.join(format!("{name}.log")),
            name,
            process: None,
            is_frozen: false,
        }
    }

    /// Returns the addresses that it advertises to the others.
    pub(super) fn introduction(&self) -> String {
        format!("{}=http://{}", self.name, self.peer_address)
    }

    /// Starts it. All members have the same flags.
    pub(super) fn start(&mut self, scheme: &str, flags: &[String]) {
        assert!(self.process.is_none(), "{} runs", self.name);
        let (binary, fast) = binary();
        let mut command = Command::new(binary);
        // Variables from outside must not affect the tests.
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("ETCD_") {
                command.env_remove(variable);
            }
        }
        let endpoint = format!("{scheme}://{}", self.address);
        let peer_endpoint = format!("http://{}", self.peer_address);
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.unwrap();
        let process = command
            .args(["--name", &self.name])
            .arg("--data-dir")
            .arg(&self.data)
            .args(["--listen-client-urls", &endpoint])
            .args(["--advertise-client-urls", &endpoint])
            .args(["--listen-peer-urls", &peer_endpoint])
            .args(["--initial-advertise-peer-urls", &peer_endpoint])
            .args(["--logger=zap", "--log-outputs=stderr"])
            .args(fast)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.process = Some(process.unwrap());
    }

    pub(super) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        self.is_frozen = false;
    }

    /// Deletes its data.
    pub(super) fn forget(&self) {
        assert!(self.process.is_none(), "{} runs", self.name);
        fs::remove_dir_all(&self.data).unwrap();
    }

    /// Copies its data. It must not run.
    pub(super) fn back_up(&self) {
        assert!(self.process.is_none(), "{} runs", self.name);
        copy(&self.data, &self.backup());
    }

    /// Replaces its data by the copy.
    pub(super) fn restore(&self) {
        self.forget();
        copy(&self.backup(), &self.data);
    }

    fn backup(&self) -> PathBuf {
        self.data.with_extension("backup")
    }

    pub(super) fn freeze(&mut self) {
        processes::freeze(self.process.as_ref().map(Child::id).unwrap());
        self.is_frozen = true;
    }

    pub(super) fn thaw(&mut self) {
        processes::thaw(self.process.as_ref().map(Child::id).unwrap());
        self.is_frozen = false;
    }

    pub(super) fn runs(&self) -> bool {
        self.process.is_some()
    }

    /// Returns whether it can answer.
    pub(super) fn is_able(&self) -> bool {
        self.runs() && !self.is_frozen
    }

    /// Returns the end of its log.
    pub(super) fn log_tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines.get(lines.len().saturating_sub(LINES)..);
        tail.unwrap_or_default().join("\n")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Copies a folder with its content.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let from = entry.unwrap().path();
        let to = to.join(from.file_name().unwrap());
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).unwrap();
        }
    }
}

/// Returns the etcd binary. If there is none, the error says what to do.
///
/// # Errors
///
/// If there is none that runs.
pub fn find() -> Result<PathBuf, String> {
    let named = std::env::var_os("DOORWARD_TEST_ETCD").map(PathBuf::from);
    let test = std::env::current_exe().unwrap();
    // Below the target folder, which is above the test.
    let mut brought = test.ancestors().map(|above| above.join("tests/etcd/etcd"));
    let brought = brought.find(|path| path.is_file());
    let binary = named.or(brought).unwrap_or_else(|| PathBuf::from("etcd"));
    if runs(&binary, &[]) {
        return Ok(binary);
    }
    Err(format!(
        "{} is no etcd that runs: tests/install-etcd brings one, or name one in DOORWARD_TEST_ETCD",
        binary.display()
    ))
}

/// Returns the etcd binary, and flags that save time and that not every version has.
fn binary() -> &'static (PathBuf, Vec<String>) {
    static FOUND: OnceLock<(PathBuf, Vec<String>)> = OnceLock::new();
    FOUND.get_or_init(|| {
        let binary = find().unwrap_or_else(|problem| panic!("{problem}"));
        // The data has no value after a test.
        let no_fsync = "--unsafe-no-fsync";
        let flags = runs(&binary, &[no_fsync]).then(|| no_fsync.to_owned());
        (binary, flags.into_iter().collect())
    })
}

/// Returns whether it is installed and knows these flags.
fn runs(binary: &Path, flags: &[&str]) -> bool {
    let output = Command::new(binary).args(flags).arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}
