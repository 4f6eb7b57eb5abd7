//! Forecast of a change: warnings, and the effect on resources in use.

use std::io::{self, Write};

use doorward_documents::Located;
use doorward_pages::terminal::palette::{Palette, Tone};
use serde_json::{Map, Value, json};

use crate::documents::author::plain;
use crate::documents::{Change, Effect, counted};
use crate::granted::number;
use crate::templates::effect::{self, Effects};
use crate::templates::live;
use crate::templates::warnings::{InForceBefore, Warnings};

/// Resources that are listed at most.
const EFFECTS_SHOWN: usize = 50;

/// Forecast of a change.
#[derive(Debug, Default)]
pub(crate) struct Forecast {
    warnings: Warnings,
    /// Effect on resources in use, or the reason why it is unknown. None: no server was asked.
    in_use: Option<Result<InUse, String>>,
}

/// Effect on resources in use.
#[derive(Debug)]
struct InUse {
    /// Server that reported the resources.
    who: String,
    /// Source of that server's templates.
    source: String,
    /// Place of the templates that change, if that server uses other ones.
    unused: Option<String>,
    effects: Effects,
}

impl Forecast {
    /// Warns, and asks a server for what is in use.
    pub(super) async fn new(change: Change<'_, Located>, asks: bool) -> Self {
        let (new, store) = (change.new, change.store);
        let old = change.old.map(|old| &old.templates);
        let live = match store {
            Some(store) if asks => Some(live::ask(store.common).await),
            _ => None,
        };
        let goes_by = |who: &live::ReportedBy| store.is_some_and(|store| who.goes_by(store));
        let before = InForceBefore {
            templates: old,
            live: match &live {
                Some(Ok((who, live))) if goes_by(who) => live,
                _ => &[],
            },
            // In etcd, servers note it for each other.
            is_forgotten: store.is_some_and(|store| !store.is_in_etcd()),
        };
        let warnings = Warnings::of(change.name, new, &before);
        let in_use = live.map(|live| {
            live.map(|(who, live)| InUse {
                unused: store
                    .filter(|_| !goes_by(&who))
                    .map(|store| store.name().to_owned()),
                effects: effect::effects(old, &new.templates, &live),
                who: who.to_string(),
                source: who.source,
            })
        });
        Self { warnings, in_use }
    }
}

impl Effect for Forecast {
    fn write_warnings(&self, out: &mut impl Write, palette: Palette) -> io::Result<()> {
        self.warnings.write(out, palette)
    }

    fn refusal(&self) -> Option<String> {
        self.warnings.refusal()
    }

    fn write(&self, out: &mut impl Write, palette: Palette) -> io::Result<()> {
        match &self.in_use {
            None => Ok(()),
            Some(Err(problem)) => {
                let problem = plain(problem).replace('\n', "; ");
                let message = format!("the effect on resources in use is unknown: {problem}");
                writeln!(out, "{}", palette.paint(Tone::Quiet, &message))
            }
            Some(Ok(in_use)) => in_use.write(out, palette),
        }
    }

    fn to_json(&self) -> Map<String, Value> {
        let in_use = self.in_use.as_ref();
        let problem = in_use.and_then(|in_use| in_use.as_ref().err());
        let in_use = in_use.and_then(|in_use| in_use.as_ref().ok());
        let effects = in_use.map(|in_use| &in_use.effects);
        let listed = |effects: &Effects| effects.affected.iter().map(effect_json).collect();
        let fields = [
            ("warning", json!(self.warnings.text())),
            ("warnings", self.warnings.to_json()),
            ("needs_force", json!(self.warnings.needs_force())),
            ("resources", effects.map_or(Value::Null, listed)),
            (
                "resources_unaffected",
                json!(effects.map(|it| it.unaffected)),
            ),
            ("resources_problem", json!(problem)),
            (
                "resources_templates_source",
                json!(in_use.map(|it| &it.source)),
            ),
        ];
        fields
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect()
    }
}

fn effect_json(effect: &effect::Effect) -> Value {
    let live = &effect.live;
    json!({
        "resource_id": effect.resource,
        "capacity": live.capacity,
        "new_capacity": effect.capacity,
        "wants": live.wants,
        "granted": live.granted,
        "reserved": live.reserved,
        "clients_count": live.clients,
        "words": effect.words,
    })
}

impl InUse {
    fn write(&self, out: &mut impl Write, palette: Palette) -> io::Result<()> {
        let who = &plain(&self.who);
        if let Some(name) = &self.unused {
            let message = format!(
                "{who} uses other templates than those at {}: a change here changes nothing there",
                plain(name)
            );
            writeln!(out, "{}", palette.paint(Tone::Bad, &message))?;
        }
        let Effects {
            affected,
            unaffected,
            elsewhere,
        } = &self.effects;
        if *elsewhere > 0 {
            let (count, s) = counted(*elsewhere);
            let message = format!(
                "{who} uses other templates than these: {count} resource{s} in use there with another capacity"
            );
            writeln!(out, "{}", palette.paint(Tone::Partial, &message))?;
        }
        if affected.is_empty() {
            return match unaffected {
                0 => writeln!(out, "nothing is in use at {who}"),
                count => writeln!(out, "in use at {who}: {count}, none of them affected"),
            };
        }
        writeln!(out, "in use at {who}:")?;
        for effect in affected.iter().take(EFFECTS_SHOWN) {
            write_effect(out, effect, palette)?;
        }
        let more = affected.len().saturating_sub(EFFECTS_SHOWN);
        if more > 0 {
            writeln!(out, "  and {more} more that are affected")?;
        }
        match unaffected {
            0 => Ok(()),
            count => writeln!(out, "  resources without a change: {count}"),
        }
    }
}

fn write_effect(out: &mut impl Write, effect: &effect::Effect, palette: Palette) -> io::Result<()> {
    let live = &effect.live;
    let then = match effect.capacity {
        Some(then) if then == live.capacity => String::new(),
        Some(then) => format!(" → {}", number(then)),
        None => " → none".to_owned(),
    };
    writeln!(
        out,
        "  {}  capacity {}{then}  wants {}  granted {}  reserved {}  clients {}",
        palette.paint(Tone::Strong, &plain(&effect.resource)),
        number(live.capacity),
        number(live.wants),
        number(live.granted),
        number(live.reserved),
        live.clients
    )?;
    for words in &effect.words {
        writeln!(out, "    {}", palette.paint(effect.tone, words))?;
    }
    Ok(())
}
