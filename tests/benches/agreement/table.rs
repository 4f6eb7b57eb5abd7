//! Table of real and simulated figures, and their agreement.

use doorward_simulator::recording::Figures;

use crate::Outcome;

/// Relative error of a sum because of rounding, at most.
const ROUNDING: f64 = 1e-9;

/// A figure, in percent.
struct Row {
    name: &'static str,
    of: fn(&Figures) -> f64,
    /// Whether both must be about the same.
    is_judged: bool,
}

const ROWS: [Row; 6] = [
    Row {
        name: "utilisation",
        of: |figures| figures.utilisation,
        is_judged: true,
    },
    Row {
        name: "distance from ideal",
        of: |figures| figures.unfairness,
        is_judged: true,
    },
    Row {
        name: "demand met",
        of: |figures| figures.demand_met,
        is_judged: false,
    },
    Row {
        name: "clients short",
        of: |figures| figures.clients_short,
        is_judged: false,
    },
    Row {
        name: "demand above capacity",
        of: |figures| figures.scarce,
        is_judged: false,
    },
    Row {
        name: "peak of capacity",
        of: |figures| figures.peak_of_capacity,
        is_judged: false,
    },
];

/// Prints the results of all courses. Returns whether real runs and simulations agree.
pub(crate) fn print(outcomes: &[Outcome], within: f64) -> bool {
    let mut problems = Vec::new();
    println!(
        "\n{:<26}{:>10}{:>12}{:>20}",
        "", "real", "simulated", "real - simulated"
    );
    for outcome in outcomes {
        println!("{}", outcome.name);
        for row in &ROWS {
            let [real, simulated] =
                [&outcome.real, &outcome.simulated].map(|it| (row.of)(it) * 100.0);
            let off = real - simulated;
            println!(
                "  {:<24}{:>8.2} %{:>10.2} %{:>+13.2} points",
                row.name, real, simulated, off
            );
            if row.is_judged && off.abs() > within {
                problems.push(format!("{}: {} differs", outcome.name, row.name));
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
        println!("Utilisation and distance from the ideal agree within {within} points.");
    }
    problems.is_empty()
}
