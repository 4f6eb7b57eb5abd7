//! Commands and their answers, without a network.

use std::collections::HashMap;
use std::time::Duration;

use doorward::rules::{Descriptor, Entry, Limiter, Rules};
use doorward_door::access::Denied;
use doorward_door::caller_id::CallerId;
use doorward_limits::Moment;
use doorward_tls::identity::Identity;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::asker::Asker;

use super::codec::{Malformed, Reply, Words, next_command};
use super::command::Command;
use super::session::Session;
use super::throttle::{Answer, Buckets, Numbers, Throttle};

const BYTES_MAX: usize = 1_000;

fn address() -> CallerId {
    CallerId::of("192.0.2.1".parse().unwrap())
}

fn asker(number: u8) -> Asker {
    Asker::new(
        Some("web-1"),
        None,
        Some(&CallerId::of([192, 0, 2, number].into())),
    )
}

struct Core {
    session: Session,
    buckets: Buckets,
}

impl Core {
    fn new() -> Self {
        Self {
            session: Session::new(7, address(), Ok(None)),
            buckets: Buckets::new(1_000, [1, 2]),
        }
    }

    /// Removes the complete commands from the bytes. Returns the answers, and whether the connection closes.
    fn answer(&mut self, bytes: &mut &[u8], now: Duration) -> (Vec<u8>, bool) {
        let mut answers = Vec::new();
        loop {
            let words = match next_command(bytes, BYTES_MAX) {
                Ok(None) => return (answers, false),
                Ok(Some(words)) if words.is_empty() => continue,
                Ok(Some(words)) => words,
                Err(_) => return (answers, true),
            };
            match Command::parse(&words) {
                Err(refusal) => refusal.write(self.session.version, &mut answers),
                Ok(Command::Throttle(command)) => {
                    let answer = self
                        .buckets
                        .take(&command, &asker(1), Moment::ORIGIN.after(now));
                    Reply::Integers(answer).write(self.session.version, &mut answers);
                }
                Ok(command) => {
                    self.session.note(&command);
                    let version = self.session.version;
                    self.session.reply(command).write(version, &mut answers);
                }
            }
        }
    }

    #[track_caller]
    fn check(&mut self, line: &str, expected: &str) {
        let line = format!("{line}\r\n");
        let (answers, _) = self.answer(&mut line.as_bytes(), Duration::ZERO);
        let answers = String::from_utf8(answers).unwrap().replace("\r\n", " ");
        assert_eq!(answers.trim_end(), expected, "{line}");
    }
}

#[test]
fn a_session_opens_when_its_client_has_proved_an_identity() {
    let mut session = Session::new(7, address(), Err(Denied::NoIdentity));
    assert!(!session.is_open);
    assert_eq!(session.caller.name(), "192.0.2.1");
    session.identify(Identity::parse("token:batch"));
    assert!(session.is_open);
    assert_eq!(session.caller.name(), "token:batch");
}

#[test]
fn clients_introduce_themselves_and_go_on() {
    let mut core = Core::new();
    core.check("PING", "+PONG");
    core.check("ping hello", "$5 hello");
    core.check("ECHO hello", "$5 hello");
    core.check("CLIENT GETNAME", "$-1");
    core.check("CLIENT SETINFO LIB-NAME redis-py", "+OK");
    core.check("CLIENT SETNAME web-1", "+OK");
    core.check("CLIENT GETNAME", "$5 web-1");
    core.check("CLIENT ID", ":7");
    core.check("COMMAND", "*0");
    core.check("COMMAND DOCS", "*0");
    core.check("SELECT 0", "+OK");
    core.check("SELECT 1", "-ERR DB index is out of range");
    let (info, _) = core.answer(&mut b"INFO\r\n".as_slice(), Duration::ZERO);
    assert!(info.ends_with(b"\r\nloading:0\r\n\r\n"));
    let version = env!("CARGO_PKG_VERSION");
    let rest = format!(
        "$6 server $8 doorward $7 version ${} {version} $5 proto :2 $2 id :7 $4 mode $10 \
         standalone $4 role $6 master $7 modules *0",
        version.len()
    );
    core.check("HELLO", &format!("*14 {rest}"));
    let rest = rest.replace(":2", ":3");
    core.check("HELLO 3 SETNAME web-2", &format!("%7 {rest}"));
    assert_eq!(core.session.caller.name(), "web-2");
    core.check(
        "CLIENT SETNAME",
        "-ERR unknown subcommand or wrong number of arguments for 'SETNAME'",
    );
    core.session = Session::new(8, address(), Ok(None));
    assert_eq!(core.session.caller.name(), "192.0.2.1");
    core.check("HELLO 3", &format!("%7 {}", rest.replace(":7", ":8")));
    core.check("CLIENT GETNAME", "_");
    core.check("QUIT", "+OK");
}

