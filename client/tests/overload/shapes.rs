//! Shapes of traffic and of services that adaptive limits are known to get wrong, each with a figure and its goal.
//!
//! `cargo bench -p doorward --bench experiments -- shapes` plays them for the seeds 1 to 20, beside
//! the references and the best fixed limit.

use doorward::overload::Config;

use crate::references::Reference;
use crate::service::{
    Callers, Control, Ended, Operation, Phase, Run, Service, critical_p99, service, work,
};

/// Value that a figure of each seed must reach, or must not exceed.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

/// A service with a load, and what is measured.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) service: Service,
    pub(crate) phases: Vec<Phase>,
    /// Beginning and end of the measured span, in seconds.
    pub(crate) span: (f64, f64),
    pub(crate) figures: Vec<(&'static str, Figure, Goal)>,
    /// Fixed limits of which the best is compared with.
    pub(crate) fixed: &'static [u32],
}

/// A measure.
#[derive(Clone, Copy)]
pub(crate) enum Figure {
    /// Work that was of use, of what the cores could do in the span, or of what arrived if that is less.
    Goodput,
    /// Critical work that was of use, of that which arrived.
    Critical,
    /// Milliseconds that 99 of 100 critical requests are below.
    CriticalP99,
    /// Requests that were refused.
    Refused,
    /// Requests that were of use.
    Good,
}

/// Limit that a shape is played with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Who {
    Doorward,
    Fixed(u32),
    Aimd,
    Gradient2,
    Vegas,
}

impl Shape {
    /// Plays the shape, and returns its figures.
    pub(crate) fn figures(&self, who: Who, seed: u64) -> Vec<f64> {
        let run = self.run(who, seed);
        let figures = self.figures.iter();
        figures
            .map(|(_, figure, _)| self.figure(*figure, &run))
            .collect()
    }

    pub(crate) fn run(&self, who: Who, seed: u64) -> Run {
        let throttler = |fixed_limit| {
            let config = Config {
                fixed_limit,
                ..Config::default()
            };
            Control::Throttler(Box::new(doorward::overload::Throttler::new(config)))
        };
        let control = match who {
            Who::Doorward => throttler(None),
            Who::Fixed(limit) => throttler(Some(limit)),
            Who::Aimd => Control::Reference(Reference::aimd()),
            Who::Gradient2 => Control::Reference(Reference::gradient2()),
            Who::Vegas => Control::Reference(Reference::vegas()),
        };
        Run::with(&self.service, control, seed).play(&self.phases)
    }

    fn figure(&self, figure: Figure, run: &Run) -> f64 {
        let (from, to) = self.span;
        let share = |is: fn(&Ended) -> bool| {
            let came = run
                .ended
                .iter()
                .filter(|it| (from..to).contains(&it.came_at));
            let (all, matching) = came.fold((0.0, 0.0), |(all, matching), it| {
                (all + 1.0, matching + f64::from(u8::from(is(it))))
            });
            matching / f64::max(all, 1.0)
        };
        match figure {
            Figure::Goodput => {
                let good = run.ended.iter().filter(|it| it.is_good());
                let good = good.filter(|it| (from..to).contains(&it.ended_at));
                let good: f64 = good.map(|it| it.cost).sum();
                good / self.capacity().min(work(run, from, to, |_| true))
            }
            Figure::Critical => {
                let good = work(run, from, to, |it| it.is_critical() && it.is_good());
                good / work(run, from, to, Ended::is_critical)
            }
            Figure::CriticalP99 => 1e3 * critical_p99(run, from, to),
            Figure::Refused => share(Ended::is_refused),
            Figure::Good => share(Ended::is_good),
        }
    }

    /// Returns the work that the cores can do in the span.
    fn capacity(&self) -> f64 {
        let (mut at, mut capacity) = (0.0, 0.0);
        for phase in &self.phases {
            let end = at + phase.seconds;
            let seconds = (end.min(self.span.1) - f64::max(at, self.span.0)).max(0.0);
            capacity += seconds * phase.cores * self.service.cores;
            at = end;
        }
        capacity
    }
}

