//! The demonstration: a tree of servers on loopback and self-throttling clients at its leaves, in
//! one process, over real gRPC, following real demand.
//!
//! Only the work is simulated: each client asks its leaf for the demand in its row of the trace, gets a lease, and puts
//! every request through a rate limiter that follows it. A terminal shows a live view, any other output a line a
//! second. At the end there is a summary.

mod closing_summary;
mod crowd;
mod demo_figures;
mod outline;
mod screen;
mod servers;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use doorward_engine::time::Time;
use doorward_server::files;
use doorward_server::logs::{self, LogFormat};

use crate::demo::crowd::DemoCrowd;
use crate::demo::demo_figures::{Amounts, DemoFigures};
use crate::demo::outline::Outline;
use crate::demo::screen::{Key, Scene, Screen};
use crate::demo::servers::DemoServers;
use crate::failure::{Failure, Result};
use crate::interruption::interruption;
use crate::output;
use doorward_server::clock::Clock;
use doorward_trace::Trace;

/// The resource that everyone shares.
const RESOURCE: &str = "demo";

/// The demand.
const TRACE: &str = include_str!("../demo/demo.csv");

/// Interval between two measurements, and two drawings.
const TICK: Duration = Duration::from_millis(100);

/// Looking at all clients takes less than this, unless something came between.
const AT_ONCE: Duration = Duration::from_micros(500);

/// Time after which `--plain` kills the root.
const KILLS_AT: Duration = Duration::from_secs(10);

/// Number of attempts.
const ATTEMPTS_MAX: u32 = 10;

/// Run a tree of servers and clients in this process, and show who gets how much.
#[derive(Clone, Debug, Args)]
pub(crate) struct DemoFlags {
    /// Stop after this long [default: go on until Ctrl-C, the demand starting over at its end].
    #[arg(long = "for", value_name = "DURATION", value_parser = doorward_documents::parse_duration)]
    pub(crate) duration: Option<Duration>,

    /// Capacity, per second. The default is the mean demand, so that it is now enough and now too little.
    #[arg(long, value_name = "NUMBER", default_value_t = 119.0, value_parser = capacity)]
    pub(crate) capacity: f64,

    /// Print a line a second instead of the live view, also on a terminal. After 10 s, the root is killed once.
    #[arg(long)]
    pub(crate) plain: bool,
}

/// Runs the demonstration to its end, or until Ctrl-C. Its own output is the view; servers and clients log errors only.
pub(crate) async fn run(flags: DemoFlags) -> Result {
    let logs = logs::start("error", LogFormat::Text);
    let _logs = logs.map_err(|error| Failure::Usage(error.to_string()))?;
    let shown = show(flags).await;
    shown.map_err(|error| match error.downcast_ref::<io::Error>() {
        Some(why) if why.kind() == io::ErrorKind::BrokenPipe => Failure::Output(why.kind().into()),
        _ => Failure::No(format!("{error:#}")),
    })
}

async fn show(flags: DemoFlags) -> anyhow::Result<()> {
    let trace = Trace::read("demo.csv", Ok(TRACE.as_bytes()), usize::MAX, usize::MAX)?;
    files::raise_limit();
    let outline = Outline::new(trace.clients.clone());
    let servers = DemoServers::start(flags.capacity).await?;
    let leaves = outline.clients.iter();
    let leaves = leaves.map(|client| servers.grpc_address(client.leaf));
    let leaves: Option<Vec<_>> = leaves.collect();
    let leaves = leaves.context("a client without a leaf")?;
    let clock = Clock::start();
    let crowd = DemoCrowd::start(&trace, &leaves, clock).await?;
    let mut show = Show {
        figures: DemoFigures::new(outline, flags.capacity, clock.now()),
        servers,
        crowd,
        clock,
        flags,
    };
    show.run().await?;
    show.crowd.stop().await;
    show.servers.stop().await;
    closing_summary::write(&mut output::stdout(), &show.figures).context("cannot write the summary")
}

/// Everything that is at work, and what is measured of it.
struct Show {
    servers: DemoServers,
    crowd: DemoCrowd,
    figures: DemoFigures,
    clock: Clock,
    flags: DemoFlags,
}

impl Show {
    /// Goes on until the end: with the live view, or a line a second.
    async fn run(&mut self) -> anyhow::Result<()> {
        // Signals come first: the first line may wait for a reader for ever.
        let mut interrupted = std::pin::pin!(interruption()?);
        let pages = self.servers.pages();
        let mut screen = None;
        if !self.flags.plain && io::stdout().is_terminal() {
            screen = Some(Screen::open().context("cannot draw on this terminal; try --plain")?);
        } else {
            let mut out = output::stdout();
            writeln!(out, "{}", closing_summary::title(&self.figures))?;
            closing_summary::write_tree(&mut out, &self.figures.outline, &pages)?;
            writeln!(out, "{}", closing_summary::LEGEND)?;
        }
        let mut ticks = tokio::time::interval(TICK);
        let (mut printed, mut has_killed) = (0, false);
        let longest = self.flags.duration.unwrap_or(Duration::MAX);
        while self.figures.elapsed() < longest {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = &mut interrupted => break,
            }
            let servers = self.servers.read();
            let (clients, now) = self.read_clients();
            self.figures.measure(&servers, &clients, now);
            self.servers.start_killed(self.clock.now()).await;
            let kills = match &screen {
                Some(screen) => {
                    screen.draw(&Scene {
                        figures: &self.figures,
                        pages: &pages,
                        trace_time: self.crowd.trace_time(self.clock.now()),
                        killed: self.servers.killed(),
                    })?;
                    match screen.key()? {
                        Some(Key::Quit) => break,
                        key => key.is_some(),
                    }
                }
                None => {
                    let second = self.figures.elapsed().as_secs();
                    if second > std::mem::replace(&mut printed, second) {
                        let line = closing_summary::line(&self.figures, self.servers.killed());
                        writeln!(output::stdout(), "{line}")?;
                    }
                    let kills = self.figures.elapsed() >= KILLS_AT;
                    kills && !std::mem::replace(&mut has_killed, true)
                }
            };
            if kills {
                self.servers.kill_next(self.clock.now());
            }
        }
        Ok(())
    }

    /// Reads all clients, with the time of the reading. If the system stopped this thread between the two, a second
    /// would seem longer or shorter than it was, with more or less use in it.
    fn read_clients(&self) -> (Vec<Amounts>, Time) {
        let mut clients = Vec::new();
        let mut now = self.clock.now();
        for _attempt in 0..ATTEMPTS_MAX {
            let before = self.clock.now();
            (clients, now) = (self.crowd.read(), self.clock.now());
            if now.since(before) <= AT_ONCE {
                break;
            }
        }
        (clients, now)
    }
}

fn capacity(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| (0.0..=1e6).contains(number));
    number.ok_or_else(|| "give a number from 0 to 1000000".to_owned())
}
