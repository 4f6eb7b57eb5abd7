//! Other adaptive limits, to compare with: AIMD, Gradient2 and Vegas.
//!
//! Each is the algorithm and the defaults of Netflix' concurrency-limits. Like there, a request beyond the limit is
//! refused at once. Critical requests have a tenth of the places for themselves.

use std::collections::HashMap;

/// A limit.
pub(crate) enum Kind {
    /// Grows by one, and shrinks by a tenth when a request takes over five seconds or misses its deadline.
    Aimd,
    /// Compares the mean latency of a second with that of the last 600.
    Gradient2 {
        long: f64,
        samples: u32,
        window: Window,
    },
    /// Compares each latency with the shortest of the last ones.
    Vegas { shortest: f64, samples: u32 },
}

/// Latencies of a second.
#[derive(Default)]
pub(crate) struct Window {
    sum: f64,
    samples: u32,
    in_flight: usize,
    next_at: f64,
}

/// A limit, and the requests in flight.
pub(crate) struct Reference {
    kind: Kind,
    limit: f64,
    admitted_at: HashMap<u64, f64>,
}

impl Reference {
    pub(crate) fn aimd() -> Self {
        Self::new(Kind::Aimd)
    }

    pub(crate) fn gradient2() -> Self {
        Self::new(Kind::Gradient2 {
            long: 0.0,
            samples: 0,
            window: Window::default(),
        })
    }

    pub(crate) fn vegas() -> Self {
        Self::new(Kind::Vegas {
            shortest: 0.0,
            samples: 0,
        })
    }

    fn new(kind: Kind) -> Self {
        Self {
            kind,
            limit: 20.0,
            admitted_at: HashMap::new(),
        }
    }

    pub(crate) const fn limit(&self) -> f64 {
        self.limit
    }

    /// Returns whether a request is admitted.
    pub(crate) fn offer(&mut self, is_critical: bool, id: u64, now: f64) -> bool {
        let places = if is_critical {
            self.limit
        } else {
            0.9 * self.limit
        };
        let is_admitted = (self.admitted_at.len() as f64) < places.floor().max(1.0);
        if is_admitted {
            self.admitted_at.insert(id, now);
        }
        is_admitted
    }

    /// Takes the end of a request into account. `is_dropped`: it missed its deadline.
    pub(crate) fn end(&mut self, id: u64, is_dropped: bool, now: f64) {
        let in_flight = self.admitted_at.len();
        let Some(at) = self.admitted_at.remove(&id) else {
            return;
        };
        let (latency, limit) = (now - at, self.limit);
        self.limit = match &mut self.kind {
            Kind::Aimd if is_dropped || latency > 5.0 => (limit * 0.9).floor().clamp(20.0, 200.0),
            Kind::Aimd if 2 * in_flight >= limit as usize => (limit + 1.0).min(200.0),
            Kind::Aimd => limit,
            Kind::Gradient2 {
                long,
                samples,
                window,
            } => {
                window.sum += latency;
                window.samples += 1;
                window.in_flight = window.in_flight.max(in_flight);
                if now < window.next_at || window.samples < 10 {
                    return;
                }
                let short = window.sum / f64::from(window.samples);
                let most = window.in_flight as f64;
                *window = Window {
                    next_at: now + 1.0,
                    ..Window::default()
                };
                *samples += 1;
                *long = if *samples <= 10 {
                    (*long * f64::from(*samples - 1) + short) / f64::from(*samples)
                } else {
                    *long + (short - *long) * 2.0 / 601.0
                };
                if *long / short > 2.0 {
                    *long *= 0.95;
                }
                if most < limit / 2.0 {
                    return;
                }
                let gradient = (1.5 * *long / short).clamp(0.5, 1.0);
                (0.8 * limit + 0.2 * (limit * gradient + 4.0)).clamp(20.0, 200.0)
            }
            Kind::Vegas { shortest, samples } => {
                *samples += 1;
                if f64::from(*samples) >= 0.75 * 30.0 * limit {
                    *samples = 0;
                    *shortest = latency;
                    return;
                }
                if *shortest == 0.0 || latency < *shortest {
                    *shortest = latency;
                    return;
                }
                let step = limit.log10().floor().max(1.0);
                let queue = (limit * (1.0 - *shortest / latency)).ceil();
                let next = if is_dropped {
                    limit - step
                } else if 2 * in_flight < limit as usize {
                    limit
                } else if queue <= step {
                    limit + 6.0 * step
                } else if queue < 3.0 * step {
                    limit + step
                } else if queue > 6.0 * step {
                    limit - step
                } else {
                    limit
                };
                next.clamp(1.0, 1_000.0)
            }
        };
    }
}
