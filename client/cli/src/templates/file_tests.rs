//! Templates in a file: what is replaced, what is kept, and who comes second.

use std::time::UNIX_EPOCH;

use doorward_etcd::templates::VersionKind;

use super::*;

fn change(document: &str) -> TemplatesEdit<'_> {
    TemplatesEdit {
        document,
        kind: VersionKind::Apply,
        who: "ann",
        why: None,
        when: UNIX_EPOCH,
    }
}

/// A folder, and a file in it.
fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    (folder, path)
}

#[track_caller]
fn done(written: Result<WriteResult, Failure>) -> u64 {
    match written.unwrap() {
        WriteResult::Done(version) => version.number,
        WriteResult::Changed => panic!("changed"),
    }
}

#[test]
fn every_version_is_kept_and_the_last_one_is_in_force() {
    let (_folder, path) = place();
    let file = DocumentFile::new(&path);
    let empty = file.read().unwrap();
    assert_eq!(empty, StoredTemplates::default());
    assert_eq!(done(file.write(&empty, &change("one\n"))), 1);
    assert_eq!(done(file.write(&file.read().unwrap(), &change("two"))), 2);
    let standing = file.read().unwrap();
    assert_eq!(standing.document.as_deref(), Some(&b"two"[..]));
    assert_eq!(standing.numbers, [2, 1]);
    assert!(standing.is_recorded());
    let first = &file.versions(&[1]).unwrap()[0];
    let document = first.version.clone().unwrap().document;
    assert_eq!(document.as_deref(), Some("one\n"));
    assert_eq!(file.versions(&[7]).unwrap(), []);
}

#[test]
fn who_comes_second_writes_nothing() {
    let (_folder, path) = place();
    let file = DocumentFile::new(&path);
    let seen = file.read().unwrap();
    done(file.write(&seen, &change("one")));
    let second = file.write(&seen, &change("other")).unwrap();
    assert!(matches!(second, WriteResult::Changed));
    let standing = file.read().unwrap();
    assert_eq!(
        (standing.document, standing.numbers),
        (Some(b"one".to_vec()), vec![1])
    );
}

#[test]
fn what_an_editor_saved_becomes_a_version_before_it_is_replaced() {
    let (_folder, path) = place();
    let file = DocumentFile::new(&path);
    fs::write(&path, "by hand").unwrap();
    let seen = file.read().unwrap();
    assert!(!seen.is_recorded());
    assert_eq!(done(file.write(&seen, &change("one"))), 2);
    let found = file.versions(&[1]).unwrap()[0].version.clone().unwrap();
    assert_eq!(
        (found.kind, found.document.as_deref()),
        (VersionKind::Found, Some("by hand"))
    );
}

#[test]
fn while_somebody_writes_nobody_else_does() {
    let (_folder, path) = place();
    let file = DocumentFile::new(&path);
    let lock = File::create(&file.history).unwrap();
    lock.lock().unwrap();
    let refused = file.write(&file.read().unwrap(), &change("one"));
    assert!(refused.unwrap_err().to_string().contains("at this moment"));
    drop(lock);
    assert_eq!(done(file.write(&file.read().unwrap(), &change("one"))), 1);
}

#[test]
fn a_line_that_cannot_be_read_takes_a_number_and_no_other_line() {
    let (_folder, path) = place();
    let file = DocumentFile::new(&path);
    done(file.write(&file.read().unwrap(), &change("one")));
    let mut lines = OpenOptions::new().append(true).open(&file.history).unwrap();
    lines.write_all(b"{\"number\": 2, oops").unwrap();
    let standing = file.read().unwrap();
    assert_eq!(standing.numbers, [2, 1]);
    assert!(standing.newest.as_ref().unwrap().version.is_err());
    // What is in force is the first version, but the newest one is not known: it is kept again.
    assert_eq!(done(file.write(&standing, &change("two"))), 4);
    assert_eq!(file.read().unwrap().numbers, [4, 3, 2, 1]);
}

#[test]
fn a_number_that_is_none_is_reported_and_leaves_room_for_others() {
    let (_folder, path) = place();
    let file = DocumentFile::new(&path);
    done(file.write(&file.read().unwrap(), &change("one")));
    let line = fs::read_to_string(&file.history).unwrap();
    let numbered = |number: u64| line.replace("\"number\":1,", &format!("\"number\":{number},"));
    let bad = [u64::MAX, VERSION_MAX + 1, 0].map(numbered).concat();
    fs::write(&file.history, format!("{line}{bad}{{oops\n")).unwrap();
    let standing = file.read().unwrap();
    assert_eq!(standing.numbers, [5, 4, 3, 2, 1]);
    let broken = file.versions(&[2]).unwrap().remove(0).version;
    let problem = broken.unwrap_err();
    assert!(problem.contains("18446744073709551615"), "{problem}");
    assert!(problem.contains("1 to 1000000000000"), "{problem}");
    assert_eq!(done(file.write(&standing, &change("two"))), 7);

    // The last number there is may stand there, and leaves none.
    fs::write(&file.history, numbered(VERSION_MAX)).unwrap();
    let refused = file.write(&file.read().unwrap(), &change("three"));
    let problem = refused.unwrap_err().to_string();
    assert!(problem.contains("none is larger than"), "{problem}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let (folder, path) = place();
    let link = folder.path().join("link");
    symlink("t.yaml", &link).unwrap();
    // What the link leads to is not there yet.
    let file = DocumentFile::new(&link);
    done(file.write(&file.read().unwrap(), &change("one")));
    fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
    done(file.write(&file.read().unwrap(), &change("two")));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o664);
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["link", "t.yaml", "t.yaml.history"]);
}
