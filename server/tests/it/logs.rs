//! The log of a server, caught for a test. It has all lines of the test's thread, hence of its runtime.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, Once};

/// The one subscriber of all tests, which is never replaced. `tracing` remembers for each line of the program whether a
/// subscriber wants it, and asks only the first thread that reaches the line.
static SUBSCRIBER: Once = Once::new();

thread_local! {
    static CAUGHT: RefCell<Option<Text>> = const { RefCell::new(None) };
}

type Text = Arc<Mutex<Vec<u8>>>;

/// The log since this value was made.
pub(crate) struct Logs(Text);

impl Logs {
    pub(crate) fn start() -> Self {
        SUBSCRIBER.call_once(|| {
            let subscriber = tracing_subscriber::fmt()
                .with_writer(|| ThisThread)
                .with_ansi(false)
                .finish();
            tracing::subscriber::set_global_default(subscriber).expect("the only one");
        });
        let text = Text::default();
        CAUGHT.set(Some(Arc::clone(&text)));
        Self(text)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Returns the number of log lines with these words.
    pub(crate) fn count(&self, words: &str) -> usize {
        let text = self.text();
        text.lines().filter(|line| line.contains(words)).count()
    }
}

struct ThisThread;

impl io::Write for ThisThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        CAUGHT.with_borrow(|caught| {
            if let Some(text) = caught {
                text.lock().unwrap().extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
