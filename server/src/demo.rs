//! The demonstration: a root on loopback and self-throttling clients in one process, over real
//! gRPC, following real demand.
//!
//! Nothing is pretended but the work: each client asks for what its row of the trace says, gets a
//! lease, and puts every request through a rate limiter that follows it. On a terminal there is a
//! live view; elsewhere a line a second. At the end, a summary.

mod crowd;
mod figures;
mod summary;
mod trace;
mod view;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use doorward_engine::node;
use doorward_engine::template::{AlgorithmKind, TemplateSpec, Templates};

use crate::app::{Config, Server};
use crate::clock::{self, Clock};
use crate::demo::crowd::{Crowd, Pace};
use crate::demo::figures::Figures;
use crate::demo::trace::Trace;
use crate::demo::view::{Screen, Wish};

/// The resource that everyone shares.
const RESOURCE: &str = "demo";

/// Where the built-in trace gets interesting.
const BUILT_IN_FROM: Duration = Duration::from_secs(120);

/// How often everything is measured and the view is drawn.
const TICK: Duration = Duration::from_millis(100);

/// Where servers are by default, gRPC and status page: the command line looks there.
const USUAL_PORTS: (u16, u16) = (6970, 6971);

/// What the demonstration is to show.
#[derive(Clone, Debug, Args)]
pub struct DemoFlags {
    /// Stop after this long [default: go on until Ctrl-C, the trace starting over at its end].
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub duration: Option<Duration>,

    /// How many times faster than the trace's clock.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,

    /// Where in the trace to begin [default: 2m in the built-in one, where demand picks up].
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub from: Option<Duration>,

    /// Follow this trace instead of the built-in one: CSV with the header time_s,client,wants.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// What there is to share, per second [default: the trace's mean demand, so that there is
    /// now enough and now too little].
    #[arg(long, value_name = "NUMBER", value_parser = capacity)]
    pub capacity: Option<f64>,

    /// Print a line a second instead of the live view, also on a terminal.
    #[arg(long)]
    pub plain: bool,
}

/// Runs the demonstration until it is over or somebody interrupts it.
///
/// # Errors
///
/// If the trace cannot be read or a server not be started.
pub async fn run(flags: DemoFlags) -> anyhow::Result<()> {
    let mut from = flags.from.unwrap_or_default();
    let trace = match &flags.trace {
        None => {
            from = flags.from.unwrap_or(BUILT_IN_FROM);
            Trace::built_in()?
        }
        Some(path) => {
            let file = File::open(path)
                .with_context(|| format!("cannot read the trace {}", path.display()))?;
            Trace::read(file, &path.display().to_string())?
        }
    };
    let capacity = flags
        .capacity
        .unwrap_or_else(|| trace.total_demand().1.ceil().max(1.0));
    let server = start_server(capacity).await?;
    let page = server
        .http_address()
        .map(|address| format!("http://{address}/"));
    let page = page.unwrap_or_default();
    let clock = Clock::start();
    let pace = Pace::new(&trace, from, flags.speed);
    let crowd = Crowd::start(&trace, server.grpc_address(), pace, clock).await?;
    let figures = Figures::new(capacity, crowd.members(), clock.now());
    let live = !flags.plain && io::stdout().is_terminal();
    let figures = if live {
        watch(figures, &crowd, clock, &flags, &page).await?
    } else {
        tell(figures, &crowd, clock, &flags, &page).await?
    };
    crowd.stop().await;
    server.shutdown().await;
    summary::write(&mut io::stdout().lock(), &figures).context("cannot write the summary")
}

async fn start_server(capacity: f64) -> anyhow::Result<Server> {
    let template = TemplateSpec {
        identifier_glob: Some(RESOURCE.to_owned()),
        capacity: Some(capacity),
        description: Some("requests per second that all clients of the demonstration share".into()),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(20)),
        refresh_interval: Some(Duration::from_secs(2)),
        // This server has no predecessor to learn from.
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    };
    let templates = Templates::parse(&[template])
        .map_err(|problems| anyhow::anyhow!("the capacity does not do: {problems:?}"))?;
    let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let config = |(grpc, http)| Config {
        listen: loopback(grpc),
        http_listen: Some(loopback(http)),
        templates: templates.clone(),
        templates_source: "the demonstration".to_owned(),
        node: node::Config {
            seed: clock::seed(),
            refresh_floor: crowd::EARLY_GAP,
            ..node::Config::default()
        },
        shutdown_grace: Duration::from_secs(2),
        ..Config::default()
    };
    match Server::start(config(USUAL_PORTS)).await {
        Ok(server) => Ok(server),
        // Something else is there: any other ports will do.
        Err(_) => Ok(Server::start(config((0, 0))).await?),
    }
}

/// The live view, until it is over.
async fn watch(
    mut figures: Figures,
    crowd: &Crowd,
    clock: Clock,
    flags: &DemoFlags,
    page: &str,
) -> anyhow::Result<Figures> {
    let mut screen = Screen::open().context("cannot draw on this terminal; try --plain")?;
    let mut ticks = tokio::time::interval(TICK);
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = &mut interrupted => break,
        }
        figures.measure(crowd.members(), clock.now());
        screen.draw(&figures, crowd.trace_time(clock.now()), flags.speed, page)?;
        if screen.wish()? == Some(Wish::Quit) || over(&figures, flags) {
            break;
        }
    }
    Ok(figures)
}

/// A line a second, until it is over.
async fn tell(
    mut figures: Figures,
    crowd: &Crowd,
    clock: Clock,
    flags: &DemoFlags,
    page: &str,
) -> anyhow::Result<Figures> {
    let mut out = io::stdout();
    writeln!(
        out,
        "{} clients share {} requests/s, fairly; status page: {page}",
        crowd.members().len(),
        figures.capacity
    )?;
    let mut ticks = tokio::time::interval(TICK);
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    let mut told = 0;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = &mut interrupted => break,
        }
        figures.measure(crowd.members(), clock.now());
        let second = figures.elapsed().as_secs();
        if second > told {
            told = second;
            writeln!(out, "{}", summary::line(&figures))?;
        }
        if over(&figures, flags) {
            break;
        }
    }
    Ok(figures)
}

fn over(figures: &Figures, flags: &DemoFlags) -> bool {
    flags
        .duration
        .is_some_and(|duration| figures.elapsed() >= duration)
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text
        .parse()
        .ok()
        .filter(|speed| (0.01..=1000.0).contains(speed));
    speed.ok_or_else(|| "give a number from 0.01 to 1000".to_owned())
}

fn capacity(text: &str) -> Result<f64, String> {
    let capacity = text
        .parse()
        .ok()
        .filter(|capacity| (0.0..=1e6).contains(capacity));
    capacity.ok_or_else(|| "give a number from 0 to 1000000".to_owned())
}
