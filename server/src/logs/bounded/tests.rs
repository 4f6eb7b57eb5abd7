//! Lines that are left out, and what is logged of them afterwards.

use std::io;

use tracing::{debug, info};
use tracing_subscriber::layer::SubscriberExt;

use super::*;

#[derive(Clone, Debug, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_is_beyond_a_places_allowance_is_left_out_and_counted_when_the_minute_is_over() {
    let (bounded, teller) = bounded(2);
    let text = Text::default();
    let writer = text.clone();
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(move || writer.clone());
    let subscriber = tracing_subscriber::registry().with(bounded).with(lines);
    tracing::subscriber::with_default(subscriber, || {
        for number in 0..5 {
            warn!(number, "a flood");
            debug!(number, "asked for");
        }
        info!("a calm place");
        teller.log_left_out(Duration::ZERO);
        let before = text.0.lock().unwrap().len();
        // A minute and a bit after whatever the test took.
        teller.log_left_out(teller.counted.began.elapsed() + Duration::from_secs(61));
        let logged = text.0.lock().unwrap().split_off(before);
        let logged = String::from_utf8(logged).unwrap();
        assert!(logged.contains("lines=3"), "{logged}");
        assert!(logged.contains("logs/bounded/tests.rs:"), "{logged}");
        warn!("the teller itself is another place");
    });
    let text = String::from_utf8(text.0.lock().unwrap().clone()).unwrap();
    let count = |words: &str| text.lines().filter(|line| line.contains(words)).count();
    assert_eq!(count("a flood"), 2, "{text}");
    assert_eq!(count("asked for"), 5, "{text}");
    assert_eq!(count("a calm place"), 1, "{text}");
}
