//! The flags of limits, built from the [table of limits](crate::limits): each has a flag and a help text.
//! `--help` prints few of them; `--help-all` prints all.
//!
//! No bound may be 0: a server that accepts nothing is a mistake.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use doorward_documents::parse_duration_within;
use doorward_engine::admission::Rate;
use doorward_engine::admission::limits::{Limits as NodeLimits, NO_BOUND};
use doorward_session::time::millis;
use tracing::warn;

use crate::edge::PART_OF_MEMORY;
use crate::flags::bytes::Bytes;
use crate::limits::{DefaultBound, REMOVED, Removed, ServerLimit, Unit};
use crate::memory;

/// The most memory that one address may bring by default.
const MEMORY_PER_ADDRESS_MAX: usize = 512 << 20;

/// Limits that `--help` shows.
const SHOWN: [ServerLimit; 1] = [ServerLimit::Memory];

/// The bounds that were given.
#[derive(Clone, Debug)]
pub struct LimitFlags {
    /// By limit. None: the default, which is computed.
    bounds: Vec<Option<u64>>,
    /// Flags or variables without effect.
    removed: Vec<Removed>,
}

impl Args for LimitFlags {
    fn augment_args(command: Command) -> Command {
        let limits = ServerLimit::ALL.iter().map(|limit| argument(*limit));
        command.args(limits).args(REMOVED.map(removed_argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LimitFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let bound = |limit: &ServerLimit| matches.get_one::<u64>(id(limit.texts().flag)).copied();
        let is_given = |removed: &&Removed| matches.contains_id(id(removed.0));
        Ok(Self {
            bounds: ServerLimit::ALL.iter().map(bound).collect(),
            removed: REMOVED.iter().filter(is_given).copied().collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// No flags: the defaults.
impl Default for LimitFlags {
    fn default() -> Self {
        Self {
            bounds: ServerLimit::ALL.iter().map(|it| fixed(*it)).collect(),
            removed: Vec::new(),
        }
    }
}

/// Returns the default in the table, if it is not computed.
fn fixed(limit: ServerLimit) -> Option<u64> {
    let DefaultBound::Fixed(value) = limit.default_bound() else {
        return None;
    };
    match limit.unit() {
        Unit::Count | Unit::PerSecond => value.parse().ok(),
        Unit::Bytes => bytes(value).ok(),
        Unit::Millis => doorward_documents::parse_duration(value).map(millis).ok(),
    }
}

fn id(flag: &'static str) -> &'static str {
    flag.trim_start_matches('-')
}

fn flag(flag: &'static str) -> Arg {
    Arg::new(id(flag)).long(id(flag)).action(ArgAction::Set)
}

fn argument(limit: ServerLimit) -> Arg {
    let (value_name, parser): (_, ValueParser) = match limit.unit() {
        Unit::Count => ("COUNT", clap::value_parser!(u64).range(1..).into()),
        Unit::PerSecond => {
            let range = 1..=u64::from(u32::MAX);
            ("COUNT", clap::value_parser!(u64).range(range).into())
        }
        Unit::Bytes => ("BYTES", ValueParser::new(bytes)),
        Unit::Millis if limit == ServerLimit::Patience => ("DURATION", ValueParser::new(patience)),
        Unit::Millis => ("DURATION", ValueParser::new(time_per_second)),
    };
    let argument = flag(limit.texts().flag)
        .help_heading("Limits")
        .value_name(value_name)
        .value_parser(parser)
        .hide_short_help(!SHOWN.contains(&limit));
    match limit.default_bound() {
        DefaultBound::Fixed(value) => argument.help(limit.help()).default_value(value),
        DefaultBound::Computed(how) => argument.help(format!("{} [default: {how}]", limit.help())),
    }
}

fn removed_argument((name, successor): Removed) -> Arg {
    let help = format!("No effect; see {successor}");
    flag(name).hide(true).help(help)
}

fn bytes(text: &str) -> Result<u64, &'static str> {
    text.parse().map(|Bytes(bytes)| bytes.get())
}

fn time_per_second(text: &str) -> Result<u64, String> {
    let range = Duration::from_millis(1)..=Duration::from_secs(1);
    parse_duration_within(text, range, "give a duration from 1ms to 1s").map(millis)
}

fn patience(text: &str) -> Result<u64, String> {
    let range = Duration::from_millis(100)..=Duration::from_secs(600);
    parse_duration_within(text, range, "give a duration from 100ms to 10m").map(millis)
}

impl LimitFlags {
    /// Returns the defaults with that memory. None: half of what there is.
    pub(super) fn with_memory(bytes: Option<Bytes>) -> Self {
        let mut flags = Self::default();
        if let Some(bound) = flags.bounds.get_mut(ServerLimit::Memory as usize) {
            *bound = bytes.map(|Bytes(bytes)| bytes.get());
        }
        flags
    }

    /// Warns of each flag without effect, with the name of its successor.
    pub fn warn_of_removed(&self) {
        for (flag, successor) in &self.removed {
            warn!(
                flag,
                successor,
                "this flag has no effect any more, and will be an error: use its successor"
            );
        }
    }

    /// The bound that was given. None: the default, which is computed.
    pub(super) fn given(&self, limit: ServerLimit) -> Option<u64> {
        self.bounds.get(limit as usize).copied().flatten()
    }

    /// A bound with a fixed default, as a number of things.
    fn count(&self, limit: ServerLimit) -> usize {
        let bound = self.given(limit).unwrap_or(u64::MAX);
        usize::try_from(bound).unwrap_or(usize::MAX)
    }

    /// The same where few are enough.
    fn small(&self, limit: ServerLimit) -> NonZeroU32 {
        let bound = u32::try_from(self.count(limit)).unwrap_or(u32::MAX);
        NonZeroU32::new(bound).unwrap_or(NonZeroU32::MIN)
    }

    /// The bounds of a node beside doors that have a part of its memory.
    pub fn of_node_with_doors(&self) -> NodeLimits {
        let mut limits = self.of_node();
        limits.memory_max -= limits.memory_max / PART_OF_MEMORY;
        limits
    }

    /// The bounds of the node. Bursts are those of the engine's defaults.
    pub fn of_node(&self) -> NodeLimits {
        let default = NodeLimits::default();
        let (newcomers, requests) = (default.newcomers_per_caller, default.requests_per_template);
        let rate = |limit, like: Rate| Rate {
            per_second: self.small(limit),
            ..like
        };
        let given = |limit| self.given(limit).map(|_| self.count(limit));
        let memory_max = given(ServerLimit::Memory).unwrap_or_else(half_of_memory);
        let per_address = || (memory_max / 4).min(MEMORY_PER_ADDRESS_MAX);
        NodeLimits {
            memory_max,
            memory_per_caller_max: given(ServerLimit::MemoryPerAddress).unwrap_or_else(per_address),
            memory_per_template_max: given(ServerLimit::MemoryPerTemplate).unwrap_or(memory_max),
            newcomers_per_caller: rate(ServerLimit::NewcomersPerAddress, newcomers),
            requests_per_template: rate(ServerLimit::RequestsPerTemplate, requests),
            leases_per_resource_max: self.count(ServerLimit::LeasesPerResource),
            leases_per_caller_max: given(ServerLimit::LeasesPerAddress)
                .unwrap_or_else(|| self.count(ServerLimit::LeasesPerResource)),
            priorities_max: self.count(ServerLimit::Priorities),
        }
    }
}

fn half_of_memory() -> usize {
    let half = memory::available().map(|bytes| bytes / 2);
    // A number beyond this machine's address space is no bound.
    half.and_then(|bytes| usize::try_from(bytes).ok())
        .unwrap_or(NO_BOUND)
}

#[cfg(test)]
mod tests;
