//! The binary: reads flags, starts a server, and waits for signals.

use std::env;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::{CommandFactory, Parser};
use doorward_documents::{Kind, Located};
use doorward_engine::node;
use doorward_engine::templates::Templates;
use doorward_etcd::DocumentPlace;
use doorward_etcd::flags::{ENDPOINTS, FlagsError, unreadable_variable};
use doorward_etcd::layout::DocumentKeys;
use doorward_etcd::{Etcd, EtcdConfig};
use doorward_server::app::{Server, ServerConfig};
use doorward_server::election::{self, Election};
use doorward_server::files;
use doorward_server::flags::starts::{self, WrongStart};
use doorward_server::flags::{self, Command, DEFAULT_NODE, Flags, ParentError, ServeFlags};
use doorward_server::rules::store::{POLL_INTERVAL, RulesPlace};
use doorward_server::templates;
use doorward_server::templates::etcd::EtcdTemplates;
use doorward_server::templates::file::{self, TemplateFile, TemplateFileError};
use doorward_server::{clock, logs, upstream};
use doorward_session::visible;
use thiserror::Error;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

/// mimalloc needs a tenth fewer instructions for a request than the system's allocator. It also returns memory when
/// leases end, which glibc's hardly does (docs/performance.md).
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A failure while the server ran; with `--check`, an invalid file, as for `doorward templates check`.
const FAILED: u8 = 1;
/// Wrong usage, or invalid templates.
const MISUSED: u8 = 2;

fn main() -> ExitCode {
    if let Some(variable) = unreadable_variable() {
        return complain(anyhow!("{variable} is not UTF-8"), MISUSED);
    }
    let flags = Flags::parse();
    match flags.command {
        Some(Command::Completions { shell }) => {
            let mut command = Flags::command();
            clap_complete::generate(shell, &mut command, "doorward-server", &mut io::stdout());
            return ExitCode::SUCCESS;
        }
        Some(Command::Demo { .. }) => {
            // If even this fails, no other place for the message is left.
            let _ = writeln!(
                io::stderr(),
                "error: the demonstration moved: doorward demo"
            );
            return ExitCode::from(MISUSED);
        }
        None => {}
    }
    let logs = match logs::start(&flags.serve.logs) {
        Ok(logs) => logs,
        Err(error) => return complain(error.into(), MISUSED),
    };
    flags.serve.limits.warn_of_removed();
    if let Some(path) = &flags.serve.check {
        return check(path);
    }
    let ran = run(flags.serve);
    // The remaining log lines come before the error message.
    drop(logs);
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        // The operator mends invalid templates, like a wrong flag.
        Err(error) if error.is::<TemplateFileError>() || error.is::<Misused>() => {
            complain(error, MISUSED)
        }
        Err(error) => complain(error, FAILED),
    }
}

/// Validates a template file.
fn check(path: &Path) -> ExitCode {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(cannot_start(error), FAILED),
    };
    match runtime.block_on(file::check(path)) {
        Ok(templates) => {
            let (path, count) = (path.display(), templates.len());
            let s = if count == 1 { "" } else { "s" };
            let said = writeln!(io::stdout(), "{path}: {count} template{s}, valid");
            if said.is_ok() {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(FAILED)
            }
        }
        Err(error) => {
            // One line for each problem, in the format of compilers, so that editors can jump there.
            let text = error.to_string();
            let _ = writeln!(io::stderr(), "{}", visible::lines(&text));
            ExitCode::from(match error {
                TemplateFileError::Read { .. } => MISUSED,
                TemplateFileError::Document(_) => FAILED,
            })
        }
    }
}

/// Flags that are invalid together.
#[derive(Debug, Error)]
#[error("{0}")]
struct Misused(String);

impl From<ParentError> for Misused {
    fn from(error: ParentError) -> Self {
        Self(error.to_string())
    }
}

impl From<FlagsError> for Misused {
    fn from(error: FlagsError) -> Self {
        Self(error.to_string())
    }
}

impl From<WrongStart> for Misused {
    fn from(error: WrongStart) -> Self {
        Self(error.to_string())
    }
}

