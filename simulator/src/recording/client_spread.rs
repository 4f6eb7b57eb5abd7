//! The distribution of satisfaction over clients: percentiles, and Jain's index of fairness.

use serde::{Deserialize, Serialize};

use crate::recording::{ClientFigures, part};

/// Distribution over all clients that wanted something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientSpread {
    /// Number of these clients.
    pub clients: usize,
    /// Satisfaction: the part of its wants that a client got, at most 1.
    pub satisfaction: Percentiles,
    /// Jain's index of fairness, (Σx)² / (n · Σx²), where x is what a client got divided by what the ideal
    /// would have given it (Jain, Chiu, Hawe: "A Quantitative Measure of Fairness and Discrimination", 1984).
    /// Absent: the ideal gives nothing to any client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jain: Option<f64>,
}

/// Values that 50, 90, 99 and 100 % of the clients reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// Nine of ten clients do at least as well.
    pub p90: f64,
    /// 99 of 100 clients do at least as well.
    pub p99: f64,
    /// The worst client.
    pub worst: f64,
}

impl ClientSpread {
    /// Measures it, by the nearest rank. None: no client wanted anything.
    pub fn of<'a>(clients: impl Iterator<Item = &'a ClientFigures>) -> Option<Self> {
        let clients: Vec<_> = clients.filter(|client| client.wanted > 0.0).collect();
        let shares = clients.iter().filter(|client| client.ideal > 0.0);
        let jain = jain(shares.map(|client| client.got / client.ideal));
        let clients = clients.into_iter();
        let mut satisfaction: Vec<f64> = clients.map(|it| (it.got / it.wanted).min(1.0)).collect();
        satisfaction.sort_by(|a, b| b.total_cmp(a));
        let clients = satisfaction.len();
        let rank = |percent: usize| {
            let place = (clients * percent).div_ceil(100).saturating_sub(1);
            satisfaction.get(place).copied().unwrap_or(0.0)
        };
        (clients > 0).then(|| Self {
            clients,
            satisfaction: Percentiles {
                p50: rank(50),
                p90: rank(90),
                p99: rank(99),
                worst: rank(100),
            },
            jain,
        })
    }
}

fn jain(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    // Clients that all get nothing are treated alike.
    (count > 0.0).then(|| part(sum * sum, count * squares, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(got: f64) -> ClientFigures {
        ClientFigures {
            wanted: 10.0,
            got,
            ..ClientFigures::default()
        }
    }

    #[test]
    fn percentiles_say_what_so_many_clients_reach() {
        let clients: Vec<_> = (1..=100).map(|n| client(f64::from(n) / 10.0)).collect();
        let spread = ClientSpread::of(clients.iter()).unwrap();
        let Percentiles {
            p50,
            p90,
            p99,
            worst,
        } = spread.satisfaction;
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(p50, 0.51) && near(p90, 0.11) && near(p99, 0.02) && near(worst, 0.01));
    }

    #[test]
    fn equal_shares_have_index_one_and_one_holder_of_all_has_one_nth() {
        let index = |got: &[f64]| {
            let client = |got: &f64| ClientFigures {
                ideal: 5.0,
                ..client(*got)
            };
            let clients: Vec<_> = got.iter().map(client).collect();
            ClientSpread::of(clients.iter()).unwrap().jain.unwrap()
        };
        assert_eq!(index(&[5.0, 5.0, 5.0]), 1.0);
        assert_eq!(index(&[0.0, 0.0]), 1.0);
        assert_eq!(index(&[5.0, 0.0, 0.0, 0.0]), 0.25);
    }

    #[test]
    fn clients_that_wanted_nothing_do_not_count() {
        assert_eq!(ClientSpread::of([ClientFigures::default()].iter()), None);
        let spread = ClientSpread::of([client(5.0), ClientFigures::default()].iter());
        assert_eq!(spread.unwrap().clients, 1);
    }
}
