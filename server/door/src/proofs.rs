//! Rates of what callers cause before they have proved an identity: the work of handshakes, and unknown tokens. Each
//! caller has them, and so have all callers of a door together.
//!
//! A handshake counts as the average of those before it, so the kind of the key decides how many a second there are. Work
//! beyond that counts at its end, so cheap handshakes make no room for dear ones. Handshakes beyond a rate wait in the
//! order of arrival, for as long as the patience lasts.

use std::time::Duration;

use doorward_limits::{AtomicBucket, Units};
use tokio::sync::Mutex;

use crate::door_limits::DoorLimits;
use crate::rate::{bucket, moment, seconds, units};

/// Work of all callers together, as a multiple of that of one.
const WORK_OF_ALL: u32 = 4;

/// Unknown tokens of all callers together, likewise.
const GUESSES_OF_ALL: u64 = 100;

/// Rates of one caller, or of all.
#[derive(Debug)]
pub(crate) struct Proofs {
    /// Work, in seconds.
    handshakes: AtomicBucket,
    /// The next handshake has it.
    turn: Mutex<()>,
    guesses: AtomicBucket,
}

impl Proofs {
    pub(crate) fn new(limits: &DoorLimits, of_all: bool) -> Self {
        let (work, guesses) = match of_all {
            true => (WORK_OF_ALL, GUESSES_OF_ALL),
            false => (1, 1),
        };
        let span = limits.handshake_time_per_caller.span();
        let span = span.clamp(Duration::from_millis(1), Duration::from_secs(3_600)) * work;
        let guesses_max = limits.unknown_tokens_per_caller.max();
        let guesses = guesses_max.saturating_mul(guesses);
        Self {
            handshakes: AtomicBucket::new(bucket(seconds(span), 1)),
            turn: Mutex::default(),
            guesses: AtomicBucket::new(bucket(units(guesses), 1)),
        }
    }

    pub(crate) fn are_at_rest(&self, now: Duration) -> bool {
        let mut buckets = [&self.handshakes, &self.guesses].into_iter();
        buckets.all(|bucket| bucket.is_fresh(moment(now)))
    }

    /// Returns whether the next token may be an unknown one.
    pub(crate) fn may_guess(&self, now: Duration) -> bool {
        self.guesses.peek(Units::ONE, moment(now)).is_allowed()
    }

    /// Counts an unknown token.
    pub(crate) fn note_guess(&self, now: Duration) {
        self.guesses.charge(Units::ONE, moment(now));
    }

    /// Counts work of a handshake.
    pub(crate) fn note_work(&self, work: Duration, now: Duration) {
        self.handshakes.charge(seconds(work), moment(now));
    }

