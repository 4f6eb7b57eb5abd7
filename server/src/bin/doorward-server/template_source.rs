//! The source of the templates: a file, a key in etcd, the parent, or the built-in examples.

use std::sync::Arc;

use doorward_documents::Kind;
use doorward_documents::Located;
use doorward_engine::templates::Templates;
use doorward_etcd::layout::DocumentKeys;
use doorward_etcd::{DocumentPlace, EtcdConfig};
use doorward_server::flags::ServeFlags;
use doorward_server::program::Misused;
use doorward_server::stored_place::StoredPlace;
use doorward_server::templates::etcd::EtcdTemplates;
use doorward_server::templates::file::TemplateFile;
use tracing::warn;

/// Templates at the start, and where they come from.
pub(crate) struct Opened {
    pub(crate) templates: Templates,
    /// Name of the source.
    pub(crate) source: String,
    /// Place where operators change them.
    pub(crate) place: Option<StoredPlace>,
    /// The source, if they may change.
    pub(crate) follows: Option<Follows>,
}

/// Source of templates that may change.
pub(crate) enum Follows {
    File(TemplateFile),
    Etcd(EtcdTemplates),
}

impl Opened {
    fn fixed(templates: Templates, source: &str) -> Self {
        Self {
            templates,
            source: source.to_owned(),
            place: None,
            follows: None,
        }
    }

    fn followed(templates: Templates, place: StoredPlace, follows: Follows) -> Self {
        Self {
            templates,
            source: place.to_string(),
            place: Some(place),
            follows: Some(follows),
        }
    }
}

/// Opens the source, and reads the first templates.
pub(crate) async fn open_templates(
    flags: &ServeFlags,
    etcd: Option<&EtcdConfig>,
) -> anyhow::Result<Opened> {
    let place = match &flags.templates {
        // Built-in templates would be a trap: each candidate would use those of its own build.
        None if etcd.is_some() && flags.parent.is_empty() => {
            Some(DocumentPlace::Etcd(DocumentKeys::new(Located::KEY)))
        }
        place => place.clone(),
    };
    let Some(place) = place else {
        if !flags.parent.is_empty() {
            return Ok(Opened::fixed(Templates::default(), "the parent"));
        }
        let templates = doorward_documents::built_in()?;
        let globs: Vec<&str> = templates.iter().map(|it| &*it.identifier_glob).collect();
        warn!(
            templates = globs.join(", "),
            "built-in example templates are in force; give your own with --templates FILE"
        );
        return Ok(Opened::fixed(templates, "built-in examples"));
    };
    let etcd = etcd.cloned().map(Arc::new);
    let place = StoredPlace::of(place, etcd)
        .map_err(|problem| Misused(format!("--templates {problem}")))?;
    Ok(match place.clone() {
        StoredPlace::File(path) => {
            let (file, templates) = TemplateFile::open(&path).await?;
            Opened::followed(templates, place, Follows::File(file))
        }
        StoredPlace::Etcd(keys, etcd) => {
            let follows = Follows::Etcd(EtcdTemplates::new(keys, etcd));
            Opened::followed(Templates::default(), place, follows)
        }
    })
}
