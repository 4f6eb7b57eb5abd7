//! `doorward-sim replay`: plays a trace of demand against templates and a tree.
//!
//! The flags make the scenario. The clients of the trace are spread over the leaves of the tree,
//! and the run takes as long as the trace. Its only limit is that clients never exceed the
//! capacity.

use std::path::Path;
use std::time::Duration;

use doorward_client::state::Mode;
use doorward_documents::parse_bytes;
use doorward_engine::id::ResourceId;
use doorward_engine::template::{Template, Templates};

use doorward_simulator::scenario::demand::{Demand, Trace};
use doorward_simulator::scenario::read::files::bytes_of;
use doorward_simulator::scenario::usage::Usage;
use doorward_simulator::scenario::{CLIENTS_MAX, ClientGroup, Limits, Scenario};
use doorward_trace::{TraceSource, scan};

use crate::command::SETTLES_FOR;
use crate::command::tree_flag::{TreeFlag, leaves};
use crate::command::what_if::typed;
use crate::failure::Failure;
use crate::flags::{ReplayFlags, WhatIfFlags};

/// Shortest sampling interval, and number of samples of a long replay.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);
const SAMPLES: u32 = 1_440;

/// Longest run, as in scenario files.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Plays the trace, or prints its scenario.
pub(crate) fn run(flags: &ReplayFlags) -> Result<(), Failure> {
    let mut scenario = scenario(flags)?;
    if flags.print_scenario {
        // Without a name in it, the scenario takes the name of its file.
        scenario.name = String::new();
        return super::print_scenario(&scenario, &super::repeated());
    }
    super::play(&scenario, super::repeated(), &flags.output)
}

fn scenario(flags: &ReplayFlags) -> Result<Scenario, Failure> {
    let (templates, resource) = templates(flags)?;
    let source = TraceSource::File(flags.trace.clone());
    let scan = scan(&source, CLIENTS_MAX).map_err(Failure::usage)?;
    let nodes = flags
        .tree
        .clone()
        .unwrap_or(TreeFlag::Shape(Vec::new()))
        .nodes()?;
    let duration = scan.length.as_secs_f64() / flags.speed * f64::from(flags.repeat);
    let duration = Duration::try_from_secs_f64(duration).unwrap_or(Duration::MAX);
    if duration < Duration::from_secs(1) || duration > DURATION_MAX {
        let message = format!(
            "the trace would take {duration:?}; choose --speed and --repeat so that it takes \
             between 1 s and 365 days"
        );
        return Err(Failure::Usage(message));
    }
    let algorithm = templates
        .find(&resource)
        .map(|template| &template.algorithm);
    let learning = algorithm.map(|algorithm| algorithm.learning_mode_duration);
    let refresh = algorithm.map(|algorithm| algorithm.refresh_interval);
    let sample_every = Duration::from_secs((duration / SAMPLES).as_secs());
    Ok(Scenario {
        name: name_of(flags),
        description: description(flags, &templates, nodes.len()),
        seed: flags.seed,
        duration,
        sample_every: sample_every.max(SAMPLE_EVERY).min(duration),
        settled_after: (learning.unwrap_or_default() + SETTLES_FOR).min(duration / 2),
        clients: vec![ClientGroup {
            name: "client".to_owned(),
            count: scan.clients.len(),
            nodes: leaves(&nodes),
            nodes_file: None,
            first: Usage {
                resource,
                priority: 0,
                mode: Mode::Safe,
                demand: Demand::Trace(Trace {
                    source,
                    clients: scan.clients,
                    length: scan.length,
                    speed: flags.speed,
                    scale: flags.scale,
                    repeat: flags.repeat,
                }),
                limiter: None,
            },
            also: Vec::new(),
            start_within: refresh.unwrap_or_default().min(duration),
        }],
        nodes,
        templates,
        limits: Limits {
            overshoot_max: Some(0.0),
            ..Limits::default()
        },
        ..Scenario::default()
    })
}

/// Returns a scenario name from the trace's file name.
fn name_of(flags: &ReplayFlags) -> String {
    let stem = flags.trace.file_stem().map(|stem| stem.to_string_lossy());
    let plain = |c: char| if c.is_alphanumeric() { c } else { '-' };
    let stem = stem.unwrap_or_default();
    let name: String = stem.chars().map(plain).take(90).collect();
    format!("replay-{name}")
}

/// Returns the template that applies and the resource that clients ask for.
fn templates(flags: &ReplayFlags) -> Result<(Templates, ResourceId), Failure> {
    let file = flags.templates.display().to_string();
    let bytes = bytes_of(&flags.templates)
        .map_err(|cause| Failure::Usage(format!("{file}: cannot be read: {cause}")))?;
    let all = parse_bytes(&bytes, &file)
        .map_err(|error| Failure::Usage(format!("the templates are invalid\n{error}")))?;
    let resource = match &flags.resource {
        Some(resource) => resource.clone(),
        None => only_id(&all, &file)?,
    };
    let Some(template) = all.find(&resource) else {
        let message = format!("no template in {file} matches {resource}; give another --resource");
        return Err(Failure::Usage(message));
    };
    // The template as it would be written for this resource alone.
    let alone = Template {
        identifier_glob: resource.as_str().to_owned(),
        ..Template::clone(template)
    };
    let specs = [WhatIfFlags::NOTHING.spec_of(&alone)];
    let alone = Templates::parse(&specs).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::Usage(format!("for {resource} alone, {}", problems.join("; ")))
    })?;
    Ok((flags.what_if.changed(&alone)?, resource))
}

/// Returns the id of the only template for a single resource.
fn only_id(templates: &Templates, file: &str) -> Result<ResourceId, Failure> {
    let exact = templates.iter().filter(|template| {
        let glob = &template.identifier_glob;
        !glob.contains(['*', '?', '[', '{', '\\'])
    });
    let ids: Vec<ResourceId> = exact
        .filter_map(|template| ResourceId::new(&template.identifier_glob).ok())
        .collect();
    match ids.as_slice() {
        [id] => Ok(id.clone()),
        [] => Err(Failure::Usage(format!(
            "all templates in {file} match several resources; choose one with --resource ID"
        ))),
        many => {
            let names: Vec<&str> = many.iter().map(ResourceId::as_str).collect();
            Err(Failure::Usage(format!(
                "{file} has templates for several resources; give one with --resource: {}",
                names.join(", ")
            )))
        }
    }
}

fn description(flags: &ReplayFlags, templates: &Templates, nodes: usize) -> String {
    let capacity = templates
        .iter()
        .next()
        .map(|template| template.capacity.get());
    let times = |what: &str, factor: f64| {
        if factor == 1.0 {
            String::new()
        } else {
            format!(", {what} × {factor}")
        }
    };
    format!(
        "The demand of {}{}{}, against a capacity of {}{}{}, {}.",
        file_name(&flags.trace),
        times("clock", flags.speed),
        times("amounts", flags.scale),
        capacity.unwrap_or_default(),
        match flags.what_if.capacity_factor {
            1.0 => String::new(),
            factor => format!(" (× {factor})"),
        },
        match flags.what_if.lease_length {
            None => String::new(),
            Some(length) => format!(", with leases of {}", typed(length)),
        },
        if nodes == 1 {
            "at one server".to_owned()
        } else {
            format!("at {nodes} servers")
        },
    )
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