/// Writes the error message to standard error. The program ends even if its reader stalls.
fn complain(error: anyhow::Error, code: u8) -> ExitCode {
    let (written, is_written) = mpsc::channel::<()>();
    let error = format!("error: {error:#}");
    let write = move || {
        // If even this fails, no other place for the message is left.
        let _ = writeln!(io::stderr(), "{}", visible::lines(&error));
        drop(written);
    };
    // The system may refuse another thread.
    if thread::Builder::new().spawn(write.clone()).is_err() {
        write();
    }
    let _ = is_written.recv_timeout(Duration::from_secs(1));
    ExitCode::from(code)
}

/// Explains that the server cannot start, for instance because the system allows too few open files or threads.
fn cannot_start(error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context("the system has too few resources (see ulimit -n and -u)")
}

fn run(flags: ServeFlags) -> anyhow::Result<()> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    runtime.map_err(cannot_start)?.block_on(serve(flags))
}

async fn serve(flags: ServeFlags) -> anyhow::Result<()> {
    // From here on, no signal kills the process half-way.
    let mut signals = Signals::new().context("cannot listen for signals")?;
    let mut hang_up = signal(SignalKind::hangup()).context("cannot listen for signals")?;
    let of_command_line = env::var_os(ENDPOINTS);
    starts::check_endpoints(&flags.etcd, of_command_line.as_deref()).map_err(Misused::from)?;
    let etcd = flags.etcd.config().map_err(Misused::from)?;
    if etcd.is_some() {
        let (advertise, endpoints) = (flags.advertise.as_deref(), &flags.etcd.endpoints);
        starts::check_address(advertise, flags.listen, endpoints).map_err(Misused::from)?;
    }
    let Opened {
        templates,
        source,
        follows,
    } = open_templates(&flags, etcd.as_ref()).await?;
    let elsewhere = etcd.clone().map(|config| Etcd {
        config: Arc::new(config),
        prefix: flags.election.prefix.clone(),
    });
    let parent = flags::parent_source(&flags.parent, elsewhere.as_ref()).map_err(Misused::from)?;
    if parent.is_none() && flags.node != DEFAULT_NODE {
        info!(
            node = flags.node,
            "a root of its own: without --parent it leases from nobody, and shares out what its own \
             templates say"
        );
    }
    let mut config = config(&flags, parent, templates, source);
    config.rules = rules_place(flags.rules.clone(), etcd.as_ref())?;
    if let Some(etcd) = etcd {
        config.election = Election::Etcd(Box::new(election::etcd::ElectionConfig {
            etcd,
            prefix: flags.election.prefix.clone(),
            ttl: flags.election_ttl,
        }));
    }
    if let Some(Follows::Etcd(templates)) = &follows {
        config.able = Some(templates.able());
        config.templates_history = Some(templates.keys().clone());
    }
    let mut server = Server::start(config).await?;
    match follows {
        Some(Follows::File(file)) => follow_file(&mut server, file, hang_up),
        other => {
            if let Some(Follows::Etcd(templates)) = other {
                let (board, metrics) = (server.board().clone(), server.metrics().clone());
                server.spawn(templates.run(board, metrics));
            }
            server.spawn(async move {
                while hang_up.recv().await.is_some() {
                    info!("SIGHUP: there is no template file to read again");
                }
            });
        }
    }
    tokio::select! {
        () = signals.stop() => {}
        error = server.failed() => return Err(error.into()),
    }
    info!("stopping: no new calls, those in flight are finished");
    tokio::select! {
        _ = server.shutdown() => info!("stopped"),
        () = signals.stop() => info!("stopped at once, by a second signal"),
    }
    Ok(())
}

/// Returns the place of the rule documents. None: the server has none.
fn rules_place(
    place: Option<DocumentPlace>,
    etcd: Option<&EtcdConfig>,
) -> Result<Option<RulesPlace>, Misused> {
    let problem = match (place, etcd) {
        (None, _) => return Ok(None),
        (Some(DocumentPlace::File(path)), _) if path.is_dir() => {
            return Ok(Some(RulesPlace::Directory(path, POLL_INTERVAL)));
        }
        (Some(DocumentPlace::Etcd(keys)), Some(etcd)) => {
            let (prefix, etcd) = (keys.document().to_owned(), Arc::new(etcd.clone()));
            return Ok(Some(RulesPlace::Etcd(prefix, etcd)));
        }
        (Some(DocumentPlace::File(path)), _) => {
            let path = path.display();
            format!("--rules: {path} is no directory; create it, or give etcd:PREFIX")
        }
        (Some(DocumentPlace::Etcd(_)), None) => {
            "--rules names keys in etcd, but not where etcd is: see --etcd-endpoints".to_owned()
        }
    };
    Err(Misused(problem))
}