#[test]
fn what_is_not_known_is_an_error_and_no_end() {
    let mut core = Core::new();
    core.check("GET a", "-ERR unknown command 'GET'; there is THROTTLE");
    core.check("\u{7}", "-ERR unknown command '\\x07'; there is THROTTLE");
    core.check("ECHO", "-ERR wrong number of arguments for 'ECHO' command");
    core.check("HELLO 4", "-NOPROTO unsupported protocol version");
    core.check("AUTH", "-ERR wrong number of arguments for 'AUTH' command");
    core.check("HELLO 3 WHY", "-ERR Syntax error in HELLO option 'WHY'");
    let usage = "-ERR Usage: THROTTLE <key> <max_burst> <count per period> <period> [<quantity>]";
    core.check("THROTTLE a 1 1", usage);
    core.check("THROTTLE a x 1 1", "-ERR Couldn't parse as integer: x");
    core.check(
        "THROTTLE a 1 1 9223372036854775808",
        "-ERR Couldn't parse as integer: 9223372036854775808",
    );
    core.check(
        "THROTTLE a 1 1 -1",
        "-ERR period is negative; give at least 0",
    );
    core.check("THROTTLE a 1 0 1", "-ERR Zero rates are not supported");
    core.check("THROTTLE a 1 1 0", "-ERR Zero rates are not supported");
    core.check("PING", "+PONG");
}

#[test]
fn throttle_answers_as_redis_cell_does() {
    let mut core = Core::new();
    // The example of its documentation.
    core.check("CL.THROTTLE user123 15 30 60", "*5 :0 :16 :15 :-1 :2");
    core.check("throttle user123 15 30 60 15", "*5 :0 :16 :0 :-1 :32");
    core.check("THROTTLE user123 15 30 60 1", "*5 :1 :16 :0 :2 :32");
    core.check("THROTTLE user123 15 30 60 0", "*5 :0 :16 :0 :-1 :32");
    // More than the limit never passes.
    core.check("THROTTLE user123 15 30 60 17", "*5 :1 :16 :0 :-1 :32");
    // The key goes on from its state with other numbers.
    core.check("THROTTLE user123 31 30 60 1", "*5 :0 :32 :15 :-1 :34");
    core.check("THROTTLE other 0 1 2", "*5 :0 :1 :0 :-1 :2");
    core.check("THROTTLE other 0 1 2", "*5 :1 :1 :0 :2 :2");
    // Seconds are rounded up, and a third of a second is exact.
    core.check("THROTTLE thirds 2 3 1 3", "*5 :0 :3 :0 :-1 :1");
    core.check("THROTTLE thirds 2 3 1", "*5 :1 :3 :0 :1 :1");
    // A negative quantity gives back, up to all.
    core.check("THROTTLE thirds 2 3 1 -2", "*5 :0 :3 :2 :-1 :1");
    core.check(
        &format!("THROTTLE thirds 2 3 1 {}", i64::MIN),
        "*5 :0 :3 :3 :-1 :0",
    );
}

#[test]
fn a_refusal_without_a_lease_names_no_time_at_which_all_is_available() {
    let rules = "{domain: redis, descriptors: [{key: key, scope: shared, on_failure: closed, rate_limit: {rate: 5/s}}]}";
    let rules = Rules::load(&[("redis.yaml", rules)]).unwrap();
    let entry = Entry {
        key: "key",
        value: Some(b"a"),
    };
    let asked = Descriptor {
        entries: &[entry],
        hits: None,
    };
    let limiter = Limiter::new(rules, 10, [1, 2]);
    let decision = limiter.decide("redis", &[asked], None, Moment::ORIGIN);
    let numbers = Numbers {
        max_burst: 1,
        count: 1,
        period: 1,
    };
    let command = Throttle {
        key: b"a",
        numbers,
        quantity: None,
    };
    assert_eq!(command.answer_by_rule(&decision), Some([1, 5, 0, 1, -1]));
}

#[test]
fn a_key_has_a_bound() {
    for (length, is_valid) in [(1_024, true), (1_025, false)] {
        let key = vec![b'a'; length];
        let words = [&b"THROTTLE"[..], &key, b"0", b"1", b"1"];
        let words: Words<'_> = words.into_iter().collect();
        assert_eq!(Command::parse(&words).is_ok(), is_valid, "{length}");
    }
}

