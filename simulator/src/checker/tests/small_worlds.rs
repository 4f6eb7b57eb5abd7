//! Small worlds that must fail: each breaks one promise in a few lines, and has a twin that breaks none.
//!
//! The files are in `testdata/promises`, and its `README.md` describes them. A story states what happens to each
//! client and server, and the checkers watch as they do in a simulation.

mod story;
mod story_player;

use crate::checker::tests::small_worlds::story::StoryLine;
use crate::checker::tests::small_worlds::story_player::play;
use crate::recording::{Checker, Verdict};

/// All stories.
const STORIES: [&str; 13] = [
    include_str!("../../../testdata/promises/overshoot.txt"),
    include_str!("../../../testdata/promises/nesting.txt"),
    include_str!("../../../testdata/promises/mastership.txt"),
    include_str!("../../../testdata/promises/fairness.txt"),
    include_str!("../../../testdata/promises/settled-fairness.txt"),
    include_str!("../../../testdata/promises/utilisation.txt"),
    include_str!("../../../testdata/promises/convergence.txt"),
    include_str!("../../../testdata/promises/starvation.txt"),
    include_str!("../../../testdata/promises/oscillation.txt"),
    include_str!("../../../testdata/promises/comeback.txt"),
    include_str!("../../../testdata/promises/not-back.txt"),
    include_str!("../../../testdata/promises/safe-use.txt"),
    include_str!("../../../testdata/promises/requests.txt"),
];

/// One of the two: the world that breaks a promise, or the one that differs from it in a few words only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Twin {
    /// One promise is broken.
    Broken,
    /// None is.
    Mended,
}

/// A world of a few lines.
#[derive(Clone, Debug)]
struct SmallWorld {
    /// A sentence about it.
    about: String,
    /// The promise that it breaks.
    breaks: Checker,
    lines: Vec<StoryLine>,
}

impl SmallWorld {
    /// Reads all of them.
    fn all() -> Result<Vec<Self>, String> {
        let mut worlds = Vec::new();
        for stories in STORIES {
            for text in stories.split("\n\n") {
                worlds.push(Self::parse(text)?);
            }
        }
        Ok(worlds)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.trim().lines();
        let about = lines.next().and_then(|line| line.strip_prefix("# "));
        let breaks = lines.next().and_then(|line| line.strip_prefix("breaks "));
        let named = |name: &str| Checker::ALL.into_iter().find(|it| it.as_str() == name);
        let (Some(about), Some(breaks)) = (about, breaks.and_then(named)) else {
            return Err(format!("a story says what it is about and breaks: {text}"));
        };
        let lines: Result<Vec<StoryLine>, String> = lines.map(StoryLine::parse).collect();
        Ok(Self {
            about: about.to_owned(),
            breaks,
            lines: lines?,
        })
    }

    /// Returns the verdicts of the checkers.
    fn play(&self, twin: Twin) -> Result<Vec<Verdict>, String> {
        play(&self.lines, twin)
    }

    /// Returns the checkers that find a violation in one of the two.
    fn broken(&self, twin: Twin) -> Result<Vec<Checker>, String> {
        let verdicts = self.play(twin)?;
        let broken = verdicts.iter().filter(|verdict| !verdict.holds);
        Ok(broken.map(|verdict| verdict.checker).collect())
    }

    /// Demands that its own checker alone finds a violation, and that no checker finds one in its twin.
    fn check(&self) -> Result<(), String> {
        for (twin, expected) in [
            (Twin::Broken, vec![self.breaks]),
            (Twin::Mended, Vec::new()),
        ] {
            let found = self.broken(twin)?;
            if found != expected {
                let about = &self.about;
                let verdicts = self.play(twin)?;
                let judged = verdicts.iter().filter(|it| it.limit.is_some());
                let judged: Vec<_> = judged
                    .map(|it| (it.checker.as_str(), it.value, it.limit))
                    .collect();
                return Err(format!(
                    "{about} ({twin:?}): {found:?}, not {expected:?}: {judged:?}"
                ));
            }
        }
        Ok(())
    }
}

#[test]
fn in_each_small_world_exactly_one_promise_is_broken_and_none_in_its_twin() {
    let failed = SmallWorld::all().unwrap();
    let failed = failed.iter().filter_map(|world| world.check().err());
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn every_checker_has_a_small_world_that_it_must_not_miss() {
    let worlds = SmallWorld::all().unwrap();
    for checker in Checker::ALL {
        assert!(worlds.iter().any(|it| it.breaks == checker), "{checker:?}");
    }
}

#[test]
fn an_invalid_line_is_refused() {
    for line in ["a has 5", "5 a", "5 a eats 3", "5 a has much", "node x"] {
        let text = format!("# A world.\nbreaks overshoot\n{line}");
        let world = SmallWorld::parse(&text);
        let played = world.and_then(|world| world.play(Twin::Broken));
        assert!(played.is_err(), "{line}");
    }
}
