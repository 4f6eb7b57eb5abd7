//! The load generator: requests per second and latencies of a server, waits of clients, storms, and the memory for all
//! that.
//!
//! `cargo bench -p doorward-tests --bench load -- --help` lists the options; docs/performance.md has the results. Under
//! `cargo test`, or with `--test` alone, each mode runs once, small, and must work, however long that takes.

mod cores;
mod echo;
mod fill;
mod flags;
mod generator;
mod holds;
mod latencies;
mod memory;
mod population;
mod probe;
mod small;
mod stall;
mod stalled;
mod stalls;
mod storm;
mod subject;
mod tally;
mod throughput;
mod wire;

use std::fmt::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use doorward_server::door::DoorConfig;
use doorward_server::files;
use doorward_tests::etcd;

use crate::cores::Cores;
use crate::fill::{fill, holders};
use crate::flags::{Flags, LoadFlags, Mode};
use crate::generator::{Extent, Load, Pace};
use crate::population::Population;
use crate::stall::Stall;
use crate::storm::break_loose;
use crate::subject::{Place, Subject, Templates, plain_build};
use crate::throughput::Figures;

/// The echo has the allocator of the server.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Warm-up before the measurement.
const WARM_UP: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().collect();
    let given: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    if given.is_empty() || given == ["--test"] {
        return small::run();
    }
    if given == ["--bench"] {
        arguments.push("closed".to_owned());
    }
    let flags = Flags::parse_from(arguments);
    if let Err(problem) = flags.mode.check() {
        let mut command = Flags::command();
        command.error(ErrorKind::ValueValidation, problem).exit();
    }
    if let Mode::Echo { listen } = flags.mode {
        echo::serve(listen);
        return ExitCode::SUCCESS;
    }
    if let Err(problem) = check_surroundings(&flags.mode, files::raise_limit()) {
        eprintln!("load: {problem}");
        return ExitCode::FAILURE;
    }
    let cores = Cores::divide();
    if let Some(cores) = &cores {
        cores.leave_server_alone();
    }
    let program = flags.server.clone();
    if program.is_none() && flags.mode.load().is_none_or(|load| load.address.is_none()) {
        eprintln!("building doorward-server, if need be: that may take minutes");
    }
    if run(flags, &Place { cores, program }) {
        ExitCode::SUCCESS
    } else {
        eprintln!("load: no call was granted in full");
        ExitCode::FAILURE
    }
}

/// Checks the environment before anything is measured. `files` is the limit of open files.
fn check_surroundings(mode: &Mode, files: usize) -> Result<(), String> {
    /// Number of open files beside connections.
    const OTHER_FILES: usize = 100;
    if let Some(address) = mode.load().and_then(|load| load.address) {
        TcpStream::connect(address)
            .map_err(|error| format!("cannot connect to {address}: {error}"))?;
    }
    if let Mode::Storm { clients, .. } = mode {
        if clients + OTHER_FILES > files {
            return Err(format!(
                "{clients} clients need a file each, and only {files} may be open: raise the limit (ulimit -n), or \
                 name fewer --clients"
            ));
        }
        // The server may open as many.
        let kept = DoorConfig::for_files(files).grpc.connections;
        if *clients > kept {
            eprintln!(
                "load: as {files} files may be open, the server keeps {kept} connections, and resets others for more"
            );
        }
    }
    if let Mode::Stalls { stalls, .. } = mode
        && (stalls.is_empty() || stalls.contains(&Stall::Mastership))
    {
        let etcd = etcd::find();
        etcd.map_err(|problem| format!("`mastership` needs an etcd. {problem}"))?;
    }
    Ok(())
}

