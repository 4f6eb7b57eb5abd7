//! State directories on disks that are full, damaged, copied or cut from power.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use redb::StorageBackend;
use tempfile::TempDir;

use super::*;

fn id(name: &str) -> ResourceId {
    ResourceId::new(name).unwrap()
}

fn mark(amount: f64) -> Mark {
    Mark {
        amount: Some(Amount::new(amount).unwrap()),
        longest: Duration::from_secs(60),
    }
}

fn batch(resource: &str, mark: Option<Mark>) -> MarkWrites {
    MarkWrites {
        writes: vec![(id(resource), mark)],
        count: 1,
        unmarked_for: Duration::ZERO,
    }
}

/// A directory of the node `root` with a mark of 37 for `a`, and a process that has ended.
fn used() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (directory, past) = StateDirectory::open(dir.path(), "root", true, false).unwrap();
    assert_eq!((past.starts, past.uncounted), (1, Some(Uncounted::New)));
    let first = MarkWrites {
        writes: Vec::new(),
        count: 0,
        ..batch("a", None)
    };
    directory.write(&first).unwrap();
    directory.write(&batch("a", Some(mark(37.0)))).unwrap();
    dir
}

fn open(dir: &Path) -> (StateDirectory, Past) {
    StateDirectory::open(dir, "root", true, false).unwrap()
}

#[track_caller]
fn check(dir: &Path, uncounted: Option<Uncounted>) {
    let (directory, past) = open(dir);
    assert_eq!(past.uncounted, uncounted);
    assert_eq!(past.marks.is_complete, uncounted.is_none());
    let found: Vec<_> = past.marks.marks.iter().collect();
    let expected = uncounted.is_none().then(|| ("a", mark(37.0).stored()));
    assert_eq!(found, Vec::from_iter(expected));
    drop(directory);
    // The next process trusts it no more than this one.
    let again = open(dir).1;
    let is_known = again.uncounted.is_none();
    assert_eq!(is_known, uncounted.is_none(), "{:?}", again.uncounted);
}

#[test]
fn the_next_process_finds_the_marks() {
    let dir = used();
    check(dir.path(), None);
    let (directory, past) = open(dir.path());
    assert_eq!(past.starts, 4);
    let any = Mark {
        amount: None,
        longest: Duration::from_micros(1_500),
    };
    directory.write(&batch("a", None)).unwrap();
    directory.write(&batch("b", Some(any))).unwrap();
    drop(directory);
    let found = Contents::of(dir.path()).unwrap();
    let longest = Duration::from_millis(2);
    assert_eq!(
        found.marks,
        BTreeMap::from([(id("b"), Mark { longest, ..any })])
    );
    assert_eq!((found.node.as_deref(), found.starts), (Some("root"), 4));
}

#[test]
fn a_new_directory_says_that_nobody_has_anything_only_if_an_operator_says_so() {
    for is_unused in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (_, past) =
            StateDirectory::open(&dir.path().join("a/b"), "root", true, is_unused).unwrap();
        assert_eq!(past.marks.is_complete, is_unused);
    }
}

#[test]
fn marks_that_may_be_wrong_do_not_count() {
    let dir = used();
    let learning = MarkWrites {
        unmarked_for: Duration::from_secs(1),
        ..batch("b", Some(mark(1.0)))
    };
    open(dir.path()).0.write(&learning).unwrap();
    check(dir.path(), Some(Uncounted::Learned));

    // The node had a parent meanwhile, and served by its leases.
    let dir = used();
    StateDirectory::open(dir.path(), "root", false, false).unwrap();
    check(dir.path(), Some(Uncounted::Learned));

    let dir = used();
    StateDirectory::open(dir.path(), "eu", true, false).unwrap();
    let of_eu = Some(Uncounted::OtherNode("eu".to_owned()));
    let (directory, past) = open(dir.path());
    assert_eq!((past.uncounted, past.marks.is_complete), (of_eu, false));
    drop(directory);

    let (dir, copy) = (used(), tempfile::tempdir().unwrap());
    fs::copy(dir.path().join(FILE), copy.path().join(FILE)).unwrap();
    check(copy.path(), Some(Uncounted::Copied));
    check(dir.path(), None);
}

#[test]
fn no_mark_stays_that_the_node_does_not_count() {
    let dir = used();
    let reset = MarkWrites {
        writes: Vec::new(),
        count: 0,
        ..batch("a", None)
    };
    open(dir.path()).0.write(&reset).unwrap();
    assert!(open(dir.path()).1.marks.marks.is_empty());
}

#[test]
fn an_invalid_file_is_put_aside() {
    let whole = fs::read(used().path().join(FILE)).unwrap();
    let mut torn = whole.clone();
    torn.truncate(whole.len() / 2);
    let mut newer = used();
    {
        let (directory, _) = open(newer.path());
        let write = directory.database.as_ref().unwrap().begin_write().unwrap();
        write
            .open_table(NUMBERS)
            .unwrap()
            .insert(FORMAT_KEY, 9)
            .unwrap();
        write.commit().unwrap();
    }
    let mut flipped = whole;
    flipped
        .iter_mut()
        .skip(4_096)
        .for_each(|byte| *byte ^= 0x55);
    for content in [b"no database".to_vec(), torn, flipped] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), content).unwrap();
        let (_, past) = open(dir.path());
        assert!(matches!(past.uncounted, Some(Uncounted::Invalid(_))));
        assert!(dir.path().join(INVALID).exists());
    }
    assert!(
        Contents::of(newer.path())
            .unwrap_err()
            .to_string()
            .contains("cannot be used")
    );
    assert!(matches!(
        open(newer.path()).1.uncounted,
        Some(Uncounted::Invalid(_))
    ));
    newer.disable_cleanup(false);
}

