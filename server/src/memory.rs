//! Memory available to this process: that of the machine, or the limit of its control group.
//!
//! It is read once, at the start. Without these files (not Linux), it is unknown.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Largest part of a kernel file that is read. These files are short.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Returns the bytes of memory available to this process, if known.
pub fn available() -> Option<u64> {
    available_in(Path::new("/"))
}

/// Returns the smallest limit of the machine and of all control groups.
fn available_in(root: &Path) -> Option<u64> {
    let machine = read(root, "proc/meminfo").and_then(|text| machine_bytes(&text));
    let groups = read(root, "proc/self/cgroup").unwrap_or_default();
    let places = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    // In a container, the files of its group are at the top, but its path is that of the host.
    let own = places.flat_map(|path| Path::new(path).ancestors().map(Path::to_owned));
    let all = own.chain([Path::new("/").to_owned()]);
    let allowed = all.filter_map(|path| {
        let path = path.to_str()?.trim_start_matches('/').to_owned();
        let v2 = format!("sys/fs/cgroup/{path}/memory.max");
        let v1 = format!("sys/fs/cgroup/memory/{path}/memory.limit_in_bytes");
        let limits = [v2, v1].map(|file| read(root, &file)).into_iter().flatten();
        // No limit is `max`, or in cgroup v1 a number beyond all memory.
        let limits = limits.filter_map(|text| text.trim().parse::<u64>().ok());
        limits.filter(|bytes| *bytes > 0).min()
    });
    allowed.chain(machine).min()
}

fn machine_bytes(meminfo: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let line = lines.find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn read(root: &Path, file: &str) -> Option<String> {
    let mut text = String::new();
    let file = File::open(root.join(file)).ok()?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: Option<u64>) {
        let root = tempfile::tempdir().expect("a directory");
        for (file, text) in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        }
        assert_eq!(available_in(root.path()), expected, "{files:?}");
    }

    const MEMINFO: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:        1000 kB\nMemFree:          10 kB\n",
    );

    #[test]
    fn the_machine_says_how_much_there_is() {
        check(&[MEMINFO], Some(1_024_000));
        check(&[], None);
        check(&[("proc/meminfo", "MemTotal: a lot\n")], None);
    }

    #[test]
    fn a_control_group_may_use_less() {
        let group = ("proc/self/cgroup", "0::/a/b\n");
        let max = |file: &'static str, text: &'static str| (file, text);
        let own = max("sys/fs/cgroup/a/b/memory.max", "300000\n");
        let above = max("sys/fs/cgroup/a/memory.max", "200000\n");
        let top = max("sys/fs/cgroup/memory.max", "100000\n");
        check(&[MEMINFO, group, own], Some(300_000));
        check(&[MEMINFO, group, own, above], Some(200_000));
        check(&[MEMINFO, group, top], Some(100_000));
        check(&[MEMINFO, top], Some(100_000));
        let none = max("sys/fs/cgroup/a/b/memory.max", "max\n");
        check(&[MEMINFO, group, none], Some(1_024_000));
        let much = max("sys/fs/cgroup/a/b/memory.max", "9000000000\n");
        check(&[MEMINFO, group, much], Some(1_024_000));
    }

    #[test]
    fn a_control_group_of_the_old_kind_counts_too() {
        let group = ("proc/self/cgroup", "4:memory:/a\n3:cpu:/c\n");
        let own = ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "300000\n");
        check(&[MEMINFO, group, own], Some(300_000));
        let none = (
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        check(&[MEMINFO, none], Some(1_024_000));
    }
}