#[test]
fn extreme_numbers_do_no_harm() {
    let mut core = Core::new();
    let most = i64::MAX;
    core.check(
        &format!("THROTTLE a {most} {most} {most} {most}"),
        &format!("*5 :1 :{most} :2678400 :-1 :0"),
    );
    // No key is used up for longer than 31 days.
    core.check(&format!("THROTTLE b 0 1 {most} 1"), "*5 :1 :1 :0 :-1 :0");
    core.check("THROTTLE b 0 1 2678400 1", "*5 :0 :1 :0 :-1 :2678400");
    core.check(
        &format!("THROTTLE c {most} {most} 1 1"),
        &format!("*5 :0 :{most} :{most} :-1 :1"),
    );
}

#[test]
fn one_identity_leaves_room_for_the_keys_of_others() {
    let buckets = Buckets::new(80, [1, 2]);
    let take = |caller: u8, key: u64| {
        let words = [
            b"THROTTLE".as_slice(),
            &key.to_be_bytes(),
            b"0",
            b"1",
            b"60",
        ];
        let Ok(Command::Throttle(command)) = Command::parse(&words.into_iter().collect()) else {
            panic!("it is a command");
        };
        buckets.take(&command, &asker(caller), Moment::ORIGIN)
    };
    let passed = (0..1_000).filter(|key| take(1, *key)[0] == 0).count();
    assert!((40..=50).contains(&passed), "{passed}");
    for key in 2_000..2_005 {
        assert_eq!(take(2, key)[0], 0, "{key}");
    }
    let refused = take(1, 3_000);
    assert_eq!(refused[..3], [1, 1, 0]);
    assert!((1..=86_401).contains(&refused[3]), "{refused:?}");
}

#[test]
fn at_the_bound_new_keys_are_refused() {
    let buckets = Buckets::new(1, [1, 2]);
    // Each of another identity.
    let mut number = 0;
    let mut take = |key: &str| {
        let numbers = Numbers {
            max_burst: 0,
            count: 1,
            period: 60,
        };
        let command = Throttle {
            key: key.as_bytes(),
            numbers,
            quantity: None,
        };
        number += 1;
        buckets.take(&command, &asker(number), Moment::ORIGIN)
    };
    assert_eq!(take("first"), [0, 1, 0, -1, 60]);
    assert_eq!(take("second"), [1, 1, 0, 1, 1]);
    assert_eq!(take("first"), [1, 1, 0, 60, 60], "its own state");
}

#[test]
fn a_command_is_a_flat_array_of_bulk_strings_or_a_line() {
    #[track_caller]
    fn check(bytes: &str, expected: Result<Option<&[&str]>, &str>) {
        let expected = expected.map_err(|_| expected.unwrap_err());
        let words = next_command(&mut bytes.as_bytes(), 100);
        let words = words.map(|words| {
            words.map(|words| {
                let words = words.iter().map(|word| str::from_utf8(word).unwrap());
                words.collect::<Vec<_>>()
            })
        });
        let words = words.as_ref().map(Option::as_deref);
        assert_eq!(
            words.map_err(|Malformed(problem)| *problem),
            expected,
            "{bytes:?}"
        );
    }
    check("", Ok(None));
    check("*2\r\n$1\r\na\r\n$0\r\n\r\n", Ok(Some(&["a", ""])));
    check("*2\r\n$1\r\na\r\n$0\r\n\r", Ok(None));
    check("*1\r\n$4\r\na\r\nb\r\n", Ok(Some(&["a\r\nb"])));
    check(" a  b\tc \r\n", Ok(Some(&["a", "b", "c"])));
    check("a\n", Ok(Some(&["a"])));
    check("\r\n", Ok(Some(&[])));
    check("*0\r\n", Ok(Some(&[])));
    check("*-1\r\n", Ok(Some(&[])));
    check("a b", Ok(None));
    check("*x\r\n", Err("invalid length"));
    check("*1\n", Err("invalid length"));
    check("*65\r\n", Err("invalid multibulk length"));
    check("*1\r\n*1\r\n", Err("expected '$'"));
    check("*1\r\n$-1\r\n", Err("invalid bulk length"));
    check("*1\r\n$101\r\n", Err("invalid bulk length"));
    check("*1\r\n$1\r\nabc", Err("bulk string of another length"));
    check(&"*".repeat(32), Err("too big count string"));
    check(&"a".repeat(101), Err("too big command"));
    check(
        &"*2\r\n$60\r\n".replace(
            "$60\r\n",
            &format!("$60\r\n{}\r\n", "a".repeat(60)).repeat(2),
        ),
        Err("too big command"),
    );
    check(
        &format!("{}\n", "a ".repeat(65)),
        Err("too many words in a line"),
    );
}

