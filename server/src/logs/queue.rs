//! Writes log lines on a thread of its own, so that logging never blocks.
//!
//! Standard error may be a full pipe whose reader has stopped. Lines then wait in a bounded queue. Lines beyond it are
//! dropped and counted: in the metric `doorward_log_lines_dropped_total`, and in a line before the next written one.
//! `tracing-appender` does the same, but prints to standard output at the end if its queue is full. That blocks if both
//! outputs are one pipe.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tracing_subscriber::fmt::format;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use super::plain::{Style, plain};

/// Largest number of lines that wait for the writer.
const LINES_MAX: usize = 4_096;

/// Time that the end of the program waits for the last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Lines of this process that were dropped.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Number of log lines of this process that were dropped because standard error was not read in time.
pub fn dropped_lines() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Number of lines that are not written yet, and the news of a written one.
type Waiting = (Mutex<usize>, Condvar);

/// The queue of log lines. Its writers wait for no line.
#[derive(Clone, Debug)]
pub struct LogQueue {
    style: Style,
    lines: SyncSender<Vec<u8>>,
    waiting: Arc<Waiting>,
}

/// Waits when dropped until the last lines are written, at most a second.
#[derive(Debug)]
#[must_use = "the last lines are lost unless this lives as long as the program"]
pub struct LogGuard(Arc<Waiting>);

/// Starts a thread that writes lines to `out`.
///
/// # Errors
///
/// If the thread cannot be started.
pub(super) fn start(
    style: Style,
    out: impl Write + Send + 'static,
) -> io::Result<(LogQueue, LogGuard)> {
    let (lines, queue) = mpsc::sync_channel(LINES_MAX);
    let reported = dropped_lines();
    let waiting = Arc::<Waiting>::default();
    let left = Arc::clone(&waiting);
    thread::Builder::new()
        .name("log writer".to_owned())
        .spawn(move || write_all(&queue, &left, style, out, reported))?;
    let guard = LogGuard(Arc::clone(&waiting));
    let queue = LogQueue {
        style,
        lines,
        waiting,
    };
    Ok((queue, guard))
}

/// Writes lines until no sender is left. `reported` lines were dropped before. A line that cannot be written is lost:
/// there is no other place to report it.
fn write_all(
    queue: &Receiver<Vec<u8>>,
    waiting: &Waiting,
    style: Style,
    mut out: impl Write,
    mut reported: u64,
) {
    for line in queue {
        let dropped = dropped_lines();
        if dropped > reported {
            let _ = out.write_all(dropped_line(style, dropped - reported).as_bytes());
            reported = dropped;
        }
        let _ = out.write_all(&line);
        *waiting.0.lock() -= 1;
        waiting.1.notify_all();
    }
}

/// Returns the line that tells the number of dropped lines.
fn dropped_line(style: Style, lines: u64) -> String {
    const WHAT: &str = "log lines were dropped because standard error was not read in time";
    let mut time = String::new();
    // Without a time, the line still tells what matters.
    let _ = SystemTime.format_time(&mut format::Writer::new(&mut time));
    match style {
        Style::Text { .. } => format!("{time}  WARN {WHAT} lines={lines}\n"),
        Style::Json => format!(
            "{{\"timestamp\":\"{time}\",\"level\":\"WARN\",\"message\":\"{WHAT}\",\"lines\":{lines}}}\n"
        ),
    }
}

impl Write for LogQueue {
    /// Queues or drops a line. `tracing_subscriber` writes one line with each call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let plain = plain(line, self.style);
        *self.waiting.0.lock() += 1;
        if self.lines.try_send(plain).is_err() {
            *self.waiting.0.lock() -= 1;
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        let (lines, written) = &*self.0;
        written.wait_while_for(&mut lines.lock(), |lines| *lines > 0, LAST_LINES);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A pipe that takes a line only while it is read.
    struct Pipe {
        read: Receiver<()>,
        text: Arc<Mutex<String>>,
    }

    impl Write for Pipe {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let _ = self.read.recv();
            let mut text = self.text.lock().unwrap();
            text.push_str(std::str::from_utf8(line).unwrap());
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn line(number: usize) -> String {
        format!("line {number}\n")
    }

    #[test]
    fn an_unread_log_drops_lines_counts_them_and_says_so_in_the_next_line() {
        for (style, said) in [
            (
                Style::Text { is_coloured: false },
                "not read in time lines=",
            ),
            (Style::Json, "not read in time\",\"lines\":"),
        ] {
            let (reader, read) = mpsc::channel();
            let text = Arc::default();
            let pipe = Pipe {
                read,
                text: Arc::clone(&text),
            };
            let (mut queue, guard) = start(style, pipe).unwrap();
            let before = dropped_lines();
            for number in 0..LINES_MAX + 10 {
                queue.write_all(line(number).as_bytes()).unwrap();
            }
            let dropped = dropped_lines() - before;
            assert!(dropped >= 9, "the writer holds one line: {dropped}");
            // The reader is back: without a sender, every read returns at once.
            drop(reader);
            drop(guard);
            let text = text.lock().unwrap();
            // The writer may have started while lines were dropped. Then two lines report them.
            let reported = text.lines().filter_map(|line| {
                let (_, lines) = line.split_once(said)?;
                lines.trim_end_matches('}').parse::<u64>().ok()
            });
            assert_eq!(reported.sum::<u64>(), dropped, "{text:.300}");
            assert!(text.contains(&line(LINES_MAX - 1)));
            assert!(!text.contains(&line(LINES_MAX + 9)));
        }
    }

    #[test]
    fn the_end_does_not_wait_for_a_reader_that_has_stopped() {
        let (_reader, read) = mpsc::channel();
        let text = Arc::default();
        let (mut queue, guard) = start(Style::Json, Pipe { read, text }).unwrap();
        queue.write_all(b"a line\n").unwrap();
        // A guard without a time limit would hang here.
        drop(guard);
    }
}
