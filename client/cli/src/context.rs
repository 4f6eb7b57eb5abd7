//! `doorward context`: flags of every command that are kept under a name.
//!
//! A context is a map from the long name of a flag to its value, so a context can have whatever `doorward options` lists.
//! [`flags_of`] puts the flags of the chosen context in front of the arguments, unless they or a variable give them.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Subcommand};
use doorward_files::{Replacement, folder};
use serde::{Deserialize, Serialize};

use crate::common::{Common, Output, user_folder};
use crate::failure::{Failure, Result};
use crate::output;

/// Flags by their long names.
type Given = BTreeMap<String, String>;

#[derive(Clone, Debug, Args)]
pub(crate) struct ContextFlags {
    #[command(subcommand)]
    pub(crate) command: Option<ContextCommand>,
    /// Flags of every command among the arguments.
    #[arg(skip)]
    pub(crate) given: Given,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// Use a context from now on.
    Use { name: String },
    /// Keep the flags that are given with this command, such as --server, beside those kept before.
    Set { name: String },
    /// Forget a context.
    Delete { name: String },
}

/// The file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct Contexts {
    current: Option<String>,
    contexts: BTreeMap<String, Given>,
}

impl Contexts {
    fn path() -> Option<PathBuf> {
        Some(user_folder("XDG_CONFIG_HOME", ".config")?.join("contexts.yaml"))
    }

    fn read() -> Result<Self> {
        let Some(path) = Self::path().filter(|path| path.exists()) else {
            return Ok(Self::default());
        };
        let text = fs::read_to_string(&path).map_err(|error| error.to_string());
        let read = text.and_then(|it| serde_saphyr::from_str(&it).map_err(|it| it.to_string()));
        let advice =
            "Every command reads this file: correct it, or remove it and set contexts anew";
        read.map_err(|problem| Failure::No(format!("{}: {problem}. {advice}", path.display())))
    }

    fn write(&self) -> Result {
        let path = Self::path().ok_or_else(|| Failure::No("set XDG_CONFIG_HOME".to_owned()))?;
        let write = || {
            fs::create_dir_all(folder(&path))?;
            let text = serde_saphyr::to_string(self).map_err(io::Error::other)?;
            Replacement::prepare(&path, text.as_bytes())?.put()
        };
        write().map_err(|error| Failure::No(format!("{}: {error}", path.display())))
    }

    fn get(&self, name: &str) -> Result<&Given> {
        let problem = || format!("there is no context {name:?}; see doorward context");
        let context = self.contexts.get(name);
        context.ok_or_else(|| Failure::Usage(problem()))
    }
}

/// Returns the flags of every command among the arguments, and those of the context that are missing there.
pub(crate) fn flags_of(matches: &ArgMatches) -> Result<(Given, Vec<OsString>)> {
    let shared = Common::augment_args(clap::Command::new("doorward"));
    let source = |arg: &Arg| matches.value_source(arg.get_id().as_str());
    let mut given = Given::new();
    for arg in shared.get_arguments() {
        let name = arg.get_long().filter(|name| *name != "context");
        if let (Some(name), Some(ValueSource::CommandLine)) = (name, source(arg)) {
            let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
            // A context counts in every directory.
            let is_path = arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
            let values = values.map(|value| match std::path::absolute(value) {
                Ok(path) if is_path => path.to_string_lossy().into_owned(),
                _ => value.to_string_lossy().into_owned(),
            });
            let values: Vec<_> = values.collect();
            given.insert(name.to_owned(), values.join(","));
        }
    }
    let mut missing = Vec::new();
    if matches.subcommand_name() == Some("context") {
        return Ok((given, missing));
    }
    let kept = Contexts::read()?;
    let named = matches.get_one("context").or(kept.current.as_ref());
    let context = named.map(|name| kept.get(name)).transpose()?;
    for (flag, value) in context.into_iter().flatten() {
        let mut args = shared.get_arguments();
        let arg = args.find(|arg| arg.get_long() == Some(flag));
        let unknown = || Failure::Usage(format!("a context has --{flag}, which is no shared flag"));
        if let None | Some(ValueSource::DefaultValue) = source(arg.ok_or_else(unknown)?) {
            missing.push(format!("--{flag}={value}").into());
        }
    }
    Ok((given, missing))
}

pub(crate) fn run(common: &Common, flags: &ContextFlags) -> Result {
    let mut kept = Contexts::read()?;
    match &flags.command {
        None => return list(common, &kept),
        Some(ContextCommand::Use { name }) => {
            kept.get(name)?;
            kept.current = Some(name.clone());
        }
        Some(ContextCommand::Set { name }) => {
            if name.is_empty() || name.contains(char::is_control) {
                let problem = "a context needs a name, without control characters";
                return Err(Failure::Usage(problem.to_owned()));
            }
            if flags.given.is_empty() {
                let problem = "give the flags to keep, such as --server; see doorward options";
                return Err(Failure::Usage(problem.to_owned()));
            }
            let context = kept.contexts.entry(name.clone()).or_default();
            context.extend(flags.given.clone());
        }
        Some(ContextCommand::Delete { name }) => {
            kept.get(name)?;
            kept.contexts.remove(name);
            kept.current.take_if(|current| current == name);
        }
    }
    kept.write()
}

fn list(common: &Common, kept: &Contexts) -> Result {
    output::print(common, kept, |out| {
        if common.output == Output::Name {
            return output::names(out, kept.contexts.keys());
        }
        for (name, given) in &kept.contexts {
            let is_current = kept.current.as_ref() == Some(name);
            write!(out, "{} {name}:", if is_current { "*" } else { " " })?;
            let mut given = given.iter();
            given.try_for_each(|(flag, value)| write!(out, " --{flag} {value}"))?;
            writeln!(out)?;
        }
        Ok(())
    })
}
