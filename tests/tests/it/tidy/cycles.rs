//! Cycles of modules: no module needs another one that needs it, because then neither can be understood alone.
//!
//! From outside, a module and its inner modules are one, and know each other. So modules are compared with their
//! neighbours: those of the crate, and those inside each module. A module needs another if anything in it names
//! anything in that one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::{named_files, root, source};

/// Path of a module.
type Module = Vec<String>;

/// Names of other modules in each module.
struct Modules {
    needs: BTreeMap<Module, BTreeSet<Module>>,
}

impl Modules {
    /// Reads the modules of a crate.
    fn of_crate(folder: &str) -> Self {
        let prefix = format!("{folder}/");
        let mut sources = BTreeMap::new();
        for (name, path) in named_files(".rs") {
            let Some(name) = name.strip_prefix(&prefix) else {
                continue;
            };
            let name = name.trim_end_matches(".rs");
            if name
                .split('/')
                .any(|it| it == "bin" || it.ends_with("tests"))
            {
                continue;
            }
            let module = match name {
                "lib" | "main" => Module::new(),
                name => name.split('/').map(ToOwned::to_owned).collect(),
            };
            sources.insert(module, fs::read_to_string(path).unwrap());
        }
        Self::of(sources)
    }

    fn of(sources: BTreeMap<Module, String>) -> Self {
        let of = |(module, text): (&Module, &String)| {
            let bare = source::without_tests(&source::bare(text));
            let paths = paths(&bare).into_iter();
            let mut needs: BTreeSet<Module> = paths
                .filter_map(|path| resolved(module, &path, &sources))
                .collect();
            needs.remove(module);
            (module.clone(), needs)
        };
        Self {
            needs: sources.iter().map(of).collect(),
        }
    }

    /// Returns, for the crate and each module, the inner modules that need each other.
    fn cycles(&self) -> Vec<BTreeSet<Module>> {
        let modules = self.needs.keys().filter(|module| !module.is_empty());
        let parents: BTreeSet<&[String]> = modules.map(|it| &it[..it.len() - 1]).collect();
        let cycles = parents.into_iter().map(|parent| self.cycles_in(parent));
        cycles.flatten().collect()
    }

    fn cycles_in(&self, parent: &[String]) -> Vec<BTreeSet<Module>> {
        let neighbour = |module: &Module| {
            let is_inside = module.len() > parent.len() && module.starts_with(parent);
            is_inside.then(|| module[..=parent.len()].to_vec())
        };
        // Which module needs which, also by way of others.
        let mut reached: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (module, needs) in &self.needs {
            if let Some(module) = neighbour(module) {
                let others = needs
                    .iter()
                    .filter_map(neighbour)
                    .filter(|it| *it != module);
                let others: Vec<Module> = others.collect();
                reached.entry(module).or_default().extend(others);
            }
        }
        loop {
            let before = reached.clone();
            for needs in reached.values_mut() {
                let more = needs.iter().filter_map(|it| before.get(it));
                let more: Vec<Module> = more.flatten().cloned().collect();
                needs.extend(more);
            }
            if reached == before {
                break;
            }
        }
        let in_cycle = reached.iter().filter(|(it, needs)| needs.contains(*it));
        let cycles: BTreeSet<BTreeSet<Module>> = in_cycle
            .map(|(module, needs)| {
                let mutual = needs.iter().filter(|it| reached[*it].contains(module));
                mutual.cloned().collect()
            })
            .collect();
        cycles.into_iter().collect()
    }
}

/// Returns the module that a path in another one leads to, or into.
fn resolved(
    module: &[String],
    path: &[String],
    sources: &BTreeMap<Module, String>,
) -> Option<Module> {
    let mut full = match path.first()?.as_str() {
        "crate" => path[1..].to_vec(),
        "self" => [module, &path[1..]].concat(),
        "super" => {
            let up = path.iter().take_while(|it| *it == "super").count();
            [module.get(..module.len() - up)?, &path[up..]].concat()
        }
        // A module right inside this one, or another crate.
        first => {
            let inside = [module, &[first.to_owned()]].concat();
            sources.contains_key(&inside).then_some(inside)?
        }
    };
    while !sources.contains_key(&full) {
        full.pop()?;
    }
    Some(full)
}

