//! Four experiments on a service under overload, as a picture, and the throttler's promises for many seeds.
//!
//! ```sh
//! cargo bench -p doorward --bench experiments -- picture docs/overload.svg   # seconds
//! cargo bench -p doorward --bench experiments -- facts                       # a minute
//! cargo bench -p doorward --bench experiments -- shapes                      # an hour
//! cargo bench -p doorward --bench experiments -- recovery                    # a minute
//! cargo bench -p doorward --bench experiments -- day                         # five minutes
//! ```

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "an experiment may panic, prints its results, and uses a part of the tests' service"
)]

use std::error::Error;
use std::fmt::Write as _;

use doorward::overload::Config;

use crate::facts::{BAD_LOADS, BAD_PLACES, recovery};
use crate::service::{Callers, Ended, Phase, Run, critical_p99, service, work};
use crate::shapes::{Goal, Who};

#[path = "../tests/overload/facts.rs"]
mod facts;
#[path = "../tests/overload/references.rs"]
mod references;
#[path = "../tests/overload/service.rs"]
mod service;
#[path = "../tests/overload/shapes.rs"]
mod shapes;
#[path = "../tests/overload/traffic.rs"]
mod traffic;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=20;

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds `--bench`.
    let arguments = std::env::args().skip(1);
    let arguments: Vec<String> = arguments.filter(|word| word != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["picture", path] => std::fs::write(path, picture())?,
        ["facts"] => print_facts(),
        ["day"] => print_day(),
        ["shapes", words @ ..] => print_shapes(words),
        ["recovery"] => print_recovery(),
        _ => println!(
            "say `picture FILE`, `facts`, `shapes [WORD [SEEDS]]`, `recovery` or `day` after `--`"
        ),
    }
    Ok(())
}

/// Prints each figure of each shape whose name contains a word: its goal, the worst seed and the mean, and the means of
/// the best fixed limit and of the references.
fn print_shapes(words: &[&str]) {
    let (words, seeds) = match words {
        [word, seeds] => (*word, 1..=seeds.parse().unwrap()),
        [word] => (*word, SEEDS),
        _ => ("", SEEDS),
    };
    println!(
        "{:50} {:12} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "", "", "goal", "worst", "mean", "fixed", "AIMD", "Grad.2", "Vegas"
    );
    for shape in shapes::shapes() {
        if !shape.name.contains(words) {
            continue;
        }
        let play =
            |who| -> Vec<Vec<f64>> { seeds.clone().map(|seed| shape.figures(who, seed)).collect() };
        let ours = play(Who::Doorward);
        let fixed: Vec<_> = shape
            .fixed
            .iter()
            .map(|limit| play(Who::Fixed(*limit)))
            .collect();
        let others = [Who::Aimd, Who::Gradient2, Who::Vegas].map(play);
        for (place, (figure, _, goal)) in shape.figures.iter().enumerate() {
            let mean = |runs: &Vec<Vec<f64>>| {
                runs.iter().map(|it| it[place]).sum::<f64>() / runs.len() as f64
            };
            let all = ours.iter().map(|it| it[place]);
            let best = fixed.iter().map(mean);
            let (text, worst, best, is_met) = match goal {
                Goal::AtLeast(goal) => {
                    let worst = all.fold(f64::INFINITY, f64::min);
                    (
                        format!(">={goal}"),
                        worst,
                        best.fold(0.0, f64::max),
                        worst >= *goal,
                    )
                }
                Goal::AtMost(goal) => {
                    let worst = all.fold(0.0, f64::max);
                    (
                        format!("<={goal}"),
                        worst,
                        best.fold(f64::INFINITY, f64::min),
                        worst <= *goal,
                    )
                }
            };
            println!(
                "{:50} {figure:12} {text:>8} {worst:8.3} {:8.3} {best:8.3} {:8.3} {:8.3} {:8.3}{}",
                shape.name,
                mean(&ours),
                mean(&others[0]),
                mean(&others[1]),
                mean(&others[2]),
                if is_met { "" } else { " MISSED" }
            );
        }
    }
}

