//! Files that other programs write while they are followed.

use std::fs;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use tokio::time::timeout;

use super::*;

const INTERVAL: Duration = Duration::from_millis(10);

/// A file that is followed, in a directory of its own, and what is known of it.
struct Followed {
    directory: tempfile::TempDir,
    path: PathBuf,
    follower: Follower,
    last: Content,
}

impl Followed {
    async fn open(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.yaml");
        fs::write(&path, text).unwrap();
        Self::open_at(directory, path).await
    }

    async fn open_at(directory: tempfile::TempDir, path: PathBuf) -> Self {
        let mut follower = Follower::new(&path, INTERVAL, |path| document(path, 100));
        let last = follower.read().await;
        Self {
            directory,
            path,
            follower,
            last,
        }
    }

    /// Puts a file in the place of the one that is followed.
    fn replace(&self, text: &str) {
        let new = self.directory.path().join("new");
        fs::write(&new, text).unwrap();
        fs::rename(&new, &self.path).unwrap();
    }

    /// Reads in another way from now on.
    fn read_by(&mut self, read: impl Fn(&Path) -> io::Result<Vec<u8>> + Send + Sync + 'static) {
        self.follower.read = Arc::new(move |path| match read(path) {
            Ok(bytes) => Ok(BTreeMap::from([(path.display().to_string(), bytes)])),
            Err(error) => Err(error.to_string()),
        });
    }

    /// Returns the next content, or the problem with it.
    async fn changed(&mut self) -> String {
        self.last = self.follower.changed(&self.last).await;
        match &self.last {
            Ok(files) => String::from_utf8(files.values().flatten().copied().collect()).unwrap(),
            Err(problem) => problem.clone(),
        }
    }

    /// Checks that nothing is new.
    async fn check_no_change(&mut self) {
        assert_eq!(self.follower.look(&self.last).await, None);
    }
}

#[tokio::test]
async fn a_file_that_is_written_into_or_replaced_is_read_again() {
    let mut file = Followed::open("1").await;
    fs::write(&file.path, "2").unwrap();
    assert_eq!(file.changed().await, "2");
    for version in ["3", "4", "5"] {
        file.replace(version);
        assert_eq!(file.changed().await, version);
    }
    file.replace("5");
    file.check_no_change().await;
}

#[tokio::test]
async fn a_file_that_is_emptied_and_then_written_is_read_when_it_is_written() {
    let mut file = Followed::open("1").await;
    fs::write(&file.path, "").unwrap();
    // The file is written only after it was read empty.
    let reads = AtomicUsize::new(0);
    file.read_by(move |path| {
        let content = fs::read(path);
        if reads.fetch_add(1, Ordering::SeqCst) == 0 {
            fs::write(path, "2")?;
        }
        content
    });
    assert_eq!(file.changed().await, "2");
}

#[tokio::test]
async fn a_file_that_stays_empty_is_a_change_once() {
    let mut file = Followed::open("1").await;
    fs::write(&file.path, "").unwrap();
    assert_eq!(file.changed().await, "");
    file.check_no_change().await;
}

#[tokio::test]
async fn a_file_that_is_written_in_parts_is_read_when_it_is_whole() {
    let mut file = Followed::open("1").await;
    fs::write(&file.path, "2").unwrap();
    let reads = AtomicUsize::new(0);
    file.read_by(move |path| {
        let content = fs::read(path);
        let part = reads.fetch_add(1, Ordering::SeqCst);
        if part < 3 {
            fs::write(path, (3 + part).to_string())?;
        }
        content
    });
    assert_eq!(file.changed().await, "5");
    file.check_no_change().await;
}

#[tokio::test]
async fn a_link_that_is_turned_elsewhere_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for version in ["1", "2"] {
        fs::create_dir(at(version)).unwrap();
        fs::write(at(version).join("t.yaml"), version).unwrap();
    }
    // Layout of a mounted config map of Kubernetes: the file is a link through a link to a directory.
    std::os::unix::fs::symlink("1", at("..data")).unwrap();
    std::os::unix::fs::symlink("..data/t.yaml", at("t.yaml")).unwrap();
    std::os::unix::fs::symlink("2", at("..new")).unwrap();
    let (new, data) = (at("..new"), at("..data"));
    let path = at("t.yaml");
    let mut file = Followed::open_at(directory, path).await;
    fs::rename(new, data).unwrap();
    assert_eq!(file.changed().await, "2");
}

#[tokio::test]
async fn each_reason_why_a_file_cannot_be_read_is_a_change_once() {
    let mut file = Followed::open("1").await;
    fs::remove_file(&file.path).unwrap();
    assert!(file.changed().await.starts_with("cannot read /"));
    file.check_no_change().await;
    // It still cannot be read, but for another reason.
    fs::create_dir(&file.path).unwrap();
    assert!(file.changed().await.contains("it is a directory"));
    file.check_no_change().await;
    fs::remove_dir(&file.path).unwrap();
    fs::write(&file.path, "2").unwrap();
    assert_eq!(file.changed().await, "2");
}

/// Replaces the read by one that hangs until a word is sent, and then has this content. Returns the number of reads.
fn hang(file: &mut Followed, content: &'static [u8]) -> (mpsc::Sender<()>, Arc<AtomicUsize>) {
    let (finish, finished) = mpsc::channel::<()>();
    let (finished, reads) = (Mutex::new(finished), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&reads);
    file.read_by(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        let _ = finished.lock().unwrap().recv();
        Ok(content.to_vec())
    });
    (finish, reads)
}

#[tokio::test]
async fn a_file_system_that_hangs_is_a_change_after_one_read() {
    let mut file = Followed::open("1").await;
    let (_finish, reads) = hang(&mut file, b"");
    file.follower.patience = Duration::from_millis(20);
    let problem = file.changed().await;
    assert_eq!(reads.load(Ordering::SeqCst), 1);
    assert!(problem.ends_with("does its file system hang?"), "{problem}");
}

#[tokio::test]
async fn a_read_that_hangs_is_reported_in_time_and_not_begun_again_before_it_ends() {
    let mut file = Followed::open("1").await;
    let (finish, reads) = hang(&mut file, b"content");
    file.follower.patience = Duration::from_millis(20);
    // A caller that gives up does not cause a second read.
    let moment = Duration::from_millis(1);
    timeout(moment, file.follower.read()).await.unwrap_err();
    for _ in 0..3 {
        let problem = file.follower.read().await.unwrap_err();
        let expected = "nothing came of reading it within 20ms; does its file system hang?";
        assert!(problem.ends_with(expected), "{problem}");
    }
    assert_eq!(reads.load(Ordering::SeqCst), 1);
    // The read that began earlier ends, and another one begins, which does not hang.
    drop(finish);
    file.follower.patience = PATIENCE;
    let content = file.follower.read().await.unwrap();
    assert_eq!(content.values().next().unwrap(), b"content");
    assert_eq!(reads.load(Ordering::SeqCst), 2);
}
