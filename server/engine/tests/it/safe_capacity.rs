//! The safe capacities of all clients add up to at most the capacity, however many clients come, and wherever in the
//! tree. The story `tree/safe_capacity.txt` shows the messages. These tests have many clients.

use doorward_engine::templates::SafeCapacity;

use crate::story::mail::{Message, Way};
use crate::story::player::Player;

/// Returns a root and the nodes below it, with a capacity of 100.
fn tree(below: &[&str]) -> Player {
    let mut player = Player::default();
    player.play("node root floor=1s");
    for node in below {
        player.play(node);
    }
    player.play("template r FAIR_SHARE 100");
    player.play("advance 1s");
    player
}

/// Lets all clients ask. No server sends a request to its parent.
fn all_ask(player: &mut Player) {
    for number in 0..player.world.clients.len() {
        let name = player.world.clients[number].name.clone();
        player.play(&format!("ask {name}"));
    }
}

/// Returns the sum of all safe capacities of clients.
fn safe_sum(player: &Player) -> f64 {
    let clients = player.world.clients.iter();
    let safe = clients
        .filter(|it| it.answers > 0)
        .map(|it| match it.safe_capacity {
            Some(SafeCapacity::Limited(amount)) => amount.get(),
            other => panic!("{}: {other:?}", it.name),
        });
    safe.sum()
}

#[test]
fn safe_capacities_add_up_once_all_have_refreshed_since_the_last_one_joined() {
    let joins = ["eu-1", "eu-1", "root", "eu", "eu-2", "eu-2", "eu-1", "root"];
    let mut player = tree(&[
        "node eu parent=root floor=1s",
        "node eu-1 parent=eu floor=1s",
        "node eu-2 parent=eu floor=1s",
    ]);
    for number in 0..80 {
        let at = joins[number % joins.len()];
        player.play(&format!("ask client-{number} at={at} wants=1"));
        // Before the newcomer is known elsewhere, and after.
        let is_known = number % 3 > 0;
        if is_known {
            for _ in 0..8 {
                player.play("advance 60ms");
                player.play("deliver");
            }
        }
        player.play("advance 10ms");
        all_ask(&mut player);
        let sum = safe_sum(&player);
        let count = number + 1;
        assert!(
            !is_known || sum <= 100.0 * (1.0 + 1e-9),
            "{sum} with {count} clients"
        );
    }
    player.play("run 12s");
    let sum = safe_sum(&player);
    assert!(
        (95.0..=100.0 + 1e-9).contains(&sum),
        "{sum}: little is lost"
    );
}

#[test]
fn newcomers_have_a_safe_capacity_of_zero_while_the_server_learns() {
    let mut player = tree(&["node eu parent=root floor=1s"]);
    player.play("template r FAIR_SHARE 100 learning=60s");
    for (number, at) in ["root", "eu"].into_iter().cycle().take(20).enumerate() {
        player.play(&format!("ask client-{number} at={at} wants=10"));
        player.play("run 1s");
        assert!(safe_sum(&player) <= 100.0, "{number}");
    }
    let waiting = player.world.clients.iter().filter(|it| it.answers > 0);
    assert_eq!((waiting.count(), safe_sum(&player)), (20, 0.0));
    player.play("run 60s");
    assert!((95.0..=100.0 + 1e-9).contains(&safe_sum(&player)));
}

#[test]
fn a_parent_that_did_not_decide_has_not_counted_the_newcomers() {
    let mut player = tree(&["node eu parent=root via=calls floor=1s"]);
    let mut undecided = 0;
    for number in 0..30 {
        player.play(&format!("ask client-{number} at=eu wants=1"));
        player.play("advance 1s");
        let question = player.world.mail.on_link(1, Way::Up).next();
        if question.is_some() {
            player.play("deliver eu root");
            let sent = player.world.clients[0].safe_capacity;
            let answer = player.world.mail.on_link(1, Way::Down).next().unwrap();
            // The answer of a parent with a longer floor, which still has the old demand.
            if number % 2 == 1
                && let Some(Message::ServerAnswer(_, _, reply)) = player.world.mail.get_mut(answer)
            {
                reply.leases[0].decided = Some(false);
                reply.leases[0].terms.safe_capacity = sent;
                undecided += 1;
            }
            player.play("deliver root eu");
        }
        player.play("advance 1s");
        all_ask(&mut player);
        let sum = safe_sum(&player);
        let count = number + 1;
        assert!(sum <= 100.0 * (1.0 + 1e-9), "{sum} with {count} clients");
    }
    assert!(undecided > 5, "{undecided}");
}
