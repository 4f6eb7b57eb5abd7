//! Requests of child servers with many priorities, and the requests to the parent for them.

use super::*;

/// Measures this number of priorities.
pub(super) fn all(sizes: &Sizes, priorities: usize) {
    let (children, resources) = (sizes.children, sizes.named / priorities);
    println!(
        "\n{children} child servers, {resources} resources, {priorities} priorities of 64 points each"
    );
    let now = Time::from_secs(1_000);
    let mut first = Calls::new("the first request");
    let mut one = Calls::new("one priority changes");
    let mut all = Calls::new("all of them change");
    let mut gone = Calls::new("the child is gone");
    for changed in [1, priorities, 1, priorities] {
        let demands = [0, 1].map(|turn| {
            let band = |priority: usize| {
                let is_other = turn == 1 && priority < changed;
                let number = priority + if is_other { priorities } else { 0 };
                band(priority as i64, number)
            };
            Arc::new(ServerDemand::new((0..priorities).map(band).collect()))
        });
        let calls = if changed == 1 { &mut one } else { &mut all };
        let mut node = master(false, AlgorithmKind::PriorityBands);
        for turn in 0..=TURNS {
            let at = now + Duration::from_secs(turn as u64);
            for child in 0..children {
                let request = child_request(child, turn, resources, &demands[turn % 2]);
                let calls = if turn == 0 { &mut first } else { &mut *calls };
                calls.child(&mut node, at, &request);
            }
            forget(&mut node);
        }
        gone.timeouts(&mut node, now + 2 * LEASE);
        assert!(node.poll_timeout().is_none());
    }
    let mut asked = Calls::new("request to the parent");
    let mut ignored = Calls::new("");
    let mut node = master(true, AlgorithmKind::PriorityBands);
    let mut at = now;
    for turn in 0..=TURNS {
        let demand = Arc::new(ServerDemand::new(
            (0..priorities)
                .map(|priority| band(priority as i64, priority + turn * priorities))
                .collect(),
        ));
        for child in 0..children {
            let request = child_request(child, turn, resources, &demand);
            ignored.child(&mut node, at, &request);
        }
        at = at + Duration::from_secs(5);
        let calls = if turn == 0 { &mut ignored } else { &mut asked };
        while let Some(request) = calls.request(&mut node, at) {
            let reply = answer(&request, AlgorithmKind::PriorityBands);
            node.handle_upstream_reply(&reply, at);
        }
        forget(&mut node);
    }
    first.print();
    one.print();
    all.print();
    gone.print();
    asked.print();
}
