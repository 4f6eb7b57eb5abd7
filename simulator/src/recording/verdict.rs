//! What a checker found, and which checkers there are.

use serde::{Deserialize, Serialize};

/// A checker, by the promise that it watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Checker {
    /// Nobody can use more than there is.
    #[serde(rename = "overshoot")]
    Overshoot,
    /// What is used below a node is no more than its parent has reserved for it, at every level of the tree.
    #[serde(rename = "nesting")]
    Nesting,
    /// On average clients have what the ideal would give them.
    #[serde(rename = "fairness")]
    Fairness,
    /// What can be used is used.
    #[serde(rename = "utilisation")]
    Utilisation,
    /// Soon after a change of demand or capacity everybody has its share.
    #[serde(rename = "convergence")]
    Convergence,
    /// Who wants something has something, if there is something for it.
    #[serde(rename = "starvation")]
    Starvation,
    /// A grant does not turn up and down while nobody's demand changes.
    #[serde(rename = "oscillation")]
    Oscillation,
    /// Nobody decides but the master.
    #[serde(rename = "mastership")]
    Mastership,
    /// At the times at which everybody must have its share, everybody has it.
    #[serde(rename = "settled fairness", alias = "rest")]
    SettledFairness,
    /// A client without a lease that can reach its server again soon has one.
    #[serde(rename = "comeback")]
    Comeback,
    /// Whoever lost its server has a lease at the end.
    #[serde(rename = "not back")]
    NotBack,
    /// What all may use in safe mode fits together.
    #[serde(rename = "safe use")]
    SafeUse,
    /// Whatever goes wrong, a client does not ask all the time.
    #[serde(rename = "requests")]
    Requests,
}

/// On which side of its limit a value has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSide {
    /// Not above it.
    AtMost,
    /// Not below it.
    AtLeast,
}

impl Checker {
    /// All of them, in the order of their verdicts.
    pub const ALL: [Self; 13] = [
        Self::Overshoot,
        Self::Nesting,
        Self::Fairness,
        Self::Utilisation,
        Self::Convergence,
        Self::Starvation,
        Self::Oscillation,
        Self::Mastership,
        Self::SettledFairness,
        Self::Comeback,
        Self::NotBack,
        Self::SafeUse,
        Self::Requests,
    ];

    /// As recordings and reports name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overshoot => "overshoot",
            Self::Nesting => "nesting",
            Self::Fairness => "fairness",
            Self::Utilisation => "utilisation",
            Self::Convergence => "convergence",
            Self::Starvation => "starvation",
            Self::Oscillation => "oscillation",
            Self::Mastership => "mastership",
            Self::SettledFairness => "settled fairness",
            Self::Comeback => "comeback",
            Self::NotBack => "not back",
            Self::SafeUse => "safe use",
            Self::Requests => "requests",
        }
    }

    /// On which side of its limit what it finds has to be.
    pub const fn bound(self) -> LimitSide {
        match self {
            Self::Utilisation => LimitSide::AtLeast,
            _ => LimitSide::AtMost,
        }
    }
}

impl LimitSide {
    /// Whether a value keeps to a limit.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::AtMost => value <= limit,
            Self::AtLeast => value >= limit,
        }
    }
}

/// What a checker found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Which. The first seven are in every recording, the others where a limit asks for them or there is
    /// something to report.
    pub checker: Checker,
    /// Of which resource.
    pub resource: String,
    /// What was found, in the unit of the limit.
    pub value: f64,
    /// What was set. Absent: it is not judged.
    pub limit: Option<f64>,
    /// Whether the limit holds.
    pub holds: bool,
    /// When it was worst.
    pub at_s: Option<f64>,
    /// For people.
    pub detail: String,
}

impl Verdict {
    /// Whether it breaks a limit that is set.
    pub fn is_broken(&self) -> bool {
        self.limit.is_some() && !self.holds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checker_is_written_by_its_name() {
        for checker in Checker::ALL {
            let text = serde_json::to_string(&checker).unwrap();
            assert_eq!(text, format!("\"{}\"", checker.as_str()));
            assert_eq!(serde_json::from_str::<Checker>(&text).unwrap(), checker);
        }
    }

    #[test]
    fn only_utilisation_has_to_be_at_least_its_limit() {
        for checker in Checker::ALL {
            let is_least = checker.bound() == LimitSide::AtLeast;
            assert_eq!(is_least, checker == Checker::Utilisation);
            assert!(checker.bound().holds(0.5, 0.5));
            assert_eq!(checker.bound().holds(0.6, 0.5), is_least);
        }
    }
}
