//! Budgets over real servers: everything is spent, nothing twice, and a root that dies remembers what is out.

use doorward::{BudgetLimiter, Client, Why};

use doorward_tests::ports::lasting_address;
use doorward_tests::processes::{PATIENCE, Server, doorward_server};
use doorward_tests::template_file::TemplateFile;

/// Amount of the budget.
const TOTAL: u64 = 10_000;

fn templates(learning: &str) -> TemplateFile {
    TemplateFile::new(&format!(
        "resources:\n- {{identifier_glob: tokens/*, capacity: {TOTAL}, algorithm: {{kind: BUDGET, lease_length: 20s, \
         refresh_interval: 1s, learning_mode_duration: {learning}, parameters: [{{name: window, value: lifetime}}]}}}}\n"
    ))
}

async fn budget(address: &str, name: &str) -> (Client, BudgetLimiter) {
    let client = Client::builder().id(name).address(address);
    let client = client.connect().await.unwrap();
    let budget = client.budget("tokens/acme").unwrap();
    (client, budget)
}

/// Spends until a server says that nothing is left, at most so much. Returns what was settled.
async fn spend(budget: &BudgetLimiter, most: u64) -> u64 {
    let mut spent = 0;
    let mut number = 0;
    while spent < most {
        number += 1;
        let estimate = 1 + number * 7 % 50;
        match budget.acquire(estimate).await {
            Ok(permit) => {
                // Each use differs from its estimate, and none is above it.
                let used = estimate - number % 2 * (estimate / 3);
                permit.settle(used);
                spent += used;
            }
            Err(refusal) => {
                assert_eq!(refusal.why, Why::Exhausted, "{refusal}");
                break;
            }
        }
    }
    spent
}

#[tokio::test]
async fn a_tree_spends_a_budget_and_no_more() {
    let file = templates("0s");
    let root = Server::start(&["--templates", &file.path]);
    let leaf = |name: &str| {
        let address: &str = &root.address;
        Server::start(&["--node", name, "--parent", address])
    };
    let leaves = [leaf("eu"), leaf("us")];
    let mut spenders = Vec::new();
    for number in 0..6 {
        let (client, budget) =
            budget(&leaves[number % 2].address, &format!("client-{number}")).await;
        spenders.push(tokio::spawn(async move {
            let spent = spend(&budget, TOTAL).await;
            (client, budget, spent)
        }));
    }
    let mut spent = 0;
    let mut open = Vec::new();
    for spender in spenders {
        let (client, budget, amount) = tokio::time::timeout(PATIENCE, spender)
            .await
            .unwrap()
            .unwrap();
        spent += amount;
        open.push((client, budget));
    }
    assert!(
        (TOTAL * 98 / 100..=TOTAL).contains(&spent),
        "{spent} of {TOTAL}"
    );
}

#[tokio::test]
async fn a_root_that_was_killed_knows_what_is_out() {
    let file = templates("20s");
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state").to_str().unwrap().to_owned();
    let made = doorward_server(&["state", "init", &state, "--node", "root"]);
    assert!(made.status.success());
    let address = lasting_address();
    let start = || {
        Server::start_at(
            &address,
            &["--templates", &file.path, "--state-dir", &state],
        )
    };
    let root = start();
    let (client, first) = budget(&root.address, "one").await;
    let spent = spend(&first, TOTAL / 2).await;
    root.kill();
    let root = start();
    // It goes on with what it has, and the new root hears of it.
    let (other, second) = budget(&root.address, "two").await;
    let more = tokio::time::timeout(PATIENCE, spend(&second, TOTAL))
        .await
        .unwrap();
    let rest = tokio::time::timeout(PATIENCE, spend(&first, TOTAL))
        .await
        .unwrap();
    let all = spent + more + rest;
    assert!(all <= TOTAL, "{spent} and {more} and {rest} of {TOTAL}");
    assert!(
        all >= TOTAL * 90 / 100,
        "{spent} and {more} and {rest} of {TOTAL}"
    );
    client.close().await;
    other.close().await;
}
