//! Contenders that take turns, so that other load on the machine affects all of them.
//!
//! The output has the median over the rounds, and the ratio to the first contender: the median of the ratios of each
//! round.

use std::env;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// Takes of one contender before the next has its turn.
pub(crate) const TAKES: u32 = 20_000;

/// A contender: its name, and a function that does a number of takes.
pub(crate) struct Contender<'a> {
    name: &'static str,
    takes: Box<dyn FnMut(u32) + 'a>,
}

pub(crate) fn contender<'a>(name: &'static str, takes: impl FnMut(u32) + 'a) -> Contender<'a> {
    Contender {
        name,
        takes: Box::new(takes),
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Lets contenders take turns, and compares them with the first. With arguments, it runs only tables whose titles
/// contain one of them.
pub(crate) fn race(title: &str, rounds: usize, takes: u32, contenders: &mut [Contender<'_>]) {
    let mut words = env::args().skip(1).filter(|it| !it.starts_with('-'));
    let first = words.next();
    if first.is_some_and(|it| !title.contains(&it)) && !words.any(|it| title.contains(&it)) {
        return;
    }
    let mut nanos = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for (index, contender) in contenders.iter_mut().enumerate() {
            let begin = Instant::now();
            (contender.takes)(takes);
            let each = begin.elapsed().as_nanos() as f64 / f64::from(takes);
            // The first round warms up.
            if round > 0 {
                nanos[index].push(each);
            }
        }
    }
    println!("\n{title}");
    for (index, contender) in contenders.iter().enumerate() {
        let ratios = nanos[index]
            .iter()
            .zip(&nanos[0])
            .map(|(it, first)| it / first);
        let ratio = median(ratios.collect());
        let each = median(nanos[index].clone());
        println!("  {:<44} {each:>8.1} ns  {ratio:>5.2}", contender.name);
    }
}

/// Runs a number of takes in four threads at once.
pub(crate) fn four(takes: u32, take: impl Fn(usize) + Sync) {
    let ready = Barrier::new(4);
    thread::scope(|threads| {
        for thread in 0..4 {
            let (ready, take) = (&ready, &take);
            threads.spawn(move || {
                ready.wait();
                for it in 0..takes as usize / 4 {
                    take(it * 4 + thread);
                }
            });
        }
    });
}
