//! The clients that a shell plays, and what they hold.
//!
//! Each lease is kept by a client of the library, as in a real program: it refreshes in the
//! background and says what it has. Every pair of client and resource has one of its own, so that
//! a release is answered before the next command is played.

use std::collections::BTreeMap;
use std::io::Write;

use doorward::{Client, Resource};
use serde::Serialize;
use tokio::task::JoinSet;

use super::typed_line::{HELP, ShellLine};
use crate::common::{Common, Output};
use crate::failure::Failure;
use crate::flags::StatusFlags;
use crate::get;
use crate::granted::{number, span, tone_of};
use crate::output;
use crate::status;
use crate::why::{Explanation, HoldingOutput};
use doorward_pages::terminal::{Palette, Table, Tone, cell};

/// A lease of a client here.
struct ShellLease {
    client: Client,
    resource: Resource,
    priority: i64,
}

/// Leases of a client, as `--output json` prints them. Its field names are an interface.
#[derive(Serialize)]
struct HolderOutput<'a> {
    client: &'a str,
    priority: i64,
    #[serde(flatten)]
    has: HoldingOutput<'a>,
    #[serde(skip)]
    why: Explanation,
}

/// All clients of the shell.
pub(super) struct ShellSession {
    common: Common,
    palette: Palette,
    /// By client and resource.
    held: BTreeMap<(String, String), ShellLease>,
}

impl ShellSession {
    pub(super) fn new(common: Common, palette: Palette) -> Self {
        Self {
            common,
            palette,
            held: BTreeMap::new(),
        }
    }

    pub(super) async fn play(&mut self, line: ShellLine) -> Result<(), Failure> {
        match line {
            ShellLine::Get {
                client,
                resource,
                wants,
                priority,
            } => self.get(client, resource, wants, priority).await,
            ShellLine::Release { client, resource } => self.release(&client, resource).await,
            ShellLine::Show => self.show(),
            ShellLine::Status { resource } => {
                let flags = StatusFlags {
                    resource,
                    ..StatusFlags::default()
                };
                status::run(&self.common, &flags).await
            }
            ShellLine::Help => Ok(write!(output::stdout(), "{HELP}")?),
            ShellLine::Quit | ShellLine::Nothing => Ok(()),
        }
    }

    /// Releases everything.
    pub(super) async fn close(self) {
        close(self.held.into_values()).await;
    }

    async fn get(
        &mut self,
        name: String,
        id: String,
        wants: f64,
        priority: Option<i64>,
    ) -> Result<(), Failure> {
        let key = (name, id);
        let before = self.held.get(&key).map(|held| held.priority);
        let priority = priority.or(before).unwrap_or(0);
        // Another priority is another claim: the old one goes first.
        if before.is_some_and(|before| before != priority) {
            close(self.held.remove(&key)).await;
        }
        if let Some(held) = self.held.get(&key) {
            let (resource, timeout) = (&held.resource, self.common.timeout);
            let asked = resource.ask(wants);
            asked.map_err(|error| Failure::Usage(error.to_string()))?;
            let answer = resource.wait_for_answer(wants, timeout).await;
            answer.map_err(get::failure_of)?;
        } else {
            let held = self.open(&key, wants, priority).await?;
            self.held.insert(key.clone(), held);
        }
        match self.held.get(&key) {
            Some(held) => self.print(&key, held),
            None => Ok(()),
        }
    }

    async fn open(
        &self,
        (name, id): &(String, String),
        wants: f64,
        priority: i64,
    ) -> Result<ShellLease, Failure> {
        let client = get::connect(&self.common, name.clone(), true).await?;
        let opened = client.resource(id).wants(wants).priority(priority).open();
        let resource = opened.map_err(|error| Failure::Usage(error.to_string()))?;
        let lease = resource.wait_for_lease(self.common.timeout).await;
        lease.map_err(get::failure_of)?;
        Ok(ShellLease {
            client,
            resource,
            priority,
        })
    }

