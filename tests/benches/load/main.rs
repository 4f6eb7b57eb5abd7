//! The load generator: requests per second and latencies of a server, waits of clients, storms, and the memory for all
//! that.
//!
//! `cargo bench -p doorward-tests --bench load -- --help` lists the options; docs/performance.md has the results. Under
//! `cargo test`, or with `--test` alone, each mode runs once, small, and must work, however long that takes.

mod agents;
mod cores;
mod echo;
mod fill;
mod flags;
mod generator;
mod latencies;
mod memory;
mod mtls;
mod population;
mod small;
mod stalls;
mod storm;
mod streams;
mod subject;
mod wire;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use doorward_server::files;
use doorward_server::flags::LimitFlags;
use doorward_server::limits::ServerLimit;
use doorward_tests::etcd;
use doorward_tests::processes::program;
use tokio::runtime::Runtime;

use crate::cores::Cores;
use crate::fill::{fill, holders};
use crate::flags::{Flags, LoadFlags, Mode};
use crate::generator::{Figures, Load, Pace};
use crate::population::Population;
use crate::subject::{Place, Subject, Templates};

/// The echo has the allocator of the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().collect();
    let given: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    // `tests/run` skips tests of other programs.
    if given
        .iter()
        .all(|it| *it == "--test" || it.starts_with("--skip="))
    {
        runtime(2).block_on(small::run());
        return ExitCode::SUCCESS;
    }
    if given == ["--bench"] {
        arguments.push("closed".to_owned());
    }
    let Flags { mode, mtls, .. } = Flags::parse_from(arguments);
    if let Mode::Echo { certificates } = mode {
        runtime(1).block_on(echo::serve(certificates.as_deref()));
        return ExitCode::SUCCESS;
    }
    if let Err(problem) = check_surroundings(&mode, files::raise_limit()) {
        eprintln!("load: {problem}");
        return ExitCode::FAILURE;
    }
    if mtls {
        mtls::switch_on();
    }
    eprintln!("building doorward-server, if need be: that may take minutes");
    // On all cores.
    program("doorward-server");
    let cores = Cores::divide();
    if let Some(cores) = &cores {
        cores.leave_server_alone();
    }
    let threads = cores.as_ref().map_or(1, |cores| cores.rest.len());
    runtime(threads).block_on(run(mode, &Place { cores }));
    ExitCode::SUCCESS
}

/// Checks the environment before anything is measured. `files` is the limit of open files.
fn check_surroundings(mode: &Mode, files: usize) -> Result<(), String> {
    /// Number of open files beside connections.
    const OTHER_FILES: usize = 100;
    if let Mode::Storm(size) = mode {
        if size.clients + OTHER_FILES > files {
            return Err(format!(
                "{} clients need a file each, and only {files} may be open: raise the limit (ulimit -n), or name \
                 fewer --clients",
                size.clients
            ));
        }
        // The server may open as many.
        let kept = LimitFlags::default().of_door(files)[&ServerLimit::Connections];
        println!("as {files} files may be open, the server keeps {kept} connections");
    }
    if matches!(mode, Mode::Stalls(size) if size.has_mastership()) {
        let etcd = etcd::find();
        etcd.map_err(|problem| format!("`mastership` needs an etcd. {problem}"))?;
    }
    Ok(())
}

async fn run(mode: Mode, place: &Place) {
    match mode {
        Mode::Closed { in_flight, load } => {
            throughput(place, load, Pace::Closed { in_flight }).await;
        }
        Mode::Open { rate, load } => {
            throughput(place, load, Pace::Open { per_second: rate }).await;
        }
        Mode::Stalls(size) => stalls::measure(place, &size).await,
        Mode::Storm(size) => {
            for _ in 0..size.runs {
                storm::break_loose("server", &Subject::server(place, Templates::FAIR), size).await;
                // The echo has no streams.
                if !size.streams {
                    storm::break_loose("echo", &Subject::echo(place), size).await;
                }
            }
        }
        Mode::Memory(size) => memory::measure(place, size).await,
        Mode::Streams(size) => streams::measure(place, size).await,
        Mode::Agents(size) => agents::measure(place, size).await,
        Mode::Echo { .. } => {}
    }
}

fn runtime(threads: usize) -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .unwrap()
}

/// Puts the same load on the server and on an echo, and prints the results.
async fn throughput(place: &Place, flags: LoadFlags, pace: Pace) {
    println!("{pace:?}, {flags:?}\n");
    Figures::print_heading();
    for _ in 0..flags.runs {
        let server = Subject::server(place, Templates::FAIR);
        if flags.leases > 0 {
            let holders = holders(flags.leases, flags.resources);
            fill(server.address, &holders).await;
        }
        let of_server = figures(&server, flags, pace).await;
        drop(server);
        let of_echo = figures(&Subject::echo(place), flags, pace).await;
        of_server.print("doorward-server", &of_echo);
        of_echo.print("echo", &of_echo);
    }
}

async fn figures(subject: &Subject, flags: LoadFlags, pace: Pace) -> Figures {
    let askers = match pace {
        Pace::Closed { in_flight } => flags.connections * in_flight,
        Pace::Open { .. } => 1,
    };
    let clients = flags.resources.max(askers);
    let population = Population::new("asker", clients, flags.resources, flags.each);
    let load = Load {
        address: subject.address,
        population: Arc::new(population),
        connections: flags.connections,
        pace,
        lasts: flags.lasts,
    };
    load.run(|| subject.cpu_time()).await
}
