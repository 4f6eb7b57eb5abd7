//! The summary in a terminal.

use super::*;
use crate::report::plausible;

fn written(recording: &Recording, on: bool) -> String {
    let mut out = Vec::new();
    write(&mut out, recording, Palette { on }).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_summary_says_what_was_run_and_how_it_went() {
    let expected = r#"small & <simple>
  One server, two clients; somebody's "test".
  1 node, 2 clients, 1 resource, 1 min, seed 7
  trace 0123456789abcdef

1 of 3 limits is violated.
  At no instant was more granted than there is.
  Clients got 79.2 % of what they wanted; together they wanted more than there
  is for 100 % of the time.
  Averages are taken from 0:20 on.

  checked      resource   found  limit
  fairness     requests  12.5 %  at most 10 %   VIOLATED at 0:40
  overshoot    requests     0 %  at most 0 %    holds
  utilisation  requests  95.5 %  at least 90 %  holds
  starvation   requests   1.5 s  none           not judged

  fairness of requests: client "a" had 2 of 5 for most of a minute after node
  <one> was killed

  figures                 requests
  utilisation               95.5 %
  demand met                79.2 %
  clients short               75 %
  demand above capacity      100 %
  granted of capacity       95.5 %
  peak of capacity           100 %
  peak with fallback         120 %
  peak in safe mode           20 %
  overshoot for                0 s
  unfairness                12.5 %
  not at rest                 25 %
  convergence, longest         8 s
  convergence, mean            8 s
  demand changes                 1
  starvation, longest        1.5 s
  oscillation            0.25 /min
  comeback, longest          2.5 s
  comeback, median           1.2 s
  not back                       0

  utilisation lost to, requests  points
  client's gap                     0.50
  answer under way               < 0.01
  others to shrink                 1.50
  no server                        2.50

  most missing, requests  wanted   got  of it  ideally  short for
  b'"                          7  4.55   65 %   71.4 %      100 %
  a                            5  4.55   91 %    100 %       50 %

  happened: 1 kill
  done: 1,234 refreshes answered, 2,500 messages (25 lost, 1 %), 5,000 events,
  at most 40 requests in a second, at <one> at 0:43
"#;
    let text = written(&plausible::small(), false);
    assert_eq!(text, expected);
}

#[test]
fn eighty_columns_are_enough() {
    let text = written(&plausible::day(), false);
    for line in text.lines() {
        assert!(width(line) <= WIDTH, "{line}");
        assert_eq!(line, line.trim_end());
    }
}

#[test]
fn a_run_of_nothing_is_summed_up_too() {
    let text = written(&Recording::default(), false);
    assert!(text.contains("Nothing was judged"), "{text}");
    assert!(text.contains("Nothing was measured"), "{text}");
    assert!(
        text.contains("0 nodes, 0 clients, 0 resources, 0 s"),
        "{text}"
    );
}

#[test]
fn only_a_terminal_is_coloured() {
    assert!(!written(&plausible::small(), false).contains('\u{1b}'));
    // Dark red, as tables have it.
    assert!(written(&plausible::small(), true).contains("\u{1b}[38;5;1m"));
}
