//! A record of what is in use outside of this process by leases of its node, for the next process: a file in the state
//! directory.
//!
//! An Envoy uses its assignment for up to 15 s without an agent, and does not say what it has. So each assignment
//! is here, by resource, holder and name of the Envoy, before it is sent. A line is written, but not synced: it outlasts
//! the process, and lines of an earlier boot of the machine do not count. Requests that this process decides itself end
//! with it, and are not here. A resource that programs lease is noted once: any amount of it may be in use.
//!
//! The file exists only while it says all: from the end of the leases of unknown predecessors on, and until a write
//! fails. Then it is removed; if not even that is possible, no assignment grows.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use doorward::time::Time;
use doorward_engine::node::marks::MarksByResource;
use parking_lot::Mutex;
use tracing::{error, warn};

/// Length of leases by templates of rules. Assignments are shorter. After that time, nothing is in use that a former process
/// granted.
pub const LEASE_LENGTH: Duration = Duration::from_secs(16);

/// Bytes behind the first content of the file, beyond which it is written anew.
const APPENDED_MAX: usize = 4 << 20;

/// Resource and holder.
type Key = (Box<str>, Box<str>);
/// Amounts by name.
type ByName = BTreeMap<Box<str>, f64>;

/// The record of a process. By default, it has no file.
#[derive(Debug, Default)]
pub struct Records(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    path: PathBuf,
    /// First line of the file. Empty: nothing is recorded.
    header: String,
    /// Absent: it would not say all.
    file: Option<File>,
    /// Whether it may be shorter, if it is written anew.
    is_long: bool,
    /// Bytes that were written since then.
    appended: usize,
    amounts: BTreeMap<Key, InUse>,
    /// End of what the last process assigned.
    former_until: Time,
    /// Whether there is a file that does not say all.
    is_wrong: bool,
}

/// Amounts in use by leases of a holder.
#[derive(Debug, Default)]
struct InUse {
    by_name: ByName,
    /// Whether the last process assigned it, and no holder has taken it over.
    is_former: bool,
    /// Whether programs may have leases of it that they asked for before the last look only.
    is_idle: bool,
}