    async fn release(&mut self, name: &str, id: Option<String>) -> Result<(), Failure> {
        let keys: Vec<(String, String)> = match id {
            Some(id) => vec![(name.to_owned(), id)],
            None => {
                let of_name = self.held.keys().filter(|(client, _)| client == name);
                of_name.cloned().collect()
            }
        };
        let held = keys.iter().filter_map(|key| self.held.remove(key));
        let held: Vec<ShellLease> = held.collect();
        if held.is_empty() {
            let what = match keys.first() {
                Some((_, id)) => format!("nothing of {id}"),
                None => "nothing".to_owned(),
            };
            return Err(Failure::No(format!("{name} has {what} here; see show")));
        }
        let problem = held.iter().find_map(|held| held.client.failure());
        close(held).await;
        if let Some(problem) = problem {
            return Err(Failure::Unreachable(format!(
                "{name} gives it up, but the server may not know before the lease ends: {problem}"
            )));
        }
        let mut out = output::stdout();
        if self.common.output == Output::Json {
            let resources: Vec<&String> = keys.iter().map(|(_, id)| id).collect();
            let released = serde_json::json!({"client": name, "released": resources});
            output::json(&mut out, &released)?;
        } else {
            writeln!(out, "released")?;
        }
        Ok(())
    }

    fn show(&self) -> Result<(), Failure> {
        if self.common.output == Output::Json {
            for (key, held) in &self.held {
                self.print(key, held)?;
            }
            return Ok(());
        }
        let mut out = output::stdout();
        if self.held.is_empty() {
            return Ok(writeln!(out, "no client here has anything; see help")?);
        }
        let mut table = Table::headless(2..3, self.palette);
        for (key, held) in &self.held {
            let holder = HolderOutput::new(key, held);
            table.add([
                self.palette.cell(Tone::Strong, holder.client),
                cell(holder.has.resource),
                self.palette.cell(holder.tone(), holder.share()),
                cell(holder.rest()),
            ]);
        }
        Ok(table.write(&mut out)?)
    }

    fn print(&self, key: &(String, String), held: &ShellLease) -> Result<(), Failure> {
        let has = HolderOutput::new(key, held);
        let mut out = output::stdout();
        if self.common.output == Output::Json {
            return Ok(output::json(&mut out, &has)?);
        }
        let share = self.palette.paint(has.tone(), &has.share());
        let (client, resource, rest) = (has.client, has.has.resource, has.rest());
        Ok(writeln!(out, "{client}  {resource}  {share}, {rest}")?)
    }
}

impl<'a> HolderOutput<'a> {
    fn new((client, resource): &'a (String, String), held: &ShellLease) -> Self {
        let holding = held.resource.holding();
        let problem = held.resource.problem().map(|problem| problem.to_string());
        Self {
            client,
            priority: held.priority,
            has: HoldingOutput::new(resource, held.resource.wants(), &holding, problem),
            why: Explanation::of_holding(&holding),
        }
    }

    fn tone(&self) -> Tone {
        tone_of(self.has.capacity, self.has.wants)
    }

    /// Returns the amount as a part of the wanted one.
    fn share(&self) -> String {
        let [capacity, wants] = [self.has.capacity, self.has.wants].map(number);
        format!("{capacity} of {wants}")
    }

    fn rest(&self) -> String {
        let mut rest = match self.has.expires_in_ms {
            Some(left) => format!("expires in {}", span(left)),
            None => "without a lease".to_owned(),
        };
        if self.priority != 0 {
            rest += &format!(", priority {}", self.priority);
        }
        if let Some(words) = self.why.words() {
            rest += &format!("; {words}");
        }
        if let Some(problem) = &self.has.problem {
            rest += &format!("; {problem}");
        }
        rest
    }
}

/// Releases leases, all at once, and waits until that is answered.
async fn close(held: impl IntoIterator<Item = ShellLease>) {
    let mut closing = JoinSet::new();
    for ShellLease {
        client, resource, ..
    } in held
    {
        closing.spawn(async move {
            drop(resource);
            client.close().await;
        });
    }
    closing.join_all().await;
}
