//! The limits of a group: those in code, or templates in a file.

use std::path::PathBuf;
use std::time::Duration;

use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_limits::rate::Rate;
use doorward_server::app::ServerConfig;
use doorward_server::stored_place::StoredPlace;
use doorward_server::templates::file::TemplateFile;

use crate::error::JoinError;

/// Lease length on one machine. The lease of a process that was killed counts for that long.
const LEASE_LENGTH: Duration = Duration::from_secs(3);

/// Lease length over several machines: an election after a master was killed takes three seconds.
const LEASE_LENGTH_BY_ETCD: Duration = Duration::from_secs(6);

/// Requests of a client in a lease length, besides those of its stream.
const REFRESHES: u32 = 3;

/// Interval between two reads of a file that is only looked at once here.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// The limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    /// Resource, or glob, and limit.
    pub(crate) in_code: Vec<(String, String)>,
    /// A file of resource templates in place of them.
    pub(crate) file: Option<PathBuf>,
}

impl Limits {
    /// Puts the limits into the configuration of a server.
    ///
    /// # Errors
    ///
    /// If there are none, one is invalid, or the file cannot be read.
    pub(crate) async fn load(self, server: ServerConfig) -> Result<ServerConfig, JoinError> {
        let bad = |problem: String| Err(JoinError::BadLimits(problem));
        let Some(path) = self.file else {
            if self.in_code.is_empty() {
                return bad(
                    "the group has no limit; give one with `limit` or `templates`".to_owned(),
                );
            }
            let limits = self.in_code.iter();
            let lease_length = match server.election {
                Some(_) => LEASE_LENGTH_BY_ETCD,
                None => LEASE_LENGTH,
            };
            let specs = limits.map(|(resource, limit)| spec(resource, limit, lease_length));
            let specs = specs.collect::<Result<Vec<_>, _>>()?;
            return match Templates::parse(&specs) {
                Ok(templates) => Ok(ServerConfig {
                    templates,
                    templates_source: "the program".to_owned(),
                    ..server
                }),
                Err(problems) => {
                    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
                    bad(problems.join("; "))
                }
            };
        };
        if !self.in_code.is_empty() {
            return bad(
                "the group has limits and a file of templates; give one of them".to_owned(),
            );
        }
        match TemplateFile::open(&path, FIRST_LOOK, true).await {
            Ok((_, templates)) => Ok(ServerConfig {
                templates,
                templates_source: path.display().to_string(),
                templates_place: Some(StoredPlace::File(path)),
                ..server
            }),
            Err(error) => bad(error.to_string()),
        }
    }
}

/// Returns the template of a limit. A rate is a capacity for each second.
fn spec(resource: &str, limit: &str, lease_length: Duration) -> Result<TemplateSpec, JoinError> {
    let bad = |why: &str| {
        let advice = "give a rate such as 300/s or 600/min, or a number in flight such as 20";
        JoinError::BadLimits(format!(
            "{resource}: {limit:?} is no limit: {why}; {advice}"
        ))
    };
    let capacity = if limit.contains('/') {
        let rate: Rate = limit.parse().map_err(|_| bad("it is no rate"))?;
        rate.as_per_second()
    } else {
        limit.trim().parse().map_err(|_| bad("it is no number"))?
    };
    if !(f64::MIN_POSITIVE..=f64::MAX).contains(&capacity) {
        return Err(bad("it is not above 0"));
    }
    Ok(TemplateSpec {
        identifier_glob: Some(resource.to_owned()),
        capacity: Some(capacity),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(lease_length),
        refresh_interval: Some(lease_length / REFRESHES),
        ..TemplateSpec::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(resource: &str, limit: &str, expected: Result<f64, &str>) {
        let limits = Limits {
            in_code: vec![(resource.to_owned(), limit.to_owned())],
            file: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let loaded = runtime.block_on(limits.load(ServerConfig::default()));
        let id = doorward_engine::id::ResourceId::new("a/b").unwrap();
        match (loaded, expected) {
            (Ok(server), Ok(capacity)) => {
                let template = server.templates.find(&id).unwrap();
                assert_eq!(template.capacity.get(), capacity, "{limit}");
            }
            (Err(error), Err(part)) => {
                let text = error.to_string();
                assert!(text.contains(part) && text.contains(resource), "{text}");
            }
            (loaded, _) => panic!("{limit}: {loaded:?}"),
        }
    }

    #[test]
    fn a_limit_is_a_rate_or_a_number_in_flight() {
        check("a/b", "300/s", Ok(300.0));
        check("a/*", "600/min", Ok(10.0));
        check("a/b", "20", Ok(20.0));
        check("a/b", "2.5", Ok(2.5));
        check("a/b", "fast", Err("it is no number"));
        check("a/b", "5/fortnight", Err("it is no rate"));
        for limit in ["0", "-1", "NaN", "inf"] {
            check("a/b", limit, Err("it is not above 0"));
        }
    }
}
