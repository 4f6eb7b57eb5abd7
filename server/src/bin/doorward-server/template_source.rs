//! The source of the templates: a file, a key in etcd, the parent, or the built-in examples.

use std::sync::Arc;

use doorward_documents::Kind;
use doorward_documents::Located;
use doorward_engine::templates::Templates;
use doorward_etcd::layout::DocumentKeys;
use doorward_etcd::{DocumentPlace, EtcdConfig};
use doorward_server::flags::ServeFlags;
use doorward_server::program::Misused;
use doorward_server::templates::etcd::EtcdTemplates;
use doorward_server::templates::file::TemplateFile;
use tracing::warn;

/// The first templates, the name of their source, and the source if they may change.
pub(crate) type Opened = (Templates, String, Option<Follows>);

/// Source of templates that may change.
pub(crate) enum Follows {
    File(TemplateFile),
    Etcd(EtcdTemplates),
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
    Ok(match (place, etcd) {
        (Some(DocumentPlace::File(path)), _) => {
            let (file, templates) = TemplateFile::open(&path).await?;
            (
                templates,
                path.display().to_string(),
                Some(Follows::File(file)),
            )
        }
        (Some(DocumentPlace::Etcd(_)), None) => {
            let problem =
                "--templates names a key in etcd, but not where etcd is: see --etcd-endpoints";
            return Err(Misused(problem.to_owned()).into());
        }
        (Some(DocumentPlace::Etcd(keys)), Some(etcd)) => {
            let source = DocumentPlace::Etcd(keys.clone()).to_string();
            let followed = EtcdTemplates::new(keys, Arc::new(etcd.clone()));
            (Templates::default(), source, Some(Follows::Etcd(followed)))
        }
        (None, _) if !flags.parent.is_empty() => {
            (Templates::default(), "the parent".to_owned(), None)
        }
        (None, _) => {
            let templates = doorward_documents::built_in()?;
            let globs: Vec<&str> = templates.iter().map(|it| &*it.identifier_glob).collect();
            warn!(
                templates = globs.join(", "),
                "built-in example templates are in force; give your own with --templates FILE"
            );
            (templates, "built-in examples".to_owned(), None)
        }
    })
}
