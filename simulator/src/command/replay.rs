//! `doorward-sim replay`: plays a trace of demand against templates and a tree.
//!
//! The flags make the scenario. The clients of the trace are spread over the leaves of the tree,
//! and the run takes as long as the trace. Its only limit is that clients never exceed the
//! capacity.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use doorward_documents::parse_bytes;
use doorward_engine::id::ResourceId;
use doorward_engine::templates::{Template, Templates};
use doorward_simulator::scenario::nodes::listed;
use doorward_simulator::scenario::read::file_stem;
use doorward_simulator::scenario::templates::{ids, written};
use doorward_simulator::scenario::{CLIENTS_MAX, DURATION_MAX, Node, Scenario, TRACE_ROWS_MAX};
use doorward_trace::Trace;
use humantime::format_duration;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::flags::ReplayFlags;

/// Shortest sampling interval, and number of samples of a long replay.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);
const SAMPLES: u32 = 1_440;

/// Plays the trace, or prints its scenario.
pub(crate) fn run(flags: &ReplayFlags) -> Result<(), Failure> {
    let file = file(flags)?;
    if flags.print_scenario {
        return super::print_scenario(file);
    }
    // Without a name in it, the scenario takes the name of its file.
    let name = format!("replay-{}.yaml", file_stem(&flags.trace.to_string_lossy()));
    let scenario = Scenario::parse(&file.to_string(), &name, Path::new(""));
    let scenario = scenario.map_err(anyhow::Error::from)?;
    super::play(&scenario, super::repeated(), flags.out.as_deref())
}

/// Returns the scenario file of the flags.
fn file(flags: &ReplayFlags) -> anyhow::Result<Value> {
    let (templates, resource) = templates(flags)?;
    let file = flags.trace.display().to_string();
    let trace = Trace::read(&file, File::open(&flags.trace), CLIENTS_MAX, TRACE_ROWS_MAX)?;
    let seconds = trace.rows.last().map_or(0.0, |row| row.time_s) / flags.speed;
    let duration = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    if duration < Duration::from_secs(1) || duration > DURATION_MAX {
        let advice = "choose --speed so that it takes between 1 s and 365 days";
        bail!("the trace would take {duration:?}; {advice}");
    }
    let sample_every = Duration::from_secs((duration / SAMPLES).as_secs());
    let sample_every = sample_every.max(SAMPLE_EVERY).min(duration);
    let trace = json!({"file": file, "speed": flags.speed, "scale": flags.scale});
    let root = [Node::new("root", None, 1)];
    Ok(json!({
        "description": format!("The demand of {}.", file_stem(&file)),
        "seed": flags.seed,
        "duration": format_duration(duration).to_string(),
        "sample_every": format_duration(sample_every).to_string(),
        "templates": written(&templates),
        "tree": listed(flags.tree.as_deref().unwrap_or(&root)),
        "clients": [{"resource": resource.as_str(), "wants": {"trace": trace}}],
        "limits": {"overshoot": 0},
    }))
}

/// Returns the template that applies and the resource that clients ask for.
fn templates(flags: &ReplayFlags) -> anyhow::Result<(Templates, ResourceId)> {
    let file = flags.templates.display().to_string();
    let bytes = fs::read(&flags.templates);
    let bytes = bytes.with_context(|| format!("{file}: cannot be read"))?;
    let all = parse_bytes(&bytes, &file);
    let all = all.map_err(|error| anyhow!("the templates are invalid\n{error}"))?;
    let resource = match &flags.resource {
        Some(resource) => resource.clone(),
        None => only_id(&all, &file)?,
    };
    let Some(template) = all.find(&resource) else {
        bail!("no template in {file} matches {resource}; give another --resource");
    };
    // The template as it would be written for this resource alone.
    let alone = Template {
        identifier_glob: resource.as_str().to_owned(),
        ..Template::clone(template)
    };
    let templates = flags.what_if.changed([&alone].into_iter())?;
    Ok((templates, resource))
}

/// Returns the id of the only template for a single resource.
fn only_id(templates: &Templates, file: &str) -> anyhow::Result<ResourceId> {
    match ids(templates).as_slice() {
        [id] => Ok(id.clone()),
        [] => {
            bail!("all templates in {file} match several resources; choose one with --resource ID")
        }
        many => {
            let names: Vec<&str> = many.iter().map(ResourceId::as_str).collect();
            let names = names.join(", ");
            bail!("{file} has templates for several resources; give one with --resource: {names}")
        }
    }
}