/// Runs a mode. Returns whether any call was granted.
#[expect(clippy::too_many_lines, reason = "one measurement, in order")]
fn run(flags: Flags, place: &Place) -> bool {
    let json = flags.json;
    match flags.mode {
        Mode::Closed { in_flight, load } => {
            return throughput(place, load, Pace::Closed { in_flight }, json);
        }
        Mode::Open { rate, load } => {
            return throughput(place, load, Pace::Open { per_second: rate }, json);
        }
        Mode::Stalls {
            stalls,
            resources,
            leases,
            globs,
            runs,
            window,
            short_lease,
        } => {
            let size = stalls::Size {
                resources,
                leases,
                globs,
                runs,
                window,
                short_lease,
            };
            let all = Stall::ALL.to_vec();
            let stalls = if stalls.is_empty() { all } else { stalls };
            if !json {
                println!(
                    "{resources} resources, {leases} leases; the worst that a client sees that asks every {:?}, \
                     median of {runs} runs. How often the server held its lock for so long is of all runs; in brackets, \
                     while nothing happened\n",
                    stalls::PACE
                );
                stalled::print_heading();
            }
            runtime().block_on(stalls::measure(place, size, &stalls, |stalled| {
                if json {
                    println!("{}", stalled.json());
                } else {
                    stalled.print();
                }
            }));
        }
        Mode::Storm {
            clients,
            addresses,
            resources,
            runs,
            server_flags,
        } => {
            let server_flags: Vec<&str> = server_flags.iter().map(String::as_str).collect();
            let measure = |name, subject: &Subject| {
                let read = || subject.cpu_time();
                let storm = break_loose(name, subject.address, clients, addresses, resources, read);
                if json {
                    println!("{}", storm.json());
                } else {
                    storm.print();
                }
            };
            let own = std::env::current_exe().unwrap();
            for _ in 0..runs {
                let server = Subject::server(place, Templates::FAIR, &server_flags);
                measure("doorward-server", &server);
                drop(server);
                measure("echo", &Subject::echo(place, &own));
            }
        }
        Mode::Memory {
            connections,
            streams,
            resources,
            leases,
            rest,
        } => {
            let size = memory::Size {
                connections,
                streams,
                resources,
                leases,
                rest,
            };
            runtime().block_on(memory::measure(place, size, |moment| {
                if json {
                    println!("{}", moment.json());
                } else {
                    moment.print();
                }
            }));
        }
        Mode::Echo { .. } => {}
    }
    true
}

/// Creates a runtime for modes without a load.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Puts the same load on all servers of the comparison, and prints the results. Returns whether each of them granted
/// any call.
fn throughput(place: &Place, flags: LoadFlags, pace: Pace, json: bool) -> bool {
    let mut have_any = true;
    let default_echo = flags.default_echo.then(plain_build);
    if !json {
        println!("{}\n", described(&flags, pace));
        Figures::print_heading();
    }
    for _ in 0..flags.runs {
        let all = compared(place, flags, pace, default_echo.as_deref());
        let echo = all.get(1);
        for figures in &all {
            if json {
                println!("{}", figures.json());
            } else {
                figures.print(echo);
            }
            have_any &= figures.has_any();
        }
    }
    have_any
}

fn described(flags: &LoadFlags, pace: Pace) -> String {
    let mut text = match pace {
        Pace::Closed { in_flight } => format!(
            "closed loop, {} connections with {in_flight} in flight each (nobody asks while all wait, so the latencies \
             omit stalls: `open` has those)",
            flags.connections
        ),
        Pace::Open { per_second } => format!(
            "open loop, {per_second} requests/s on {} connections, latency from when each was due",
            flags.connections
        ),
    };
    let _ = write!(
        text,
        "; {} resources, {} a request",
        flags.resources, flags.each
    );
    if flags.leases > 0 {
        let _ = write!(text, ", beside {} leases", flags.leases);
    }
    text
}

/// Returns the server, an echo, and the other echo if it exists; or the server that already runs.
fn compared(
    place: &Place,
    flags: LoadFlags,
    pace: Pace,
    default_echo: Option<&Path>,
) -> Vec<Figures> {
    if let Some(address) = flags.address {
        let subject = Subject::elsewhere(address);
        return vec![figures("server", &subject, place, flags, pace)];
    }
    let mut all = Vec::new();
    {
        let server = Subject::server(place, Templates::FAIR, &[]);
        all.push(figures("doorward-server", &server, place, flags, pace));
    }
    let own = std::env::current_exe().unwrap();
    let echoes = [
        ("echo", Some(own.as_path())),
        ("default echo", default_echo),
    ];
    for (name, program) in echoes {
        if let Some(program) = program {
            let echo = Subject::echo(place, program);
            let beside_nothing = LoadFlags { leases: 0, ..flags };
            all.push(figures(name, &echo, place, beside_nothing, pace));
        }
    }
    all
}

fn figures(
    name: &'static str,
    subject: &Subject,
    place: &Place,
    flags: LoadFlags,
    pace: Pace,
) -> Figures {
    if flags.leases > 0 {
        let holders = holders(flags.leases, flags.resources);
        runtime().block_on(fill(subject.address, &holders)).unwrap();
    }
    let askers = match pace {
        Pace::Closed { in_flight } => flags.connections * in_flight,
        Pace::Open { .. } => 1,
    };
    let clients = flags.clients.unwrap_or(flags.resources).max(askers);
    let population = Population::new("asker", clients, flags.resources, flags.each);
    let load = Load {
        address: subject.address,
        population: Arc::new(population),
        threads: flags
            .threads
            .unwrap_or_else(|| place.cores.as_ref().map_or(1, |cores| cores.rest.len()))
            .min(flags.connections),
        connections: flags.connections,
        pace,
        extent: match flags.requests {
            Some(requests) => Extent::Requests(requests),
            None => Extent::Time {
                warm_up: WARM_UP,
                measured: flags.lasts,
            },
        },
    };
    Figures::of(name, subject, load)
}
