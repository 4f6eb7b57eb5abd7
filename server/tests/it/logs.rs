//! What a server logs, caught: of everything that runs on this thread, hence of a test's runtime.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, Once};

/// One subscriber for all tests, which is never exchanged: `tracing` remembers of each line of the
/// program whether anybody wants it, and asks the thread that comes by first.
static SUBSCRIBER: Once = Once::new();

thread_local! {
    static CAUGHT: RefCell<Option<Text>> = const { RefCell::new(None) };
}

type Text = Arc<Mutex<Vec<u8>>>;

/// The log from when it was made.
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

    /// In how many lines something is said.
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