/// Bytes that often look like commands.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let parts = prop_oneof![
        4 => prop::sample::select(vec![
            "*1\r\n", "*5\r\n", "*-1\r\n", "$1\r\na\r\n", "$8\r\nTHROTTLE\r\n", "$4\r\nPING\r\n", "$2\r\n10\r\n",
            "$99999999\r\n", "$-1\r\n", "*2\r\n$4\r\nECHO\r\n", "PING\r\n", "HELLO 3\r\n", "CLIENT SETNAME a\r\n",
            "THROTTLE a 1 2 3\n", "THROTTLE a 9223372036854775807 1 9223372036854775807 9\n", "\r\n", "*", "$", " ",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..40),
    ];
    vec(parts, 0..30).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_have_the_same_bounded_answers(bytes in input(), cuts in vec(1..50_usize, 1..20)) {
        let whole = Core::new().answer(&mut bytes.as_slice(), Duration::ZERO);
        let (mut core, mut held, mut answers) = (Core::new(), Vec::new(), Vec::new());
        let (mut left, mut is_closed) = (bytes.as_slice(), false);
        for cut in cuts.iter().cycle() {
            let (piece, rest) = left.split_at(left.len().min(*cut));
            left = rest;
            held.extend_from_slice(piece);
            let mut rest = held.as_slice();
            let (more, closes) = core.answer(&mut rest, Duration::ZERO);
            answers.extend(more);
            is_closed = closes;
            if closes || left.is_empty() {
                break;
            }
            held = rest.to_vec();
            prop_assert!(held.len() <= BYTES_MAX);
        }
        prop_assert!(answers.len() <= bytes.len() * 100, "the answers grow with the bytes");
        prop_assert_eq!((answers, is_closed), whole);
    }

    #[test]
    fn a_written_command_is_read_as_it_was(words in vec(vec(any::<u8>(), 0..20), 1..20), rest in vec(any::<u8>(), 0..20)) {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in &words {
            bytes.extend(format!("${}\r\n", word.len()).bytes());
            bytes.extend(word);
            bytes.extend(b"\r\n");
        }
        bytes.extend(&rest);
        let mut left = bytes.as_slice();
        let read = next_command(&mut left, BYTES_MAX).unwrap().unwrap();
        let expected: Words<'_> = words.iter().map(Vec::as_slice).collect();
        prop_assert_eq!(read, expected);
        prop_assert_eq!(left, rest.as_slice());
    }

    #[test]
    fn answers_equal_those_of_the_published_algorithm(
        steps in vec((0..3_u8, 0..5_u64, 1..5_u64, 1..100_u64, 0..8_u64, 0..20_000_u64), 1..60),
    ) {
        let buckets = Buckets::new(1_000, [1, 2]);
        let mut arrivals: HashMap<u8, u128> = HashMap::new();
        let mut millis = 0_u64;
        for (key, max_burst, count, period, quantity, pause) in steps {
            millis += pause;
            // An interval of whole nanoseconds.
            let numbers = Numbers { max_burst, count, period: period * count };
            let command = Throttle { key: &[key], numbers, quantity: Some(quantity.cast_signed()) };
            let answer = buckets.take(&command, &asker(1), Moment::ORIGIN.after(Duration::from_millis(millis)));
            let expected = published(arrivals.entry(key).or_default(), numbers, quantity, millis);
            prop_assert_eq!(answer, expected);
        }
    }
}

/// The algorithm as it is published, in milliseconds: a theoretical arrival time for each key.
fn published(arrival: &mut u128, numbers: Numbers, quantity: u64, now: u64) -> Answer {
    let (now, interval) = (
        u128::from(now),
        u128::from(numbers.period * 1_000 / numbers.count),
    );
    let limit = u128::from(numbers.max_burst + 1);
    let (tolerance, increment) = (interval * limit, interval * u128::from(quantity));
    let next = (*arrival).max(now) + increment;
    let is_allowed = next <= now + tolerance;
    if is_allowed {
        *arrival = next;
    }
    let ahead = (*arrival).saturating_sub(now);
    let seconds = |millis: u128| i64::try_from(millis.div_ceil(1_000)).unwrap();
    [
        i64::from(!is_allowed),
        i64::try_from(limit).unwrap(),
        i64::try_from(tolerance.saturating_sub(ahead) / interval).unwrap(),
        if is_allowed || increment > tolerance {
            -1
        } else {
            seconds(next - now - tolerance)
        },
        seconds(ahead),
    ]
}