    /// Waits until a handshake may begin, and counts its work. `refuse` is called if it has to wait.
    pub(crate) async fn begin(
        &self,
        work: Duration,
        now: impl Fn() -> Duration,
        refuse: impl Fn(),
    ) {
        let _turn = self.turn.lock().await;
        let mut has_waited = false;
        let peek = || self.handshakes.peek(Units::ZERO, moment(now()));
        while let Some(wait) = peek().retry_after() {
            if !std::mem::replace(&mut has_waited, true) {
                refuse();
            }
            tokio::time::sleep(wait.max(Duration::from_millis(1))).await;
        }
        self.note_work(work, now());
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use doorward_clock::Instant;
    use doorward_tls::server::Protocol;
    use doorward_tls::tokens::{self, Tokens};
    use tokio::sync::Semaphore;

    use super::*;
    use crate::access::{Access, Denied};
    use crate::caller_id::CallerId;
    use crate::connection::Connection;
    use crate::door::Door;
    use crate::door_limits::testing::limits;
    use crate::paths::Paths;

    const SOON: Duration = Duration::from_millis(50);
    const MINUTE: Duration = Duration::from_secs(60);

    fn door() -> Arc<Door> {
        let looking = Arc::new(Semaphore::new(1));
        Door::new(limits(1_000, 10), Paths::default(), looking)
    }

    fn connect(door: &Door, last: u8) -> Arc<Connection> {
        let caller = CallerId::of([192, 0, 2, last].into());
        door.admit(caller, None).unwrap()
    }

    /// Returns whether a handshake on a connection begins soon.
    async fn begins(door: &Door, connection: &Connection) -> bool {
        let handshake = door.in_turn(connection, ready(()));
        tokio::time::timeout(SOON, handshake).await.is_ok()
    }

    #[tokio::test]
    async fn a_caller_that_has_caused_much_work_waits_and_others_do_not() {
        let door = door();
        let (one, other) = (connect(&door, 1), connect(&door, 2));
        assert!(begins(&door, &one).await);
        let proofs = &one.of_caller.proofs;
        proofs.begin(MINUTE, || door.now(), || {}).await;
        assert!(!begins(&door, &one).await);
        assert!(!begins(&door, &connect(&door, 1)).await);
        assert!(begins(&door, &other).await);
        assert_eq!(door.limits().handshake_time_per_caller.refused(), 2);
    }

    #[tokio::test]
    async fn all_wait_once_many_callers_have_caused_much_work() {
        let door = door();
        let (one, other) = (connect(&door, 1), connect(&door, 2));
        door.handshake.store(60_000_000_000, Ordering::Relaxed);
        assert!(begins(&door, &one).await);
        assert!(!begins(&door, &other).await);
    }

    #[tokio::test]
    async fn a_handshake_that_does_much_work_and_then_hangs_counts() {
        let door = door();
        let one = connect(&door, 1);
        let works = std::future::poll_fn(|_| {
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(150) {}
            std::task::Poll::<()>::Pending
        });
        let hangs = door.in_turn(&one, works);
        assert!(tokio::time::timeout(SOON, hangs).await.is_err());
        let average = door.handshake.load(Ordering::Relaxed);
        assert!(average > 15_000_000, "{average} ns");
        assert!(!begins(&door, &one).await);
        assert!(begins(&door, &connect(&door, 2)).await);
    }

    #[test]
    fn a_caller_has_a_number_of_guesses_and_more_with_time() {
        let door = door();
        let now = Duration::from_secs(9);
        let caller = Proofs::new(door.limits(), false);
        for _ in 0..10 {
            assert!(caller.may_guess(now));
            caller.note_guess(now);
        }
        assert!(!caller.may_guess(now));
        assert!(!caller.are_at_rest(now));
        assert!(caller.may_guess(now + Duration::from_millis(100)));
        assert!(caller.are_at_rest(now + Duration::from_secs(1)));
    }

    /// Returns a door that knows the token `s3cret`.
    fn door_with_a_token() -> Arc<Door> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.yaml");
        let hash = tokens::hash(b"s3cret").map(|byte| format!("{byte:02x}"));
        let text = format!("tokens: [{{name: batch, sha256: {}}}]", hash.concat());
        std::fs::write(&path, text).unwrap();
        let access = Access {
            tokens: Some(Tokens::open(path).unwrap()),
            needs_identity: true,
            ..Access::default()
        };
        let (limits, looking) = (limits(1_000, 10), Arc::new(Semaphore::new(1)));
        Door::secured(
            limits,
            Paths::default(),
            looking,
            Arc::new(access),
            Protocol::Other,
        )
    }

    #[test]
    fn beyond_the_rate_of_guesses_only_a_connection_that_has_proved_a_token_goes_on_with_it() {
        let door = door_with_a_token();
        let (proved, new) = (connect(&door, 1), connect(&door, 1));
        let elsewhere = connect(&door, 2);
        let prove =
            |connection: &Connection, token: &[u8]| door.prove_client(connection, Some(token));
        assert!(prove(&proved, b"s3cret").is_ok());
        assert_eq!(prove(&proved, b"guess"), Err(Denied::UnknownToken));
        for _ in 0..1_000 {
            proved.of_caller.proofs.note_guess(door.now());
        }
        assert!(prove(&proved, b"s3cret").is_ok());
        for (connection, token) in [
            (&proved, &b"guess"[..]),
            (&new, b"guess"),
            (&new, b"s3cret"),
        ] {
            let refused = prove(connection, token);
            assert!(matches!(refused, Err(Denied::Guesses(..))), "{refused:?}");
        }
        assert!(prove(&elsewhere, b"s3cret").is_ok());
        // Guesses from many addresses.
        for last in 2..=255 {
            let connection = connect(&door, last);
            for _ in 0..10 {
                _ = prove(&connection, b"guess");
            }
        }
        let refused = prove(&connect(&door, 1), b"s3cret");
        assert!(matches!(refused, Err(Denied::Guesses(..))), "{refused:?}");
    }
}