/// Prints the worst and the mean of a figure over the seeds.
///
/// # Panics
///
/// If a seed misses the goal.
fn print(name: &str, goal: Goal, figure: impl Fn(u64) -> f64) {
    let figures: Vec<f64> = SEEDS.map(figure).collect();
    let mean = figures.iter().sum::<f64>() / figures.len() as f64;
    let mut figures = figures.into_iter();
    let (text, worst, is_met) = match goal {
        Goal::AtLeast(goal) => {
            let worst = figures.by_ref().fold(f64::INFINITY, f64::min);
            (format!(">= {goal}"), worst, worst >= goal)
        }
        Goal::AtMost(goal) => {
            let worst = figures.by_ref().fold(0.0, f64::max);
            (format!("<= {goal}"), worst, worst <= goal)
        }
    };
    println!("{name:62} {text:>8} {worst:8.3} {mean:8.3}");
    assert!(is_met, "{name}: a seed misses the goal");
}

fn print_facts() {
    println!(
        "{:62} {:>8} {:>8} {:>8}",
        "seeds 1 to 20", "goal", "worst", "mean"
    );
    let quarters: Vec<_> = SEEDS.map(facts::quarter_critical).collect();
    let quarter = |seed: u64| &quarters[seed as usize - 1];
    let critical = |seed| quarter(seed).0.critical;
    print(
        "3 x, a quarter critical: part of critical work served",
        Goal::AtLeast(0.95),
        critical,
    );
    let slower = |seed| quarter(seed).0.p99 / quarter(seed).1;
    print(
        "  its p99, as a multiple of that at half the capacity",
        Goal::AtMost(2.0),
        slower,
    );
    let half = |seed| facts::half_critical(seed).critical_of_capacity;
    print(
        "3 x, half critical: part of capacity for critical work",
        Goal::AtLeast(0.95),
        half,
    );
    let flood = |seed| facts::flood(seed).critical;
    print(
        "12 x for a minute: part of critical work served",
        Goal::AtLeast(0.99),
        flood,
    );
    let best = |seed| {
        let fixed = (6..=12).map(|limit| facts::goodput(Some(limit), seed));
        facts::goodput(None, seed) / fixed.fold(0.0, f64::max)
    };
    print(
        "4 x: goodput, as a part of that of the best fixed limit",
        Goal::AtLeast(0.95),
        best,
    );
    let stall = |seed| {
        let (before, after) = facts::after_stall(seed);
        after[1] / before
    };
    print(
        "1 s to 2 s after a stall: goodput, as a part of before",
        Goal::AtLeast(0.9),
        stall,
    );
    let users = |seed| {
        let users = facts::users(seed);
        let clear = users.iter().filter(|part| !(0.2..0.8).contains(*part));
        clear.count() as f64 / users.len() as f64
    };
    print(
        "2 x: users that have over 80 % of their requests, or under 20 %",
        Goal::AtLeast(0.65),
        users,
    );
}

fn print_day() {
    print(
        "24 h at 1.1 x: largest change of an hour's median limit",
        Goal::AtMost(0.2),
        |seed| {
            let hours = facts::hourly_limits(24, seed);
            let changes = hours.iter().map(|hour| (hour / hours[0] - 1.0).abs());
            changes.fold(0.0, f64::max)
        },
    );
}

/// Prints how many services do less than 90 % of what they can, 10 and 20 seconds after a bad time.
fn print_recovery() {
    let callers = [
        Callers::TellDeadline,
        Callers::Wait,
        Callers::GiveUp,
        Callers::GiveUpAndWorkEnds,
    ];
    let (mut runs, mut late, mut later) = (0, 0, 0);
    for seed in SEEDS {
        for bad in BAD_LOADS
            .into_iter()
            .flat_map(|load| BAD_PLACES.map(|places| (load, places)))
        {
            for callers in callers {
                for load in [0.4, 1.2, 2.5] {
                    let (first, then) = recovery(bad, load, callers, seed);
                    runs += 1;
                    late += u32::from(first < 0.9);
                    later += u32::from(then < 0.9);
                }
            }
        }
    }
    println!("of {runs} runs, {late} are below 90 % from 10 s on, and {later} from 20 s on");
}

/// Seconds of the load in the picture: before, during and after overload.
const BEFORE: f64 = 15.0;
const DURING: f64 = 30.0;
const AFTER: f64 = 15.0;

/// Size of one diagram, and of its margins.
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 150.0;
const MARGIN: f64 = 46.0;

