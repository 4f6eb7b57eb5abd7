//! Plays a story before the checkers, which look on as they do in a simulation: ten times a second whether all is
//! at rest, once a second how far everybody is from the ideal, and at everything that changes.

use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::time::Time;

use crate::checker::tests::small_worlds::Twin;
use crate::checker::tests::small_worlds::story::{self, RESOURCE, StoryLine, number};
use crate::checker::{MasterClaim, NodeBook, Watched, judge, may_decide};
use crate::numbered::Numbered;
use crate::recording::Verdict;
use crate::scenario::Limits;
use crate::scenario::forms::{self, Amount, Part};

/// Length of each small world.
const SMALL_WORLDS_LAST: Duration = Duration::from_secs(600);

/// Facts of every world but the one that breaks them.
const LIMITS: Limits = Limits {
    overshoot: Some(Amount(0.0)),
    mastership: Some(Amount(0.0)),
    nesting: Some(Amount(0.0)),
    settled_unfairness: Some(Amount(0.01)),
    unfairness: Some(Part(0.2)),
    utilisation: Some(Part(0.9)),
    convergence: Some(forms::Time(Duration::from_secs(10))),
    starvation: Some(forms::Time(Duration::from_secs(10))),
    comeback: Some(forms::Time(Duration::from_secs(10))),
    not_back: Some(Amount(0.0)),
    safe_use: Some(Amount(1.0)),
    requests: Some(Amount(10.0)),
    oscillation: Some(Amount(1.0)),
};

/// Somebody looks whether all is at rest so many times in ten minutes; every tenth time also how far everybody
/// is from the ideal.
const TICKS: u32 = 6_000;

struct Player {
    watched: Watched,
    /// Their names stand in the order of their numbers.
    nodes: Vec<String>,
    books: Numbered<NodeBook>,
    clients: Vec<String>,
    servers: Vec<(String, MasterClaim)>,
}

/// What the checkers say of a story.
pub(super) fn play(lines: &[StoryLine], twin: Twin) -> Result<Vec<Verdict>, String> {
    let mut events = Vec::new();
    let mut declared = Vec::new();
    for line in lines {
        let words = line.words(twin);
        match words.split_first() {
            Some((at, event)) if at.starts_with(|it: char| it.is_ascii_digit()) => {
                events.push((story::time(at)?, event.to_vec()));
            }
            _ => declared.push(words),
        }
    }
    events.sort_by_key(|(at, _)| *at);
    let mut player = Player::new(&declared)?;
    let mut events = events.into_iter().peekable();
    for tick in 0..=TICKS {
        let now = Time::ZERO + SMALL_WORLDS_LAST * tick / TICKS;
        while let Some((at, event)) = events.next_if(|(at, _)| *at <= now) {
            player.happen(&event, at)?;
        }
        if player.watched.is_restless() {
            player.watched.settle(now);
        }
        if tick % 10 == 5 {
            player.watched.look_at_all(now);
        }
    }
    if let Some((_, event)) = events.next() {
        return Err(format!("too late: {event:?}"));
    }
    player.watched.finish(Time::ZERO + SMALL_WORLDS_LAST);
    Ok(judge(&player.watched, &LIMITS))
}

impl Player {
    fn new(declared: &[Vec<&str>]) -> Result<Self, String> {
        let mut template = story::template(&["FAIR_SHARE", "100"])?;
        if let Some(["template", own @ ..]) = declared.first().map(Vec::as_slice) {
            template = story::template(own)?;
        }
        let resource = ResourceId::new(RESOURCE).map_err(|error| error.to_string())?;
        let root = NodeBook {
            parent: None,
            reserved: None,
        };
        let mut player = Self {
            watched: Watched::new(resource, &template, Time::ZERO),
            nodes: vec!["root".to_owned()],
            books: std::iter::once(root).collect(),
            clients: Vec::new(),
            servers: Vec::new(),
        };
        for words in declared {
            match words.as_slice() {
                ["template", ..] => {}
                ["node", name, "below", parent] => {
                    let parent = Some(player.node(parent)?);
                    player.nodes.push((*name).to_owned());
                    player.books.push(NodeBook {
                        parent,
                        reserved: None,
                    });
                }
                ["client", name, "at", node] => {
                    let place = player.node(node)?;
                    player.join(name, 0, place);
                }
                ["client", name, "priority", priority] => {
                    let priority = priority.parse().map_err(|_| format!("{priority}?"))?;
                    player.join(name, priority, 0);
                }
                _ => return Err(format!("nobody understands {words:?}")),
            }
        }
        Ok(player)
    }

