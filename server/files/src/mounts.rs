//! Files that are mounted by themselves, instead of their folder, as containers often do.
//!
//! Editors and `sed -i` write another file in the place of the old one. The mount keeps the old one, so a process never
//! sees the change.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tracing::warn;

/// Files of which the process was warned.
static TOLD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Warns once of each file that is mounted by itself, if it or its folder is one of these paths.
pub fn warn_of_mounts(paths: impl IntoIterator<Item = impl AsRef<Path>>) {
    // Only Linux has this file.
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    for file in mounted(&mounts, paths) {
        let text = file.display().to_string();
        if told.insert(file) {
            warn!(
                file = text,
                "changes may go unseen, because this file is mounted by itself: mount its folder instead"
            );
        }
    }
}

/// Returns the mounted files among the paths, and in folders among them. `mounts` has a line for each mount, whose fifth
/// word is the place.
fn mounted(mounts: &str, paths: impl IntoIterator<Item = impl AsRef<Path>>) -> BTreeSet<PathBuf> {
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
    let read = paths.into_iter().filter_map(|it| fs::canonicalize(it).ok());
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
            let paths = [folder.join(value), "127.0.0.1:6970".into()];
            let found: Vec<_> = mounted(&mounted_at, paths).into_iter().collect();
            assert_eq!(found, expected, "{mounted_at} {value}");
        }
    }
}