/// Returns every named path, those of `use` one by one.
fn paths(bare: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = bare;
    let mut others = String::new();
    while let Some(at) = rest.find("use ") {
        let (before, from) = rest.split_at(at);
        others.push_str(before);
        others.push(' ');
        let is_word = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let end = from.find(';').filter(|_| is_word).unwrap_or(3);
        if is_word {
            found.extend(expanded(&from[4..end]));
        }
        rest = &from[end + 1..];
    }
    others.push_str(rest);
    let is_in_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let named = others.split(|c: char| !is_in_path(c));
    let named = named.filter(|it| it.contains("::"));
    found.extend(named.flat_map(expanded));
    found
}

/// Returns `a::{b, c::d}` as `a::b` and `a::c::d`.
fn expanded(tree: &str) -> Vec<Vec<String>> {
    let Some((before, inside)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap().split("::");
        let names = path.map(|name| name.trim().to_owned());
        return vec![names.filter(|name| !name.is_empty()).collect()];
    };
    let inside = &inside[..inside.rfind('}').unwrap()];
    let mut depth = 0_usize;
    let branches = inside.split(|c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    let stem = expanded(before).concat();
    branches
        .filter(|branch| !branch.trim().is_empty())
        .flat_map(expanded)
        .map(|branch| [stem.clone(), branch].concat())
        .collect()
}

#[test]
fn no_modules_need_each_other() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, members) = manifest.split_once("\nmembers = [").unwrap();
    let (members, _) = members.split_once(']').unwrap();
    let members = members.split('"').skip(1).step_by(2);
    for member in members {
        let modules = Modules::of_crate(&format!("{member}/src"));
        assert!(!modules.needs.is_empty(), "{member}");
        let cycles = modules.cycles();
        assert!(cycles.is_empty(), "{member}: {cycles:?}");
    }
}

/// The folders and basic modules of the engine. Each uses only what stands after it.
const ENGINE_LAYERS: [&str; 17] = [
    "node",
    "budget",
    "resource",
    "continuity",
    "holders",
    "plan",
    "messages",
    "division",
    "admission",
    "templates",
    "claims",
    "id",
    "rounding",
    "exact_sum",
    "amount",
    "split_table",
    "time",
];

#[test]
fn folders_of_the_engine_use_only_folders_below_them() {
    let layer = |module: &Module| {
        let position = ENGINE_LAYERS.iter().position(|it| *it == module[0]);
        position.unwrap_or_else(|| panic!("{module:?} is in no layer"))
    };
    for (module, needs) in Modules::of_crate("server/engine/src").needs {
        for need in needs
            .iter()
            .filter(|need| !module.is_empty() && !need.is_empty())
        {
            assert!(
                layer(&module) <= layer(need),
                "{module:?} uses {need:?}, which is above it"
            );
        }
    }
}

/// Returns the part of the library that a module belongs to.
fn part(module: &Module) -> &str {
    match module[0].as_str() {
        // All of them refuse, and lock.
        name @ ("layer" | "lock" | "overload" | "refusal" | "rules") => name,
        _ => "leases",
    }
}

#[test]
fn leases_rules_and_overload_control_know_neither_layers_nor_each_other() {
    for (module, needs) in Modules::of_crate("client/src").needs {
        for need in needs
            .iter()
            .filter(|need| !module.is_empty() && !need.is_empty())
        {
            let is_above = part(&module) == "layer" || matches!(part(need), "lock" | "refusal");
            assert!(
                is_above || part(&module) == part(need),
                "{module:?} uses {need:?}"
            );
        }
    }
}
