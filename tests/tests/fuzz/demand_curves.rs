//! Demand curves from child servers: refused, or the curve of possible claims.

use doorward_engine::amount::Amount;
use doorward_engine::claims::{DemandCurve, Subclients};
use doorward_proto::doorman as wire;
use prost::Message;

use crate::mutate::Format;
use crate::runner::fuzz;

#[test]
fn demand_curves() {
    fuzz!("demand_curves", Format::Wire, share: 6, read);
}

fn read(bytes: &[u8]) {
    let Ok(mut band) = wire::PriorityBandAggregate::decode(bytes) else {
        return;
    };
    check(&band);
    // The input has as many levels as demands, and the last demand is the total, so that more
    // checks are reached.
    let points = band.level.len().min(band.demand.len());
    band.level.truncate(points);
    band.demand.truncate(points);
    if let Some(last) = band.demand.last() {
        band.wants = *last;
        check(&band);
        band.demand.sort_by(f64::total_cmp);
        band.level.sort_by(f64::total_cmp);
        check(&band);
    }
}

fn check(band: &wire::PriorityBandAggregate) {
    let Ok(wants) = Amount::new(band.wants) else {
        return;
    };
    let clients = (band.num_clients.max(0) as f64).min(Subclients::MAX.get());
    let Ok(curve) = DemandCurve::parse(&band.level, &band.demand, wants, clients) else {
        return;
    };
    let mut before = 0.0;
    for point in curve.points() {
        assert!(point.level.is_finite() && point.demand.is_finite());
        for level in [point.level / 2.0, point.level, point.level.next_up()] {
            let demand = curve.demand_at(level);
            assert!(demand.is_finite() && demand >= 0.0, "{demand} at {level}");
        }
        assert!(point.level > before, "{:?}", curve.points());
        before = point.level;
    }
    let claims: Vec<_> = curve.claims(clients).collect();
    assert!(claims.len() <= curve.points().len() + 1);
    let total: f64 = claims.iter().map(|claim| claim.wants.get()).sum();
    assert!(
        total <= wants.get() * (1.0 + 1e-6) + 1e-30,
        "claims of {total} for {wants}: {:?}",
        curve.points()
    );
}
