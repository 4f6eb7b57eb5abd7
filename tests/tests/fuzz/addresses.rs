//! Addresses from people and other servers: nodes in etcd, etcd itself, templates.

use doorward_etcd::address::{self, NodeAddress};
use doorward_etcd::config::{Endpoint, is_loopback};
use doorward_etcd::{DocumentPlace, layout};

use crate::mutate::Format;
use crate::runner::fuzz;

#[test]
fn addresses() {
    fuzz!("addresses", Format::Word, share: 5, read);
}

fn read(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = is_loopback(&text);
    let _ = layout::key(&text);
    for part in address::split(&text) {
        if let Ok(address) = NodeAddress::parse(part) {
            assert!(address::is_meant(part), "{part:?}");
            assert!(!address.node().is_empty(), "{part:?}");
            // The shown text contains nothing but the address.
            let shown = address.to_string();
            assert!(shown.starts_with("etcd://"), "{shown:?}");
        }
    }
    if let Ok(endpoint) = Endpoint::parse(&text) {
        assert_eq!(Endpoint::parse(endpoint.as_str()), Ok(endpoint));
    }
    if let Ok(place) = text.parse::<DocumentPlace>() {
        assert_eq!(place.to_string().parse(), Ok(place));
    }
}
