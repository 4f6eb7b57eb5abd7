//! The picture of the guide: all algorithms under the same traffic, side by side.
//!
//! It covers three seconds, with a twentieth of a second per column. For each algorithm it has the number of requests
//! that pass (`·` if all are refused) and the amount left.

use std::fmt::Write as _;
use std::time::Duration;

use doorward_limits::{
    Algorithm, Ban, Decision, FixedWindow, LeakyQueue, Limiter, Moment, Rate, SlidingCounter,
    SlidingLog, TokenBucket,
};

/// The pictures in `client/limits/src/side_by_side.txt` and `docs/limits.md` are what this draws.
#[test]
fn the_pictures_show_what_the_algorithms_do() {
    let drawn = text().unwrap();
    let guide = include_str!("../../src/side_by_side.txt");
    assert_eq!(guide, drawn, "write this:\n{drawn}");
    let page = include_str!("../../../../docs/limits.md");
    assert!(page.contains(&drawn), "write this:\n{drawn}");
}

/// Number of columns, and the time of each.
const COLUMNS: usize = 60;
const COLUMN: Duration = Duration::from_millis(50);

/// Returns the number of requests in each column: few, then a burst, then twice the rate, a rest, and a burst again.
fn traffic() -> Vec<u64> {
    let mut traffic = vec![0; COLUMNS];
    let few = (0..16).step_by(4).map(|at| (at, 1));
    let burst = [(17, 16)];
    let twice = (20..40).map(|at| (at, 1));
    let again = [(52, 16), (56, 4), (59, 4)];
    for (at, count) in few.chain(burst).chain(twice).chain(again) {
        if let Some(column) = traffic.get_mut(at) {
            *column += count;
        }
    }
    traffic
}

/// Results of one algorithm.
struct Row {
    name: &'static str,
    passed: Vec<u64>,
    /// Part of the limit that is left at the end of each column.
    left: Vec<f64>,
}

/// Returns the start of a column.
fn at(column: usize) -> Moment {
    let columns = u32::try_from(column).unwrap_or(u32::MAX);
    Moment::ORIGIN.after(COLUMN.saturating_mul(columns))
}

fn row<A: Algorithm>(name: &'static str, algorithm: A) -> Row {
    let limit = algorithm.limit().as_f64();
    let mut limiter = Limiter::new(algorithm);
    let (mut passed, mut left) = (vec![0; COLUMNS], Vec::new());
    for (column, count) in traffic().into_iter().enumerate() {
        for _ in 0..count {
            if let Decision::Allowed(allowed) = limiter.take(1, at(column)) {
                // A delayed request passes in a later column.
                let later = allowed.delay.as_nanos().div_ceil(COLUMN.as_nanos());
                let later = column + usize::try_from(later).unwrap_or(COLUMNS);
                if let Some(passed) = passed.get_mut(later) {
                    *passed += 1;
                }
            }
        }
        left.push(limiter.standing(at(column)).remaining.as_f64() / limit);
    }
    Row { name, passed, left }
}

fn rows() -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let rate: Rate = "10/s".parse()?;
    let wait = Duration::from_millis(500);
    Ok(vec![
        row("token bucket", TokenBucket::new(10, rate)?),
        row("leaky queue", LeakyQueue::new(10, rate, wait)?),
        row("fixed window", FixedWindow::new(rate)),
        row("sliding log", SlidingLog::new(rate)),
        row("sliding counter", SlidingCounter::new(rate)),
        row("ban for 0.5 s", Ban::new(rate, Duration::from_millis(500))),
    ])
}

fn count(passed: u64, asked: u64) -> char {
    match (passed, asked) {
        (0, 0) => ' ',
        (0, _) => '·',
        (passed, _) => u32::try_from(passed)
            .ok()
            .and_then(|it| char::from_digit(it, 36))
            .unwrap_or('+'),
    }
}

fn bar(left: f64) -> char {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let steps = (1..BARS.len()).filter(|step| left * 8.0 >= *step as f64);
    BARS.get(steps.count()).copied().unwrap_or(' ')
}

/// Returns the picture as text.
fn text() -> Result<String, Box<dyn std::error::Error>> {
    let traffic = traffic();
    let mut text = String::new();
    let seconds = "0 s                 1 s                 2 s                 3 s";
    writeln!(text, "{:16} {seconds}", "10/s")?;
    let asked: String = traffic.iter().map(|it| count(*it, 0)).collect();
    writeln!(text, "{:16} {}", "asked", asked.trim_end())?;
    for row in rows()? {
        let passed = row.passed.iter().zip(&traffic);
        let passed: String = passed
            .map(|(passed, asked)| count(*passed, *asked))
            .collect();
        let sum: u64 = row.passed.iter().sum();
        writeln!(text, "{:16} {passed:60} {sum} pass", row.name)?;
        let left: String = row.left.iter().map(|it| bar(*it)).collect();
        writeln!(text, "{:>16} {}", "left", left.trim_end())?;
    }
    Ok(text)
}
