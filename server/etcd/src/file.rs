//! Small files that operators name: certificates, keys, passwords.
//!
//! A read always ends: that of `/dev/zero` by the size, that of a pipe without a writer, or of a network file system
//! that hangs, by the time. A pipe with a writer is as good as a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The largest file, in bytes. A bundle of every public CA has a fifth of that.
const BYTES_MAX: u64 = 1024 * 1024;

/// Longest time of a read.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the content of a small file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_within(path, PATIENCE)
}

/// Returns the content of a small file of text.
pub(crate) fn read_to_string(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text"))
}

fn read_within(path: &Path, patience: Duration) -> io::Result<Vec<u8>> {
    let (sender, content) = mpsc::sync_channel(1);
    let owned = path.to_owned();
    // Nothing interrupts a read that hangs. This thread is left behind then, and ends with the process.
    thread::Builder::new()
        .name("file".to_owned())
        .spawn(move || {
            // The receiver is gone if it took too long.
            let _ = sender.send(read_bounded(&owned));
        })?;
    content.recv_timeout(patience).unwrap_or_else(|_| {
        let problem = format!("nothing came of reading it within {patience:?}");
        Err(io::Error::new(io::ErrorKind::TimedOut, problem))
    })
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?
        .take(BYTES_MAX + 1)
        .read_to_end(&mut content)?;
    if content.len() as u64 > BYTES_MAX {
        let problem = format!("it has more than the {BYTES_MAX} bytes that it may have");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(content)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

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
    }

    #[test]
    fn a_pipe_with_a_writer_is_read_and_one_without_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let error = read_within(&pipe, Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("within 20ms"), "{error}");
        // The first reader, left behind, would take a part of it: another pipe.
        let pipe = folder.path().join("another");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let path = pipe.clone();
        let writer = thread::spawn(move || fs::write(path, "s").unwrap());
        assert_eq!(read(&pipe).unwrap(), b"s");
        writer.join().unwrap();
    }
}
