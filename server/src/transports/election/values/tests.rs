//! Values of etcd, read and written again.

use super::*;

fn keys() -> NodeKeys {
    NodeKeys::new("/p", "n")
}

/// Servers of every version read and write these values. A candidate writes a value as it read it.
#[test]
fn what_is_read_is_written_as_it_was() {
    let (master, term) = (EtcdKey::Master, EtcdKey::Term);
    let server = EtcdKey::Server("a:1".into());
    for (key, json) in [
        (
            &master,
            r#"{"address":"a:1","server":"s","epoch_offset":3}"#,
        ),
        (
            &term,
            r#"{"epoch":7,"address":"a:1","server":"s","length_ms":2000,"resigned":false}"#,
        ),
        (
            &term,
            r#"{"epoch":7,"address":"a:1","server":"s","length_ms":2000,"resigned":true,"leases":{"templates":"d","longest_ms":5000,"older_ms":40001}}"#,
        ),
        (
            &server,
            r#"{"node":"n","address":"a:1","server":"s","role":"leaf","version":"1"}"#,
        ),
        (
            &server,
            r#"{"node":"n","address":"a:1","http_address":"a:2","server":"s","role":"root","level":0,"highest_epoch":9,"version":"1"}"#,
        ),
    ] {
        let (_, read) = read(&keys(), &key_text(&keys(), key), json.as_bytes()).unwrap();
        assert_ne!(read, Value::Unreadable, "{json}");
        let written = serde_json::to_string(&read).unwrap();
        assert_eq!(written, json);
    }
    let span = serde_json::to_string(&Value::LeaseSpan {});
    assert_eq!(span.unwrap(), "{}");
}

#[test]
fn a_master_of_a_version_without_offsets_has_none() {
    let read = read(&keys(), "/p/n/master", br#"{"address":"a:1","server":"s"}"#);
    let Some((_, Value::Master(master))) = read else {
        panic!("{read:?}");
    };
    assert_eq!(master.epoch_offset, 0);
}

#[test]
fn keys_are_read_back_and_others_are_passed_over() {
    for known in [
        EtcdKey::Master,
        EtcdKey::Term,
        EtcdKey::Server("a:1".into()),
    ] {
        let read = read(&keys(), &key_text(&keys(), &known), b"");
        assert_eq!(read, Some((known, Value::Unreadable)));
    }
    for other in ["/p/n/else", "/p/m/master", "/p/n/servers", ""] {
        assert_eq!(read(&keys(), other, b""), None, "{other}");
    }
}