impl Records {
    /// Opens the record at a path, which is about `node`. `counts`: a file that is there may be trusted. `is_unused`: without
    /// one, nothing is in use. Returns the most that may be in use of each resource. None: nothing is known of the past.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or written, or one that does not count cannot be removed.
    pub fn open(
        path: &Path,
        node: &str,
        (counts, is_unused): (bool, bool),
        now: Time,
    ) -> io::Result<(Self, Option<MarksByResource>)> {
        // Without it, nothing tells whether lines of an earlier boot are complete.
        let Ok(boot) = fs::read_to_string("/proc/sys/kernel/random/boot_id") else {
            warn!("this system names no boot, so nothing is recorded");
            remove(path)?;
            return Ok((Self::default(), None));
        };
        let mut state = State {
            path: path.to_owned(),
            header: format!("assignments 1 {node} {}\n", boot.trim()),
            former_until: now + LEASE_LENGTH,
            is_long: true,
            ..State::default()
        };
        let (text, is_there) = match fs::read_to_string(path) {
            Ok(text) => (Some(text).filter(|_| counts), true),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                (is_unused.then(|| state.header.clone()), false)
            }
            Err(_) => (None, true),
        };
        if text.and_then(|text| state.read(&text)).is_none() {
            if is_there {
                let path = path.display();
                warn!(%path, "the record is damaged, or of another node, boot or directory: it does not count");
            }
            state.amounts.clear();
            remove(path)?;
            return Ok((Self(Mutex::new(state)), None));
        }
        // On a full disk, what was read counts, and the next process will know nothing.
        if let Err(error) = state.rewrite() {
            state.note(Err(error));
            if state.is_wrong {
                let problem = "the record can be neither written nor removed";
                return Err(io::Error::other(problem));
            }
        }
        let mut sums = BTreeMap::<&str, f64>::new();
        for ((resource, _), it) in &state.amounts {
            *sums.entry(resource).or_default() += it.by_name.values().sum::<f64>();
        }
        let sums = sums.into_iter();
        let marks = sums.map(|(resource, sum)| (resource, (Some(sum), LEASE_LENGTH)));
        let marks = marks.collect();
        Ok((Self(Mutex::new(state)), Some(marks)))
    }

    /// Begins the file, if it says all from now on, and drops what has ended. Call it a [`LEASE_LENGTH`] after the start,
    /// and again and again: a file that could not be written is missing.
    pub fn renew(&self, now: Time) {
        let mut state = self.0.lock();
        let is_over = state.former_until <= now;
        // Leases of programs last for less than the time between two looks.
        state.amounts.retain(|(_, holder), it| {
            let was_idle = std::mem::replace(&mut it.is_idle, holder.is_empty());
            !(it.by_name.is_empty() || is_over && it.is_former || was_idle)
        });
        let is_due = std::mem::take(&mut state.is_long) || state.file.is_none();
        if is_due && !state.header.is_empty() {
            let written = state.rewrite();
            state.note(written);
        }
    }

    /// Returns what a holder's callers may use by leases of the last process, by name, and until when.
    pub(crate) fn take_over(&self, resource: &str, holder: &str, now: Time) -> (ByName, Time) {
        let mut state = self.0.lock();
        let until = state.former_until;
        let known = state.amounts.get_mut(&(resource.into(), holder.into()));
        let former = known.filter(|it| it.is_former && until > now);
        let former = former.map(|it| {
            it.is_former = false;
            it.by_name.clone()
        });
        (former.unwrap_or_default(), until)
    }

    /// Sets the amounts in use by a holder's leases of a resource, by name. Returns whether they may grow.
    pub(crate) fn set(&self, resource: &str, holder: &str, amounts: &BTreeMap<&str, f64>) -> bool {
        let mut state = self.0.lock();
        if state.header.is_empty() {
            return true;
        }
        let amounts = amounts.iter().map(|(name, it)| ((*name).into(), *it));
        let (key, by_name): (Key, ByName) = ((resource.into(), holder.into()), amounts.collect());
        let before = state.amounts.get_mut(&key).map(|known| {
            known.is_former = false;
            &known.by_name
        });
        let nothing = ByName::new();
        let before = before.unwrap_or(&nothing);
        let gone = before.keys().filter(|name| !by_name.contains_key(*name));
        let new = by_name.iter().map(|(name, amount)| (name, *amount));
        let new = new.filter(|(name, amount)| before.get(*name) != Some(amount));
        let changed = gone.map(|name| (name, 0.0)).chain(new);
        let changed: ByName = changed.map(|(name, it)| (name.clone(), it)).collect();
        if !changed.is_empty() {
            let text = line(&key, &changed);
            let in_use = InUse {
                by_name,
                ..InUse::default()
            };
            state.amounts.insert(key, in_use);
            if let Some(file) = &mut state.file {
                let mut written = file.write_all(text.as_bytes());
                state.is_long = true;
                state.appended += text.len();
                if state.appended > APPENDED_MAX {
                    written = written.and_then(|()| state.rewrite());
                }
                state.note(written);
            }
        }
        !state.is_wrong
    }

    /// Notes a resource that programs lease. Returns whether they may.
    pub fn lend(&self, resource: &str) -> bool {
        let mut state = self.0.lock();
        let known = state.amounts.get_mut(&(resource.into(), "".into()));
        let known = known.filter(|it| !it.is_former);
        let is_known = known.map(|it| it.is_idle = false);
        let may = state.header.is_empty() || is_known.is_some() && !state.is_wrong;
        drop(state);
        may || self.set(resource, "", &BTreeMap::from([("", f64::MAX)]))
    }
}

impl State {
    /// Reads a file. The last line counts only if it is whole: if not, its assignments were not sent. None: it is about
    /// something else, or damaged.
    fn read(&mut self, text: &str) -> Option<()> {
        let lines = text.strip_prefix(&self.header)?.split_inclusive('\n');
        for line in lines.filter(|line| line.ends_with('\n')) {
            let (key, changed): (Key, ByName) = serde_json::from_str(line).ok()?;
            let known = self.amounts.entry(key).or_default();
            known.is_former = true;
            known.by_name.extend(changed);
            known.by_name.retain(|_, amount| *amount > 0.0);
        }
        Some(())
    }

    /// Writes all to another file, which takes the place of the present one.
    fn rewrite(&mut self) -> io::Result<()> {
        let lines = self.amounts.iter().map(|(key, it)| line(key, &it.by_name));
        let text = self.header.clone() + &lines.collect::<String>();
        let new = self.path.with_extension("new");
        let written = fs::write(&new, &text).and_then(|()| fs::rename(&new, &self.path));
        if written.is_err() {
            // It may have filled the disk.
            remove(&new)?;
        }
        written?;
        self.appended = 0;
        self.file = Some(OpenOptions::new().append(true).open(&self.path)?);
        self.is_wrong = false;
        Ok(())
    }

    /// Removes the file, if a write has failed.
    fn note(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.file = None;
            self.is_wrong = remove(&self.path).is_err();
            let (path, is_wrong) = (self.path.display(), self.is_wrong);
            error!(%path, %error, is_wrong, "the record of assignments cannot be written");
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns a line: amounts that have changed. Zero: nothing is in use any more.
fn line(key: &Key, by_name: &ByName) -> String {
    // All texts and finite numbers have a form.
    serde_json::to_string(&(key, by_name)).unwrap_or_default() + "\n"
}

#[cfg(test)]
pub(crate) mod tests;
