//! Table of real and simulated figures, and their agreement.

use doorward_simulator::recording::Figures;

use crate::Outcome;

/// Largest allowed difference, in percentage points.
const WITHIN: f64 = 2.0;

/// Relative error of a sum because of rounding, at most.
const ROUNDING: f64 = 1e-9;

/// A figure, as a part of 1.
type Figure = fn(&Figures) -> f64;

/// Figures to show in percent, and whether both must be about the same.
const ROWS: [(&str, Figure, bool); 6] = [
    ("utilisation", |it| it.utilisation, true),
    ("distance from ideal", |it| it.unfairness, true),
    ("demand met", |it| it.demand_met, false),
    ("clients short", |it| it.clients_short, false),
    ("demand above capacity", |it| it.scarce, false),
    ("peak of capacity", |it| it.peak_of_capacity, false),
];

/// Prints the results of all courses. Returns whether real runs and simulations agree.
pub(crate) fn print(outcomes: &[Outcome]) -> bool {
    let mut problems = Vec::new();
    println!(
        "\n{:<26}{:>10}{:>12}{:>20}",
        "", "real", "simulated", "real - simulated"
    );
    for outcome in outcomes {
        println!("{}", outcome.name);
        for (name, figure, is_judged) in ROWS {
            let [real, simulated] =
                [&outcome.real, &outcome.simulated].map(|it| figure(it) * 100.0);
            let off = real - simulated;
            println!("  {name:<24}{real:>8.2} %{simulated:>10.2} %{off:>+13.2} points");
            if is_judged && off.abs() > WITHIN {
                problems.push(format!("{}: {name} differs", outcome.name));
            }
        }
        for (figures, which) in [(&outcome.real, "real"), (&outcome.simulated, "simulated")] {
            if figures.peak_of_capacity > 1.0 + ROUNDING {
                problems.push(format!("{}: more than there is, {which}", outcome.name));
            }
        }
    }
    for problem in &problems {
        println!("FAILED: {problem}");
    }
    if problems.is_empty() {
        println!("Utilisation and distance from the ideal agree within {WITHIN} points.");
    }
    problems.is_empty()
}
