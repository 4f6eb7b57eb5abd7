//! The demand that a server sends to its parent is valid: the parent parses the same curve.

use doorward_engine::amount::Amount;
use doorward_engine::claims::DemandCurve;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;

use crate::asking::{self, ask, holder, resource};

#[test]
fn a_client_that_wants_more_than_an_amount_can_be_leaves_the_curve_valid() {
    let config = Config {
        name: "eu".to_owned(),
        has_parent: true,
        ..Config::default()
    };
    let mut eu = Node::new(config, Templates::default());
    let now = Time::from_secs(1);
    eu.handle_mastership(Mastership::Master { epoch: None }, now);
    for (client, wants) in [("a", Amount::MAX), ("b", Amount::new(2.0).unwrap())] {
        let request = asking::request(holder(client), vec![ask(resource("r"), 0, wants, None)]);
        eu.handle_get_capacity(&request, now);
    }
    let request = eu.poll_upstream_request(1, now).unwrap();
    for band in request.asks[0].demand.bands() {
        let levels: Vec<f64> = band.curve.points().iter().map(|p| p.level).collect();
        let demands: Vec<f64> = band.curve.points().iter().map(|p| p.demand).collect();
        let parsed = DemandCurve::parse(&levels, &demands, band.wants, band.clients);
        assert_eq!(parsed.as_ref(), Ok(&band.curve));
    }
}
