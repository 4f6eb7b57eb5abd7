//! The addresses of the parent's servers, from the flags.

use doorward_etcd::address::{self, Etcd, NodeAddress};

use crate::flags::advertised;
use crate::transports::parent::ParentSource;

/// Where servers of the parent are, as one flag says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentServers {
    /// At these addresses.
    At(Vec<String>),
    /// Where etcd says.
    InEtcd(NodeAddress),
}

/// Where the servers of the parent are. None: there is no parent. `elsewhere` says where etcd is
/// for an address that does not. `is_tls`: connections use TLS. Reads the files that an address names.
///
/// # Errors
///
/// If the address of a node in etcd cannot be used, or there are several.
pub fn parent_source(
    flags: &[ParentServers],
    elsewhere: Option<&Etcd>,
    is_tls: bool,
) -> Result<Option<ParentSource>, String> {
    let mut source = ParentSource::default();
    for flag in flags {
        match flag {
            ParentServers::At(addresses) => {
                for address in addresses {
                    let address = without_scheme(address, is_tls)?;
                    source.given.push(address.to_owned());
                }
            }
            ParentServers::InEtcd(node) => {
                let place = node.place(elsewhere);
                let place = place.map_err(|error| format!("--parent: {error}"))?;
                if source.node.replace(place).is_some() {
                    return Err("--parent names more than one node in etcd; give one".to_owned());
                }
            }
        }
    }
    Ok((!flags.is_empty()).then_some(source))
}

fn without_scheme(address: &str, is_tls: bool) -> Result<&str, &'static str> {
    match (address.split_once("://"), is_tls) {
        (None, _) => Ok(address),
        (Some(("https", rest)), true) | (Some(("http", rest)), false) => Ok(rest),
        (Some(("https", _)), false) => Err("--parent is https, which needs --ca"),
        (Some(_), _) => {
            Err("--parent has a scheme that is not https; with --ca, connections use TLS")
        }
    }
}

/// Parses the value of one `--parent` flag.
pub(super) fn parent_servers(text: &str) -> Result<ParentServers, String> {
    if address::is_meant(text) {
        let node = NodeAddress::parse(text).map_err(|error| error.to_string())?;
        return Ok(ParentServers::InEtcd(node));
    }
    let addresses = text.split(',').map(|address| advertised(address.trim()));
    let addresses: Result<Vec<String>, String> = addresses.collect();
    addresses.map(ParentServers::At)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::Flags;

    #[test]
    fn a_parent_is_a_list_of_servers_or_a_node_in_etcd() {
        let source = |parents: &[&str], elsewhere: Option<&Etcd>| {
            let mut arguments = vec!["doorward-server", "--node", "eu"];
            for parent in parents {
                arguments.extend(["--parent", parent]);
            }
            let flags = Flags::try_parse_from(arguments).expect("valid");
            parent_source(&flags.serve.parent, elsewhere, false)
        };
        assert_eq!(source(&[], None), Ok(None));
        let list = source(&["a:1, b:2", "c:3"], None).expect("valid");
        let given = vec!["a:1".to_owned(), "b:2".to_owned(), "c:3".to_owned()];
        assert_eq!(list, Some(ParentSource::from(given)));
        let node = source(&["a:1", "etcd://e:1,f:2/root"], None).expect("valid");
        let node = node.expect("a parent");
        let place = node.node.expect("in etcd");
        assert_eq!(node.given, ["a:1"]);
        assert_eq!(place.to_string(), "etcd://e:1,f:2/root");

        let unknown = source(&["etcd:///root"], None).expect_err("where is etcd?");
        assert!(unknown.to_string().contains("where etcd is"), "{unknown}");
        let known = source(&["etcd:///root"], Some(&place.etcd)).expect("valid");
        let known = known.and_then(|source| source.node).expect("in etcd");
        assert_eq!(known, place);
        let two = source(&["etcd://e:1/a", "etcd://e:1/b"], None);
        assert!(two.unwrap_err().contains("more than one node"));
    }

    #[test]
    fn a_parent_that_cannot_be_meant_is_refused() {
        for bad in [
            "",
            "a:1,",
            "nowhere",
            "etcd://e/root",
            "etcd://e:1",
            "etcd://e:1/r?x=y",
        ] {
            let arguments = ["doorward-server", "--node", "eu", "--parent", bad];
            assert!(Flags::try_parse_from(arguments).is_err(), "{bad:?}");
        }
    }
}
