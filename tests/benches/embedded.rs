//! An embedded group under load, on one machine: the part of the limit that is used when members come and leave, and what
//! happens when members are killed at random.
//!
//! `cargo bench -p doorward-tests --bench embedded`

use std::time::Duration;

use doorward_clock::wall;
use doorward_tests::group::{LIMIT, Member, most_in_a_second, run_as_member};
use tokio::time::sleep;

/// Time between two changes of the number of members.
const PHASE: Duration = Duration::from_secs(9);

const KILLS: u64 = 50;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if !run_as_member().await {
        let changes = change().await;
        let kills = kill().await;
        println!("{changes}\n{kills}");
    }
}

/// Three members, then six, two and four.
async fn change() -> String {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let (mut members, mut gone, mut text) = (Vec::new(), Vec::new(), String::new());
    let mut began = Vec::new();
    for number in [3, 6, 2, 4] {
        began.push((number, wall()));
        while members.len() < number {
            members.push(Member::start(place, &[]));
        }
        // The first ones leave, and with them the one that serves.
        for mut member in members.drain(..members.len() - number) {
            member.tell_to_leave();
            gone.push(member);
        }
        sleep(PHASE).await;
    }
    let takes: Vec<Duration> = members
        .iter()
        .chain(&gone)
        .flat_map(Member::takes)
        .collect();
    for (number, at) in began {
        let from = at + Duration::from_secs(1);
        let until = at + PHASE - Duration::from_millis(100);
        let used = takes
            .iter()
            .filter(|it| (from..until).contains(*it))
            .count();
        let of = (until - from).as_secs_f64() * LIMIT as f64;
        let part = 100.0 * used as f64 / of;
        text += &format!("{number} members: {part:.1} % used from the second second on\n");
    }
    let most = most_in_a_second(takes);
    text + &format!("most in any second: {most} of {LIMIT}\n")
}

/// Kills a member at random, and starts another one, again and again.
async fn kill() -> String {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let mut members: Vec<Member> = (0..4).map(|_| Member::start(place, &[])).collect();
    sleep(Duration::from_secs(3)).await;
    let (mut takes, mut waits, mut longest) = (Vec::new(), Vec::new(), Duration::ZERO);
    for number in 0..KILLS {
        // A sequence without a pattern, always the same.
        let random = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let chosen = usize::try_from(random % 4).unwrap();
        let killed = wall();
        let was_serving = members[chosen].is_serving();
        takes.extend(members.remove(chosen).kill());
        members.push(Member::start(place, &[]));
        let newest = members.last().unwrap();
        while newest.takes().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
        let first = newest.takes()[0];
        if was_serving {
            waits.push(first - killed);
        }
        sleep(Duration::from_millis(2_000 + random % 6_000)).await;
        for member in &members[..3] {
            let of = member.takes();
            let gaps = of.windows(2).map(|pair| pair[1] - pair[0]);
            longest = longest.max(gaps.max().unwrap_or_default());
        }
    }
    takes.extend(members.into_iter().flat_map(Member::kill));
    waits.sort_unstable();
    let most = most_in_a_second(takes);
    let [half, last] = [waits.len() / 2, waits.len() - 1].map(|at| waits[at].as_secs_f64());
    format!(
        "{KILLS} kills at random, {} of them of the member that serves: most in any second {most} of {LIMIT}; longest \
         wait of the others {:.2} s; from such a kill to the first take of a newcomer {half:.2} s in the middle, {last:.2} s \
         at most",
        waits.len(),
        longest.as_secs_f64(),
    )
}
