//! Settings of the resource in a random world, and probabilities of faults.

use std::time::Duration;

use doorward_engine::templates::{AlgorithmKind, Shrink, TemplateSpec, Templates};

use super::chance::Chance;

/// Probabilities of faults, per message or per step.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub loss: f64,
    pub duplication: f64,
    pub delay: Duration,
    /// Per step: a change from outside.
    pub upheaval: f64,
}

impl Faults {
    pub const NONE: Self = Self {
        loss: 0.0,
        duplication: 0.0,
        delay: Duration::from_millis(2),
        upheaval: 0.0,
    };

    pub fn some(chance: &mut Chance) -> Self {
        Self {
            loss: chance.one_of(&[0.0, 0.05, 0.3]),
            duplication: chance.one_of(&[0.0, 0.05, 0.3]),
            delay: chance.one_of(&[
                Duration::from_millis(5),
                Duration::from_millis(800),
                Duration::from_secs(7),
            ]),
            upheaval: chance.one_of(&[0.02, 0.1, 0.4]),
        }
    }
}

/// Present settings of the resource.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub kind: AlgorithmKind,
    pub capacity: f64,
    pub lease: Duration,
    pub refresh: Duration,
    pub shrink: Shrink,
    pub exists: bool,
}

impl Setup {
    /// Whether the algorithm promises Σ uses ≤ capacity.
    pub fn promises(&self) -> bool {
        self.kind.promises_total() && self.shrink == Shrink::Acknowledged
    }

    /// Returns the present capacity.
    pub fn capacity(&self) -> f64 {
        if self.exists { self.capacity } else { 0.0 }
    }

    pub fn templates(&self) -> Templates {
        if !self.exists {
            return Templates::default();
        }
        let shrink = match self.shrink {
            Shrink::Acknowledged => "acknowledged",
            Shrink::Immediate => "immediate",
        };
        let mut parameters = vec![("shrink".to_owned(), Some(shrink.to_owned()))];
        if self.kind == AlgorithmKind::PriorityBands {
            parameters.push(("min_share.0".to_owned(), Some("0.25".to_owned())));
        }
        Templates::parse(&[TemplateSpec {
            identifier_glob: Some("r".to_owned()),
            capacity: Some(self.capacity),
            kind: Some(self.kind),
            lease_length: Some(self.lease),
            refresh_interval: Some(self.refresh),
            parameters,
            ..TemplateSpec::default()
        }])
        .unwrap()
    }
}