/// Returns a service that only waits.
fn waits(seconds: f64, deviation: f64) -> Service {
    Service {
        cores: 64.0,
        operations: vec![Operation {
            wait: seconds,
            ..Operation::new(0.000_1, 1.0)
        }],
        deviation,
        deadline: 10.0 * seconds + 1.0,
        callers: Callers::Wait,
        ..service()
    }
}

/// Returns the load of a service that only waits, for requests a second.
fn rate(per_second: f64) -> f64 {
    per_second * 0.000_1 / 64.0
}

/// Returns a service with 100 places of 100 ms.
pub(crate) fn places() -> Service {
    Service {
        cores: 100.0,
        has_places: true,
        operations: vec![Operation::new(0.1, 1.0)],
        deviation: 0.2,
        ..service()
    }
}

/// Returns all shapes.
#[expect(clippy::too_many_lines, reason = "a list of shapes")]
pub(crate) fn shapes() -> Vec<Shape> {
    use Figure::{Critical, CriticalP99, Good, Goodput, Refused};
    use Goal::{AtLeast, AtMost};
    let mut shapes = Vec::new();
    // Slower than the deadline.
    for (name, callers) in [
        ("fewer places, callers tell 1 s", Callers::TellDeadline),
        ("fewer places, callers wait", Callers::Wait),
        ("fewer places, callers give up", Callers::GiveUp),
        (
            "fewer places, work ends with its caller",
            Callers::GiveUpAndWorkEnds,
        ),
    ] {
        for (left, label) in [
            (25.0, "25 left"),
            (12.0, "12 left"),
            (9.0, "9 left"),
            (6.0, "6 left"),
            (3.0, "3 left"),
        ] {
            let load = Phase::new(40.0, 1.5, 0.25);
            let few = Phase {
                seconds: 100.0,
                ..load
            }
            .cores(left / 100.0);
            shapes.push(Shape {
                name: Box::leak(format!("{name}, {label}").into_boxed_str()),
                service: Service {
                    callers,
                    ..places()
                },
                phases: vec![load, few],
                span: (60.0, 140.0),
                figures: vec![("goodput", Goodput, AtLeast(0.9))],
                fixed: &[3, 6, 9, 12, 25],
            });
        }
    }
    shapes.push(Shape {
        name: "1 of 20 places left, work ends with its caller",
        service: Service {
            cores: 20.0,
            deviation: 0.0,
            callers: Callers::GiveUpAndWorkEnds,
            ..places()
        },
        phases: vec![
            Phase::new(10.0, 1.5, 0.0),
            Phase::new(60.0, 1.5, 0.0).cores(0.05),
        ],
        span: (30.0, 69.0),
        figures: vec![("goodput", Goodput, AtLeast(0.9))],
        fixed: &[1, 2],
    });
    let load = Phase::new(40.0, 1.5, 0.25);
    shapes.push(Shape {
        name: "3 of 100 places for a minute, after it",
        service: places(),
        phases: vec![
            load,
            Phase {
                seconds: 60.0,
                ..load
            }
            .cores(0.03),
            load,
        ],
        span: (110.0, 139.0),
        figures: vec![("goodput", Goodput, AtLeast(0.9))],
        fixed: &[100],
    });
    // A new instance with slow requests.
    for (name, seconds, per_second, until) in [
        ("new: 5 s at 20/s", 5.0, 20.0, 40.0),
        ("new: 20 s at 10/s", 20.0, 10.0, 40.0),
        ("new: 0.5 s at 100/s", 0.5, 100.0, 40.0),
        ("new: 30 s at 20/s", 30.0, 20.0, 40.0),
    ] {
        shapes.push(Shape {
            name,
            service: waits(seconds, 0.5),
            phases: vec![Phase::new(100.0, rate(per_second), 0.25)],
            span: (0.0, until),
            figures: vec![("refused", Refused, AtMost(0.05))],
            fixed: &[10_000],
        });
    }
    // Never overloaded.
    for (name, seconds, per_second) in [
        ("never overloaded: 1 ms at 2,000/s", 0.001, 2_000.0),
        ("never overloaded: 30 ms at 500/s", 0.03, 500.0),
        ("never overloaded: 1 s at 100/s", 1.0, 100.0),
        ("never overloaded: 30 s at 5/s", 30.0, 5.0),
    ] {
        shapes.push(Shape {
            name,
            service: waits(seconds, 1.0),
            phases: vec![Phase::new(1_000.0, rate(per_second), 0.25)],
            span: (0.0, 1_000.0),
            figures: vec![("refused", Refused, AtMost(0.000_1))],
            fixed: &[10_000],
        });
    }
    shapes.push(Shape {
        name: "never overloaded: cores at 0.7",
        service: Service {
            deviation: 2.0,
            ..service()
        },
        phases: vec![Phase::new(1_000.0, 0.7, 0.25)],
        span: (0.0, 1_000.0),
        figures: vec![("refused", Refused, AtMost(0.000_1))],
        fixed: &[16],
    });
    // Mostly waiting.
    shapes.push(Shape {
        name: "mostly waits: 2 ms of 4 cores, 100 ms",
        service: Service {
            cores: 4.0,
            operations: vec![Operation {
                wait: 0.1,
                ..Operation::new(0.002, 1.0)
            }],
            ..service()
        },
        phases: vec![Phase::new(60.0, 3.0, 0.25)],
        span: (1.0, 59.0),
        figures: vec![
            ("goodput", Goodput, AtLeast(0.66)),
            ("critical", Critical, AtLeast(0.75)),
        ],
        fixed: &[110, 120, 130, 140, 150, 200],
    });
    // Critical requests behind long ones.
    shapes.push(Shape {
        name: "2 ms critical behind 300 ms",
        service: Service {
            operations: vec![
                Operation {
                    critical: Some(1.0),
                    ..Operation::new(0.002, 0.9)
                },
                Operation {
                    critical: Some(0.0),
                    ..Operation::new(0.3, 0.1)
                },
            ],
            ..service()
        },
        phases: vec![Phase::new(60.0, 3.0, 0.0)],
        span: (5.0, 59.0),
        figures: vec![
            ("critical", Critical, AtLeast(0.995)),
            ("critical p99", CriticalP99, AtMost(30.0)),
            ("goodput", Goodput, AtLeast(0.9)),
        ],
        fixed: &[8, 10, 12],
    });
    // Numbers of cores, and cold starts.
    for (name, cores, fixed) in [
        ("1 core", 1.0, &[1, 2][..]),
        ("2 cores", 2.0, &[2, 3]),
        ("4 cores", 4.0, &[4, 5]),
        ("8 cores", 8.0, &[8, 9]),
        ("64 cores", 64.0, &[64, 70]),
    ] {
        shapes.push(Shape {
            name,
            service: Service { cores, ..service() },
            phases: vec![Phase::new(60.0, 3.0, 0.25)],
            span: (20.0, 59.0),
            figures: vec![
                ("critical", Critical, AtLeast(0.95)),
                ("critical p99", CriticalP99, AtMost(300.0)),
                ("goodput", Goodput, AtLeast(0.9)),
            ],
            fixed,
        });
        shapes.push(Shape {
            name: Box::leak(format!("{name}, first 3 s").into_boxed_str()),
            service: Service { cores, ..service() },
            phases: vec![Phase::new(4.0, 3.0, 0.25)],
            span: (0.0, 3.0),
            figures: vec![
                ("critical", Critical, AtLeast(0.9)),
                ("goodput", Goodput, AtLeast(0.9)),
            ],
            fixed,
        });
    }
    shapes.push(Shape {
        name: "8 cores, half of 3 x critical",
        service: service(),
        phases: vec![Phase::new(80.0, 3.0, 0.5)],
        span: (20.0, 79.0),
        figures: vec![
            ("goodput", Goodput, AtLeast(0.95)),
            ("critical", Critical, AtLeast(0.6)),
        ],
        fixed: &[8, 9],
    });
    // A slow dependency.
    let base = Phase::new(60.0, rate(500.0), 0.25);
    shapes.push(Shape {
        name: "dependency 10 x slower for ten minutes",
        service: waits(0.1, 0.5),
        phases: vec![
            base,
            Phase {
                seconds: 600.0,
                ..base
            }
            .slower(10.0),
            base,
        ],
        span: (60.0, 660.0),
        figures: vec![("good", Good, AtLeast(0.9))],
        fixed: &[10_000],
    });
    shapes.push(Shape {
        name: "dependency 10 x slower, the first minute after it",
        service: waits(0.1, 0.5),
        phases: vec![
            base,
            Phase {
                seconds: 600.0,
                ..base
            }
            .slower(10.0),
            base,
        ],
        span: (660.0, 719.0),
        figures: vec![("good", Good, AtLeast(0.99))],
        fixed: &[10_000],
    });
    // Load that halves and doubles, pauses, steps, heavy tails, classes.
    let mut swings = Vec::new();
    for swing in 0..12 {
        swings.push(Phase::new(
            5.0,
            if swing % 2 == 0 { 0.75 } else { 1.5 },
            0.25,
        ));
    }
    shapes.push(Shape {
        name: "load between 0.75 and 1.5",
        service: service(),
        phases: swings,
        span: (10.0, 59.0),
        figures: vec![
            ("goodput", Goodput, AtLeast(0.85)),
            ("critical", Critical, AtLeast(0.97)),
        ],
        fixed: &[8, 9],
    });
    for (name, service, load, fixed) in [
        (
            "pauses of 0.5 s, cores at 0.7",
            service(),
            0.7,
            &[8, 16][..],
        ),
        ("pauses of 0.5 s, cores at 2", service(), 2.0, &[8, 9]),
    ] {
        let mut phases = Vec::new();
        for _ in 0..12 {
            phases.push(Phase::new(4.5, load, 0.25));
            phases.push(Phase::new(0.5, load, 0.25).cores(0.0));
        }
        shapes.push(Shape {
            name,
            service,
            phases,
            span: (10.0, 59.0),
            figures: vec![
                ("goodput", Goodput, AtLeast(0.9)),
                ("critical", Critical, AtLeast(0.95)),
            ],
            fixed,
        });
    }
    shapes.push(Shape {
        name: "100 requests at once, cores at 0.6",
        service: service(),
        phases: vec![Phase::new(60.0, 0.6, 0.25).batch(100)],
        span: (10.0, 59.0),
        figures: vec![("refused", Refused, AtMost(0.05))],
        fixed: &[8, 16],
    });
    shapes.push(Shape {
        name: "heavy tails, cores at 3",
        service: Service {
            deviation: 5.0,
            ..service()
        },
        phases: vec![Phase::new(60.0, 3.0, 0.25)],
        span: (10.0, 59.0),
        figures: vec![
            ("goodput", Goodput, AtLeast(0.7)),
            ("critical", Critical, AtLeast(0.8)),
        ],
        fixed: &[8, 10, 12, 16],
    });
    shapes.push(Shape {
        name: "classes of 1 ms and 100 ms, cores at 3",
        service: Service {
            operations: vec![Operation::new(0.001, 0.9), Operation::new(0.1, 0.1)],
            ..service()
        },
        phases: vec![Phase::new(60.0, 3.0, 0.25)],
        span: (10.0, 59.0),
        figures: vec![
            ("goodput", Goodput, AtLeast(0.9)),
            ("critical", Critical, AtLeast(0.95)),
        ],
        fixed: &[8, 10, 12],
    });
    shapes.push(Shape {
        name: "half of the requests can never be in time",
        service: Service {
            operations: vec![
                Operation {
                    wait: 2.0,
                    ..Operation::new(0.001, 0.5)
                },
                Operation {
                    wait: 0.05,
                    ..Operation::new(0.003, 0.5)
                },
            ],
            ..service()
        },
        phases: vec![Phase::new(60.0, 0.5, 0.25)],
        span: (10.0, 57.0),
        figures: vec![("good", Good, AtLeast(0.49))],
        fixed: &[10_000],
    });
    shapes
}
