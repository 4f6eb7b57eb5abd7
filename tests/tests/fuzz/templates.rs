//! Template documents from operators and from etcd: refused with every problem at its place, or valid for a server.

use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::messages::{Ask, GetCapacity};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::Templates;
use doorward_engine::templates::glob::Glob;
use doorward_engine::time::Time;

use crate::mutate::Format;
use crate::runner::fuzz;

#[test]
fn templates() {
    fuzz!("templates", Format::Lines, share: 8, read);
}

fn read(bytes: &[u8]) {
    match doorward_documents::locate_bytes(bytes, "fuzz.yaml") {
        Ok(located) => serve(&located.templates),
        Err(error) => {
            assert!(!error.problems.is_empty());
            for problem in &error.problems {
                assert!(problem.line >= 1 && problem.column >= 1, "{problem:?}");
            }
            assert!(error.to_string().starts_with("fuzz.yaml:"), "{error}");
        }
    }
}

/// Runs a server with the templates.
fn serve(templates: &Templates) {
    assert!(templates.outlasts(templates).is_zero());
    let mut node = Node::new(Config::default(), templates.clone());
    let now = Time::from_secs(1);
    node.handle_mastership(Mastership::Master { epoch: None }, now);
    for template in templates.iter() {
        let glob = Glob::parse(&template.identifier_glob).expect("it was checked");
        assert!(glob.covers(&glob), "{}", template.identifier_glob);
        let Ok(resource) = ResourceId::new(&template.identifier_glob) else {
            continue;
        };
        let request = GetCapacity {
            caller: None,
            client: HolderName::new("client").unwrap(),
            incarnation: None,
            sequence: None,
            asks: vec![Ask {
                budget: None,
                resource: resource.clone(),
                priority: 0,
                weight: Subclients::ONE,
                wants: Amount::MAX,
                has: None,
            }],
        };
        let Outcome::Served(reply) = node.handle_get_capacity(&request, now) else {
            panic!("it is the master");
        };
        assert_eq!(reply.leases.len() + reply.refused.len(), 1);
        node.assert_consistent();
        if let Some(found) = node.resource_snapshot(&resource, now)
            && found.kind.promises_total()
        {
            assert!(found.reserved <= found.capacity, "{found:?}");
        }
    }
}