#[test]
fn two_processes_never_use_one_directory() {
    let dir = used();
    let first = open(dir.path());
    let second = StateDirectory::open(dir.path(), "root", true, false);
    assert!(matches!(second, Err(StateError::InUse(_))));
    assert!(matches!(
        Contents::of(dir.path()),
        Err(StateError::InUse(_))
    ));
    drop(first);
    check(dir.path(), None);
}

/// A disk that has only what was synced after a power cut, and some of the rest. It is full after some writes.
#[derive(Clone, Debug, Default)]
struct Disk(Arc<Mutex<Sectors>>);

#[derive(Debug, Default)]
struct Sectors {
    synced: Vec<u8>,
    now: Vec<u8>,
    /// Writes since the last sync.
    unsynced: Vec<(usize, Vec<u8>)>,
    writes_left: Option<usize>,
}

impl Disk {
    /// Returns the disk after a power cut, with the unsynced writes of which `kept` is set.
    fn after_power_cut(&self, kept: u64) -> Self {
        let disk = self.0.lock().unwrap();
        let mut bytes = disk.synced.clone();
        for (number, (at, data)) in disk.unsynced.iter().enumerate() {
            let end = at + data.len();
            if kept & 1 << (number % 64) != 0 {
                bytes.resize(bytes.len().max(end), 0);
                bytes[*at..end].copy_from_slice(data);
            }
        }
        Self(Arc::new(Mutex::new(Sectors {
            synced: bytes.clone(),
            now: bytes,
            ..Sectors::default()
        })))
    }
}

type Done<T> = Result<T, io::Error>;

impl StorageBackend for Disk {
    fn len(&self) -> Done<u64> {
        Ok(self.0.lock().unwrap().now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Done<()> {
        let start = usize::try_from(offset).unwrap();
        let disk = self.0.lock().unwrap();
        out.copy_from_slice(&disk.now[start..start + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Done<()> {
        let mut disk = self.0.lock().unwrap();
        disk.now.resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> Done<()> {
        let mut disk = self.0.lock().unwrap();
        disk.synced = disk.now.clone();
        disk.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Done<()> {
        let mut disk = self.0.lock().unwrap();
        if let Some(left) = &mut disk.writes_left {
            let full = io::Error::from(io::ErrorKind::StorageFull);
            *left = left.checked_sub(1).ok_or(full)?;
        }
        let start = usize::try_from(offset).unwrap();
        disk.now[start..start + data.len()].copy_from_slice(data);
        disk.unsynced.push((start, data.to_vec()));
        Ok(())
    }
}

fn on(disk: &Disk) -> StateDirectory {
    StateDirectory {
        database: Some(builder().create_with_backend(disk.clone()).unwrap()),
        path: PathBuf::new(),
        starts: 1,
        _lock: tempfile::tempfile().unwrap(),
    }
}

#[test]
fn a_full_disk_is_an_error_and_the_file_is_opened_anew() {
    let (dir, disk) = (used(), Disk::default());
    let mut directory = on(&disk);
    directory.path = dir.path().to_owned();
    disk.0.lock().unwrap().writes_left = Some(1);
    let batch = batch("b", Some(mark(1.0)));
    assert!(directory.write(&batch).is_err());
    directory.reopen().unwrap();
    directory.write(&batch).unwrap();
    // Another server may have used the directory meanwhile.
    drop(directory.database.take());
    drop(open(dir.path()));
    assert!(directory.reopen().is_err());
    assert!(directory.write(&batch).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// After a power cut, the marks are those of the last confirmed batch, or of the one that was being written.
    #[test]
    fn a_power_cut_loses_no_confirmed_batch(
        amounts in prop::collection::vec(0.0..100.0, 1..12),
        cuts in prop::collection::vec((0..400_usize, any::<u64>()), 8),
    ) {
        for (writes, kept) in cuts {
            let disk = Disk::default();
            let directory = on(&disk);
            let set = |amount: f64| directory.write(&batch("a", Some(mark(amount))));
            set(200.0).unwrap();
            disk.0.lock().unwrap().writes_left = Some(writes);
            let mut allowed = vec![200.0];
            for amount in &amounts {
                allowed.truncate(1);
                allowed.push(*amount);
                if set(*amount).is_err() {
                    break;
                }
                allowed.remove(0);
            }
            let after = builder().create_with_backend(disk.after_power_cut(kept)).unwrap();
            let read = after.begin_read().unwrap();
            let found = read.open_table(MARKS).unwrap().get("a").unwrap().unwrap().value().0;
            prop_assert!(allowed.contains(&found.unwrap()), "{found:?} of {allowed:?}");
        }
    }
}