    fn node(&self, name: &str) -> Result<u32, String> {
        let found = self.nodes.iter().position(|known| known == name);
        found
            .map(|found| found as u32)
            .ok_or_else(|| format!("no node: {name}"))
    }

    fn join(&mut self, name: &str, priority: i64, place: u32) -> u32 {
        self.clients.push(name.to_owned());
        self.watched.join(priority, place)
    }

    fn client(&mut self, name: &str) -> u32 {
        let found = self.clients.iter().position(|known| known == name);
        found.map_or_else(|| self.join(name, 0, 0), |found| found as u32)
    }

    fn happen(&mut self, event: &[&str], now: Time) -> Result<(), String> {
        match event {
            ["template", words @ ..] => {
                let template = story::template(words)?;
                self.watched.note_template(Some(&template), now);
            }
            ["root", "elected"] => self.watched.note_learning(Duration::ZERO, now),
            ["all", "settled"] => self.watched.note_settled(now),
            [_, "waits", ..] => {}
            [node, "reserved", amount] => {
                let node = self.node(node)?;
                self.books[node].reserved = Some(number(amount)?);
                self.watched.note_books(&self.books, now);
            }
            [server, "leads", "until", until] => self.lead(server, story::time(until)?),
            [server, "retires"] => {
                let mut all = self.servers.iter_mut();
                if let Some((_, claim)) = all.find(|(name, _)| name == server) {
                    claim.is_master = false;
                }
            }
            [server, "decides"] => self.decide(server, now)?,
            [client, what @ ..] => {
                let client = self.client(client);
                self.happen_to(client, what, now)?;
            }
            [] => return Err("nothing happens".to_owned()),
        }
        Ok(())
    }

    fn happen_to(&mut self, client: u32, what: &[&str], now: Time) -> Result<(), String> {
        let watched = &mut self.watched;
        match what {
            ["wants", amount] => watched.note_wants(client, number(amount)?, now),
            ["has", amount] => {
                watched.note_usable(client, number(amount)?, 0.0, now);
                watched.note_books(&self.books, now);
            }
            ["safe", amount] => {
                watched
                    .safe_use
                    .note_safe_capacity(client, number(amount)?, now, now);
                watched.note_safe_use(client, 0.0, now);
            }
            ["asks", often] => {
                for _ in 0..number(often)? as u32 {
                    watched.note_request(client, now);
                }
            }
            ["back", "since", since] => watched.comebacks.note(story::time(since)?, now),
            ["missing", "since", since] => watched.comebacks.note_missing(story::time(since)?, now),
            _ => return Err(format!("nobody understands {what:?}")),
        }
        Ok(())
    }

    /// A server takes itself for the master, and has a lease until then.
    fn lead(&mut self, name: &str, until: Time) {
        let claim = MasterClaim {
            term: self.servers.len() as u64,
            is_twin: false,
            may_lead_until: Some(until),
            is_master: true,
        };
        self.servers.push((name.to_owned(), claim));
    }

    fn decide(&mut self, name: &str, now: Time) -> Result<(), String> {
        let by = self.servers.iter().find(|(known, _)| known == name);
        let (_, by) = by.ok_or_else(|| format!("no server: {name}"))?;
        let claims = self.servers.iter().map(|(_, claim)| *claim);
        if !may_decide(by.term, claims, now) {
            self.watched.mastership.note(now);
        }
        Ok(())
    }
}
