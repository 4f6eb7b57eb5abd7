//! The comparison in a terminal.

use super::*;
use crate::report::plausible;

#[test]
fn every_figure_says_which_is_better() {
    let (one, mut other) = (plausible::small(), plausible::small());
    other.seed = 8;
    other.scenario = "simpler".to_owned();
    other.resources[0].figures.unfairness = 0.05;
    other.resources[0].figures.convergence_max_s = 70.0;
    other.resources[0].figures.demand_met = 0.7042;
    other.resources[0].client_figures[0].got = 3.5;
    other.resources[0].figures.waits.gap = 0.0025;
    other.verdicts[1].value = 0.05;
    other.verdicts[1].holds = true;
    let (a, b) = (
        Side {
            name: "before",
            recording: &one,
        },
        Side {
            name: "after",
            recording: &other,
        },
    );
    let mut out = Vec::new();
    write(&mut out, &a, &b, Palette { on: false }).unwrap();
    let expected = "  A  before: small & <simple>, seed 7. 1 of 3 limits is violated.
  B  after: simpler, seed 8. All 3 limits hold.

What differs from the start:
  -  scenario: A small & <simple>, B simpler
  -  seed: A 7, B 8

B holds 1 limit that A violates. Clients get 79.2 % of what they want in A,
70.4 % in B. A is better in 2 figures, B in 1.

  requests                       A           B         B - A  better
  utilisation               95.5 %      95.5 %             =
  demand met                79.2 %      70.4 %  -8.75 points  A
  clients short               75 %        75 %             =
  demand above capacity      100 %       100 %             =
  granted of capacity       95.5 %      95.5 %             =
  peak of capacity           100 %       100 %             =
  peak with fallback         120 %       120 %             =
  peak in safe mode           20 %        20 %             =
  overshoot for                0 s         0 s             =
  unfairness                12.5 %         5 %  -7.50 points  B
  not at rest                 25 %        25 %             =
  convergence, longest         8 s  1 min 10 s    +1 min 2 s  A
  convergence, mean            8 s         8 s             =
  demand changes                 1           1             =
  starvation, longest        1.5 s       1.5 s             =
  oscillation            0.25 /min   0.25 /min             =
  comeback, longest          2.5 s       2.5 s             =
  comeback, median           1.2 s       1.2 s             =
  not back                       0           0             =

  points lost to         A       B         B - A
  client's gap        0.50    0.25  -0.25 points
  answer under way  < 0.01  < 0.01             =
  others to shrink    1.50    1.50             =
  no server           2.50    2.50             =

  limits                      A              B          limit  better
  overshoot          0 %, holds     0 %, holds    at most 0 %
  fairness     12.5 %, VIOLATED     5 %, holds   at most 10 %  B
  utilisation     95.5 %, holds  95.5 %, holds  at least 90 %

  clients get  of wanted     A     B       B - A
  b'\"                  7  65 %  50 %  -15 points
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
