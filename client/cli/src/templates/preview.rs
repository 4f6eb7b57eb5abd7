//! Preview of a change: by line, by template, and for leases.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::flags::Common;
use crate::granted::number;
use crate::templates::author::plain;
use crate::templates::document::Document;
use crate::templates::effect::{self, Effect, Effects};
use crate::templates::lines;
use crate::templates::live::{self, ReportedBy};
use crate::templates::meaning::{self, MeaningLine};
use crate::templates::show::counted;
use crate::templates::store::TemplateStore;
use crate::templates::warnings::{InForceBefore, Warnings};
use doorward_pages::terminal::palette::{Palette, Tone};

/// Resources that are listed at most.
const EFFECTS_SHOWN: usize = 50;

/// Preview of a change.
#[derive(Debug)]
pub(crate) struct Preview<'a> {
    /// Document in force. None: there is none.
    old: Option<&'a Document>,
    new: &'a Document,
    by_template: ByTemplate,
    /// For those who hold leases, by whose word; or why that is not known. None: it was not asked
    /// for, since nothing changes in meaning.
    by_resource: Option<Result<(ReportedBy, Effects), String>>,
    /// Warnings about the new document.
    warnings: Warnings,
    /// Where what is changed is kept.
    store: &'a TemplateStore,
}

/// Changes by template.
#[derive(Debug)]
enum ByTemplate {
    Lines(Vec<MeaningLine>),
    /// The old document has this number of problems.
    OldUnknown(usize),
    /// The new document is invalid.
    NewUnknown,
}

impl<'a> Preview<'a> {
    /// Compares, and asks a server for what is in use.
    pub(crate) async fn new(
        common: &Common,
        store: &'a TemplateStore,
        old: Option<&'a Document>,
        new: &'a Document,
    ) -> Preview<'a> {
        let nothing = doorward_engine::template::Templates::default();
        let was = match old.map(Document::templates) {
            None => Ok(&nothing),
            Some(templates) => templates.map_err(|error| error.problems.len()),
        };
        let by_template = match (was, new.templates()) {
            (Ok(was), Ok(is)) => ByTemplate::Lines(meaning::changes(was, is)),
            (Err(problems), Ok(_)) => ByTemplate::OldUnknown(problems),
            (_, Err(_)) => ByTemplate::NewUnknown,
        };
        // With nothing in force the server may yet go by what it had before.
        let was = if old.is_some() { was.ok() } else { None };
        let in_use = match (&by_template, new.templates()) {
            (ByTemplate::Lines(lines), _) if lines.is_empty() => None,
            (_, Ok(_)) => Some(live::ask(common).await),
            (_, Err(_)) => None,
        };
        let warnings = match &new.read {
            Ok(is) => {
                let live = match &in_use {
                    Some(Ok((who, live))) if who.goes_by(store) => live.as_slice(),
                    _ => &[],
                };
                let before = InForceBefore {
                    templates: was,
                    live,
                    // In etcd, servers note it for each other.
                    is_forgotten: !store.is_in_etcd(),
                };
                Warnings::of(&new.name, is, &before)
            }
            Err(_) => Warnings::default(),
        };
        let by_resource = match (in_use, new.templates()) {
            (Some(in_use), Ok(is)) => {
                Some(in_use.map(|(who, live)| (who, effect::effects(was, is, &live))))
            }
            _ => None,
        };
        Preview {
            old,
            new,
            by_template,
            by_resource,
            warnings,
            store,
        }
    }

    pub(crate) fn is_same(&self) -> bool {
        self.old.is_some_and(|old| old.bytes == self.new.bytes)
    }

    /// Returns the warnings.
    pub(crate) fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    pub(crate) fn write(&self, out: &mut impl Write, palette: Palette) -> io::Result<()> {
        let old = self.old.map(|old| (old.name.as_str(), old.text()));
        let (old_name, old_text) = old.unwrap_or(("nothing", "".into()));
        let new = (self.new.name.as_str(), &*self.new.text());
        lines::write(out, (old_name, &old_text), new, palette)?;
        writeln!(out)?;
        self.write_templates(out, palette)?;
        self.warnings.write(out, palette)?;
        self.warnings.write_need(out, palette)?;
        match &self.by_resource {
            None => Ok(()),
            Some(Err(problem)) => {
                let problem = plain(problem).replace('\n', "; ");
                let message = format!("the effect on resources in use is unknown: {problem}");
                writeln!(out, "{}", palette.paint(Tone::Quiet, &message))
            }
            Some(Ok((who, effects))) => {
                if !who.goes_by(self.store) {
                    let message = format!(
                        "{who} uses other templates than those at {}: a change here changes nothing there",
                        self.store.name()
                    );
                    writeln!(out, "{}", palette.paint(Tone::Bad, &plain(&message)))?;
                }
                write_effects(out, &plain(&who.to_string()), effects, palette)
            }
        }
    }

    fn write_templates(&self, out: &mut impl Write, palette: Palette) -> io::Result<()> {
        match &self.by_template {
            ByTemplate::Lines(lines) if lines.is_empty() => {
                writeln!(out, "no template changes in meaning")
            }
            ByTemplate::Lines(lines) => {
                writeln!(out, "by template:")?;
                for line in lines {
                    let text = format!("  {} {}", line.sign, plain(&line.text));
                    writeln!(out, "{}", palette.paint(line.tone(), &text))?;
                }
                Ok(())
            }
            ByTemplate::OldUnknown(problems) => {
                let (count, s) = counted(*problems);
                let message = format!(
                    "the document at {} is invalid ({count} problem{s}): servers keep the templates they \
                     had, and the changes by template are unknown",
                    self.store.name()
                );
                writeln!(out, "{}", palette.paint(Tone::Partial, &message))
            }
            ByTemplate::NewUnknown => {
                let message = format!("{} is invalid", self.new.name);
                writeln!(out, "{}", palette.paint(Tone::Bad, &message))
            }
        }
    }

    /// For programs. Its field names are an interface.
    pub(crate) fn to_json(&self) -> Value {
        let templates = match &self.by_template {
            ByTemplate::Lines(lines) => Some(
                lines
                    .iter()
                    .map(|line| format!("{} {}", line.sign, line.text))
                    .collect::<Vec<_>>(),
            ),
            _ => None,
        };
        let (resources, unaffected, source, problem) = match &self.by_resource {
            None => (None, None, None, None),
            Some(Err(problem)) => (None, None, None, Some(problem)),
            Some(Ok((who, effects))) => {
                let listed = effects.affected.iter().map(effect_json);
                let listed: Vec<Value> = listed.collect();
                let source = Some(&who.source);
                (Some(listed), Some(effects.unaffected), source, None)
            }
        };
        json!({
            "different": !self.is_same(),
            "templates": templates,
            "warning": self.warnings.text(),
            "warnings": self.warnings.to_json(),
            "needs_force": self.warnings.needs_force(),
            "resources": resources,
            "resources_unaffected": unaffected,
            "resources_problem": problem,
            "resources_templates_source": source,
        })
    }
}

fn effect_json(effect: &Effect) -> Value {
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

fn write_effects(
    out: &mut impl Write,
    who: &str,
    effects: &Effects,
    palette: Palette,
) -> io::Result<()> {
    let Effects {
        affected,
        unaffected,
        elsewhere,
    } = effects;
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
