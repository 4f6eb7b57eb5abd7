//! The live view on terminals of all sizes.

use doorward_engine::time::Time;

use super::*;
use crate::demo::outline::Outline;

/// The built-in trace's ten clients, half satisfied, on a screen of that size.
fn screen(width: usize, height: usize) -> String {
    let outline = Outline::new((0..10).map(|index| format!("ml-{index:03}")));
    let mut figures = DemoFigures::new(outline, 50.0, Time::ZERO);
    let server = Amounts {
        wants: 100.0,
        has: 50.0,
        granted: 40.0,
        used: 0.0,
    };
    let client = Amounts {
        wants: 10.0,
        has: 5.0,
        granted: 0.0,
        used: 4.5,
    };
    let at_first = Amounts {
        used: 0.0,
        ..client
    };
    figures.measure(&[server; 7], &[at_first; 10], Time::ZERO);
    figures.measure(&[server; 7], &[client; 10], Time::from_secs(1));
    let pages: Vec<SocketAddr> = (0..7)
        .map(|index| SocketAddr::from(([127, 0, 0, 1], 6971 + index)))
        .collect();
    let scene = Scene {
        figures: &figures,
        pages: &pages,
        trace_time: Duration::from_secs(138),
        killed: Some(1),
    };
    let lines = lines(&scene, width, height).join("\n");
    let mut parts = lines.split('\u{1b}');
    let first = parts.next().unwrap().to_owned();
    // Without colours.
    let others = parts.map(|part| part.split_once('m').unwrap().1);
    first + &others.collect::<String>()
}

#[track_caller]
fn check(screen: &str, parts: &[&str]) {
    for part in parts {
        assert!(screen.contains(part), "no {part:?} on\n{screen}");
    }
}

#[test]
fn a_usual_terminal_shows_the_whole_tree() {
    let screen = screen(80, 24);
    check(
        &screen,
        &[
            "10 clients at 4 leaves share 50 requests/s, fairly and never more",
            "trace at 138 s",
            "wanted 100.0, granted 50.0, used 45.0 of 50",
            "most used in any second 45.0 (90.0 % of the capacity)   utilisation 90.0 %",
            "root           100.0    50.0    40.0    45.0",
            "│ │ └ ml-008    10.0     5.0             4.5",
            "    └ ml-007",
            "of 50   eu killed",
            "k: kill a server   q: end",
        ],
    );
}

#[test]
fn a_wide_terminal_shows_the_ports_of_the_pages() {
    let screen = screen(120, 40);
    check(&screen, &["└ us         :6975", "    └ ml-007"]);
}

#[test]
fn no_terminal_is_too_small() {
    for (width, height) in [(1, 1), (10, 3), (30, 8), (300, 5)] {
        assert!(screen(width, height).lines().count() >= height);
    }
}