/// Returns the picture of the four experiments.
fn picture() -> String {
    let plain = |limit| Config {
        fixed_limit: Some(limit),
        waiting_max: 0,
        ..Config::default()
    };
    let experiments = [
        ("no throttler", plain(u32::MAX)),
        ("a fixed limit that is right: 8", plain(8)),
        ("a fixed limit twice too high: 16", plain(16)),
        ("Doorward: nothing configured", Config::default()),
    ];
    let (width, height) = (
        2.0 * (WIDTH + MARGIN) + 20.0,
        2.0 * (HEIGHT + 2.0 * MARGIN) + 30.0,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (place, (name, config)) in experiments.into_iter().enumerate() {
        let x = MARGIN + (place % 2) as f64 * (WIDTH + MARGIN);
        let y = MARGIN + (place / 2) as f64 * (HEIGHT + 2.0 * MARGIN);
        diagram(&mut svg, name, config, (x, y));
    }
    let y = height - 12.0;
    let _ = write!(
        svg,
        "<rect x=\"{MARGIN}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"#1f5fa8\"/>\
         <text x=\"64\" y=\"{y}\">critical work served in time</text>\
         <rect x=\"240\" y=\"{}\" width=\"12\" height=\"12\" fill=\"#a9c8ea\"/>\
         <text x=\"258\" y=\"{y}\">other work served in time</text>\
         <text x=\"430\" y=\"{y}\">dashed: capacity; dotted: critical work that arrives</text>\n</svg>\n",
        y - 11.0,
        y - 11.0,
    );
    svg
}

/// Draws one experiment.
fn diagram(svg: &mut String, name: &str, config: Config, (left, top): (f64, f64)) {
    let phases = [
        Phase::new(BEFORE, 0.5, 0.25),
        Phase::new(DURING, 4.0, 0.15),
        Phase::new(AFTER, 0.5, 0.25),
    ];
    let service = service();
    let run = Run::new(&service, config, 1).play(&phases);
    let end = BEFORE + DURING + AFTER;
    let (from, to) = (BEFORE + 5.0, BEFORE + DURING - 1.0);
    let part = work(&run, from, to, |it| it.is_critical() && it.is_good())
        / work(&run, from, to, Ended::is_critical);
    let p99 = critical_p99(&run, from, to);
    let p99 = if p99.is_finite() {
        format!("{:.0} ms", 1e3 * p99)
    } else {
        "over a minute".to_owned()
    };
    let x = |second: f64| left + second / end * WIDTH;
    let y = |part: f64| top + HEIGHT * (1.0 - part / 1.2);
    let area = |is| area(&run, end, is, x, y);
    let line = |svg: &mut String, from: (f64, f64), to: (f64, f64), style: &str| {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            svg,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" {style}/>"
        );
    };
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{name}</text>\n\
         <text x=\"{left}\" y=\"{}\">under overload: {:.0} % of critical work in time, \
         p99 {p99}</text>\n\
         <polygon fill=\"#a9c8ea\" points=\"{}\"/>\n<polygon fill=\"#1f5fa8\" points=\"{}\"/>",
        top - 10.0,
        top + HEIGHT + 32.0,
        100.0 * part,
        area(|_| true),
        area(Ended::is_critical),
    );
    line(
        svg,
        (x(0.0), y(1.0)),
        (x(end), y(1.0)),
        "stroke=\"black\" stroke-dasharray=\"6 3\"",
    );
    let critical = [
        (0.0, BEFORE, 0.125),
        (BEFORE, BEFORE + DURING, 0.6),
        (BEFORE + DURING, end, 0.125),
    ];
    for (from, to, part) in critical {
        let dotted = "stroke=\"#c03030\" stroke-width=\"2\" stroke-dasharray=\"2 3\"";
        line(svg, (x(from), y(part)), (x(to), y(part)), dotted);
    }
    line(svg, (x(0.0), y(0.0)), (x(end), y(0.0)), "stroke=\"black\"");
    for second in [0.0, BEFORE, BEFORE + DURING, end] {
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\">{second} s</text>",
            x(second),
            y(0.0) + 15.0
        );
    }
}

/// Returns the points of the work of requests that were served in time and match, in each second.
fn area(
    run: &Run,
    end: f64,
    is: fn(&Ended) -> bool,
    x: impl Fn(f64) -> f64,
    y: impl Fn(f64) -> f64,
) -> String {
    let mut points = format!("{},{} ", x(0.0), y(0.0));
    for second in 0..end as u32 {
        let from = f64::from(second);
        let good = run.ended.iter().filter(|it| it.is_good() && is(it));
        let good = good.filter(|it| (from..from + 1.0).contains(&it.ended_at));
        let part = good.map(|it| it.cost).sum::<f64>() / service().cores;
        let _ = write!(points, "{:.1},{:.1} ", x(from + 0.5), y(part));
    }
    points + &format!("{},{}", x(end), y(0.0))
}
