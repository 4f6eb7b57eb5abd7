//! Lines of a story, word by word.

use std::time::Duration;

use doorward_engine::templates::{AlgorithmKind, Template, TemplateSpec, Templates};
use doorward_engine::time::Time;

use crate::checker::tests::small_worlds::Twin;

/// What all share.
pub(super) const RESOURCE: &str = "shared";

/// A line: what there is, or what happens when.
#[derive(Clone, Debug)]
pub(super) struct StoryLine {
    /// Each as it is in the world that breaks a promise, and in its twin.
    words: Vec<[String; 2]>,
}

impl StoryLine {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let word = |word: &str| {
            let (broken, mended) = word.split_once('|').unwrap_or((word, word));
            [broken.to_owned(), mended.to_owned()]
        };
        let words: Vec<[String; 2]> = text.split_whitespace().map(word).collect();
        match words.len() {
            0 | 1 => Err(format!("no line of a story: {text}")),
            _ => Ok(Self { words }),
        }
    }

    /// As one of the two has it.
    pub(super) fn words(&self, twin: Twin) -> Vec<&str> {
        let words = self.words.iter().map(|[broken, mended]| match twin {
            Twin::Broken => broken.as_str(),
            Twin::Mended => mended.as_str(),
        });
        words.collect()
    }
}

/// A number.
pub(super) fn number(word: &str) -> Result<f64, String> {
    let number = word.parse().ok().filter(|it: &f64| *it >= 0.0);
    number.ok_or_else(|| format!("not a number: {word}"))
}

/// A second of the world.
pub(super) fn time(word: &str) -> Result<Time, String> {
    let seconds = Duration::try_from_secs_f64(number(word)?);
    let seconds = seconds.map_err(|error| format!("{word}: {error}"))?;
    Ok(Time::ZERO + seconds)
}

/// `FAIR_SHARE 100 lease=60 refresh=5`.
pub(super) fn template(words: &[&str]) -> Result<Template, String> {
    let [kind, capacity, options @ ..] = words else {
        return Err("a template has a kind and a capacity".to_owned());
    };
    let known = AlgorithmKind::ALL.into_iter();
    let found = known.clone().find(|known| known.as_str() == *kind);
    let kind = found.ok_or_else(|| format!("not a kind: {kind}"))?;
    let (mut lease, mut refresh) = (60.0, 5.0);
    for option in options {
        match option.split_once('=') {
            Some(("lease", seconds)) => lease = number(seconds)?,
            Some(("refresh", seconds)) => refresh = number(seconds)?,
            _ => return Err(format!("not an option: {option}")),
        }
    }
    let templates = Templates::parse(&[TemplateSpec {
        identifier_glob: Some(RESOURCE.to_owned()),
        capacity: Some(number(capacity)?),
        kind: Some(kind),
        lease_length: Some(Duration::from_secs_f64(lease)),
        refresh_interval: Some(Duration::from_secs_f64(refresh)),
        ..TemplateSpec::default()
    }]);
    let templates = templates.map_err(|problems| format!("{problems:?}"))?;
    let template = templates.iter().next();
    template
        .map(|template| template.as_ref().clone())
        .ok_or_else(|| "no template".to_owned())
}
