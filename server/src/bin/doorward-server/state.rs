//! The commands on a state directory.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use doorward_pages::exits;
use doorward_server::flags::StateAct;
use doorward_server::state_directory::{Contents, StateDirectory};

pub(crate) fn run(act: &StateAct) -> anyhow::Result<ExitCode> {
    let text = match act {
        StateAct::Init { dir, node } => init(dir, node),
        StateAct::Show { dir } => show(dir),
        StateAct::Check { dir } => check(dir),
    }?;
    let written = io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::from(exits::exit_code(written)))
}

fn init(dir: &Path, node: &str) -> anyhow::Result<String> {
    let shown = dir.display();
    if dir.exists() {
        let mut entries = dir.read_dir().context("cannot read the directory")?;
        let is_new = entries.next().is_none();
        ensure!(
            is_new,
            "{shown} is not empty; its marks may be all that is known"
        );
    }
    StateDirectory::open(dir, node, true, true)?;
    Ok(format!("{shown}: the node {node}; no client has a lease\n"))
}

fn show(dir: &Path) -> anyhow::Result<String> {
    let contents = Contents::of(dir)?;
    let mut text = format!(
        "node {}, started {} times, {}\n",
        contents.node.as_deref().unwrap_or("unknown"),
        contents.starts,
        match &contents.uncounted {
            None => "marks count".to_owned(),
            Some(why) => format!("marks do not count: {why}"),
        }
    );
    for (resource, mark) in &contents.marks {
        let amount = mark.amount.map(|it| it.to_string());
        let amount = amount.as_deref().unwrap_or("any amount");
        text += &format!("{resource}\t{amount}\tleases up to {:?}\n", mark.longest);
    }
    Ok(text)
}

fn check(dir: &Path) -> anyhow::Result<String> {
    let (contents, shown) = (Contents::of(dir)?, dir.display());
    if let Some(why) = contents.uncounted {
        anyhow::bail!("{shown}: the marks do not count: {why}");
    }
    let marks = contents.marks.len();
    Ok(format!("{shown}: {marks} marks, valid\n"))
}
