//! Reads that end, and those that would not.

use std::process::Command;

use super::*;

/// Makes a pipe without a writer: reading it waits for ever.
fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.is_ok_and(|it| it.success()));
}

#[test]
fn a_file_is_read_and_what_never_ends_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("secret"), "s\n").unwrap();
    assert_eq!(read_to_string(&at("secret")).unwrap(), "s\n");
    fs::write(at("binary"), [0xff]).unwrap();
    let error = read_to_string(&at("binary")).unwrap_err().to_string();
    assert_eq!(error, "it is no UTF-8 text");
    let error = read(Path::new("/dev/zero")).unwrap_err().to_string();
    assert!(error.contains("more than the 1048576 bytes"), "{error}");
    read(&at("nothing")).unwrap_err();
    read(folder.path()).unwrap_err();
    std::os::unix::fs::symlink("loop", at("loop")).unwrap();
    read(&at("loop")).unwrap_err();
    read_regular(&at("loop"), 1).unwrap_err();
}

#[test]
fn a_pipe_with_a_writer_is_read_and_one_without_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    make_pipe(&pipe);
    let error = read_within(&pipe, Duration::from_millis(20)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(error.to_string().contains("within 20ms"), "{error}");
    // The first reader, left behind, would take a part of it: another pipe.
    let pipe = folder.path().join("another");
    make_pipe(&pipe);
    let path = pipe.clone();
    let writer = thread::spawn(move || fs::write(path, "s").unwrap());
    assert_eq!(read(&pipe).unwrap(), b"s");
    writer.join().unwrap();
}

#[test]
fn what_is_no_regular_file_is_no_document() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    make_pipe(&pipe);
    for (path, what) in [
        (&*pipe, "it is a pipe"),
        (folder.path(), "it is a directory"),
        (Path::new("/dev/zero"), "it is a device"),
    ] {
        // A reader of the pipe would never return.
        let error = document(path, 10).unwrap_err();
        assert!(error.starts_with("cannot read /"), "{error}");
        assert!(error.contains(what), "{error}");
        assert!(error.contains("give a regular file"), "{error}");
    }
}

#[test]
fn a_large_file_costs_no_more_than_a_document_may_have() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    fs::write(&path, "12345").unwrap();
    assert_eq!(read_regular(&path, 5).unwrap(), b"12345");
    // The file is sparse: nothing of it is on the disk.
    File::create(&path).unwrap().set_len(100 << 20).unwrap();
    let error = read_regular(&path, 5).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    assert!(
        error.to_string().contains("more than the 5 bytes"),
        "{error}"
    );
}
