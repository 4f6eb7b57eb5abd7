//! Files of the process: how many it may have open, and whether changes of those that it reads can reach it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// Upper bound of the limit, also where the system has none.
const MANY: u64 = 1_048_576;

/// Raises the limit as far as the process may: shells and service managers often set a low one that may be raised.
/// Returns the number of files that may be open.
pub fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.unwrap_or(MANY).min(MANY);
    let mut files = current.unwrap_or(MANY);
    if files < most {
        let raised = Rlimit {
            current: Some(most),
            maximum,
        };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => files = most,
            Err(error) => warn!(%error, files, most, "the limit of open files cannot be raised"),
        }
    }
    usize::try_from(files).unwrap_or(usize::MAX)
}

/// Warns of files that are mounted by themselves, instead of their folder, if a flag has such a file or its folder as
/// its value. A container often mounts like this. Editors and `sed -i` write another file in its place, which the
/// process never sees.
pub fn warn_of_mounts(values: &[OsString]) {
    // Only Linux has this file.
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for file in mounted(&mounts, values) {
        let file = file.display();
        warn!(%file, "changes may go unseen, because this file is mounted by itself: mount its folder instead");
    }
}

/// Returns the mounted files among the values of flags, and in folders among them. `mounts` has a line for each mount,
/// whose fifth word is the place.
fn mounted(mounts: &str, values: &[OsString]) -> BTreeSet<PathBuf> {
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let escapes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    let unescape = |place: &str| {
        let place = escapes
            .into_iter()
            .fold(place.to_owned(), |place, (escape, it)| {
                place.replace(escape, it)
            });
        PathBuf::from(place)
    };
    let places = places.map(unescape);
    let read = values
        .iter()
        .filter_map(|value| fs::canonicalize(value).ok());
    let read: BTreeSet<PathBuf> = read.collect();
    let is_read = |place: &PathBuf| {
        let folder = place.parent();
        place.is_file() && (read.contains(place) || folder.is_some_and(|it| read.contains(it)))
    };
    places.filter(is_read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_mounted_by_itself_is_found_and_a_mounted_folder_is_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (alone, rules) = (folder.join("alone with spaces.yaml"), folder.join("rules"));
        fs::create_dir(&rules).unwrap();
        fs::write(&alone, "").unwrap();
        fs::write(rules.join("api.yaml"), "").unwrap();
        std::os::unix::fs::symlink(&alone, folder.join("link")).unwrap();
        let line = |place: &str| {
            format!(
                "36 35 8:1 /x {}/{place} ro,relatime - ext4 /dev/sda rw\n",
                folder.display()
            )
        };
        for (mounted_at, value, expected) in [
            (line("alone\\040with\\040spaces.yaml"), "link", vec![alone]),
            (
                line("rules/api.yaml"),
                "rules",
                vec![rules.join("api.yaml")],
            ),
            (line("rules"), "rules", vec![]),
            (line("rules"), "rules/api.yaml", vec![]),
            (line("rules/api.yaml"), "link", vec![]),
        ] {
            let values = [folder.join(value).into(), "127.0.0.1:6970".into()];
            let found: Vec<_> = mounted(&mounted_at, &values).into_iter().collect();
            assert_eq!(found, expected, "{mounted_at} {value}");
        }
    }
}