/// The first templates, and their source.
struct Opened {
    templates: Templates,
    source: String,
    follows: Option<Follows>,
}

/// Source of templates that may change.
enum Follows {
    File(TemplateFile),
    Etcd(EtcdTemplates),
}

async fn open_templates(flags: &ServeFlags, etcd: Option<&EtcdConfig>) -> anyhow::Result<Opened> {
    let place = match &flags.templates {
        // Built-in templates would be a trap: each candidate would use those of its own build.
        None if etcd.is_some() && flags.parent.is_empty() => {
            Some(DocumentPlace::Etcd(DocumentKeys::new(Located::KEY)))
        }
        place => place.clone(),
    };
    Ok(match (place, etcd) {
        (Some(DocumentPlace::File(path)), _) => {
            let (file, templates) = TemplateFile::open(&path).await?;
            Opened {
                templates,
                source: path.display().to_string(),
                follows: Some(Follows::File(file)),
            }
        }
        (Some(DocumentPlace::Etcd(keys)), Some(etcd)) => Opened {
            templates: Templates::default(),
            source: DocumentPlace::Etcd(keys.clone()).to_string(),
            follows: Some(Follows::Etcd(EtcdTemplates::new(
                keys,
                Arc::new(etcd.clone()),
            ))),
        },
        (Some(DocumentPlace::Etcd(_)), None) => {
            return Err(Misused(
                "--templates names a key in etcd, but not where etcd is: see --etcd-endpoints"
                    .to_owned(),
            )
            .into());
        }
        (None, _) if !flags.parent.is_empty() => Opened {
            templates: Templates::default(),
            source: "the parent".to_owned(),
            follows: None,
        },
        (None, _) => {
            let templates = doorward_documents::built_in()?;
            let globs: Vec<&str> = templates.iter().map(|it| &*it.identifier_glob).collect();
            warn!(
                templates = globs.join(", "),
                "built-in example templates are in force; give your own with --templates FILE"
            );
            Opened {
                templates,
                source: "built-in examples".to_owned(),
                follows: None,
            }
        }
    })
}

/// Applies every new valid version of the file.
fn follow_file(server: &mut Server, mut file: TemplateFile, mut hang_up: Signal) {
    let (board, metrics) = (server.board().clone(), server.metrics().clone());
    server.spawn(async move {
        loop {
            let read = tokio::select! {
                read = file.changed() => read,
                _ = hang_up.recv() => {
                    info!("SIGHUP: reading the templates again");
                    file.read_again().await
                }
            };
            match read {
                Ok(templates) => templates::apply(&board, &metrics, templates).await,
                Err(error) => templates::refuse(&board, &metrics, error.to_string()),
            }
        }
    });
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn config(
    flags: &ServeFlags,
    parent: Option<upstream::ParentSource>,
    templates: Templates,
    templates_source: String,
) -> ServerConfig {
    ServerConfig {
        node_name: flags.node.clone(),
        listen: flags.listen,
        http_listen: flags.http_listen.0,
        advertise: flags.advertise.clone(),
        parent: parent.map(|servers| upstream::UpstreamConfig {
            servers,
            round: flags.push_round,
            // A little above the floor: a call that comes too early changes nothing.
            slow_round: (flags.refresh_floor + flags.refresh_floor / 16)
                .max(Duration::from_millis(100)),
        }),
        push_round: flags.push_round,
        templates,
        templates_source,
        node: node::Config {
            seed: clock::seed(),
            refresh_floor: flags.refresh_floor,
            clock_tolerance: flags.clock.tolerance,
            limits: flags.limits.of_node(),
            ..node::Config::default()
        },
        calls_max: flags.limits.calls_max(),
        door: flags
            .limits
            .of_door(files::raise_limit(), flags.listen_backlog),
        shutdown_grace: flags.shutdown_grace,
        ..ServerConfig::default()
    }
}
