//! The vectors of `who.json`, and hostile headers.

use doorward::rules::address::Forwarding;
use doorward::rules::{Address, Part, Request, Template, Trusted};
use serde_json::Value;

use crate::cases;

fn bytes(value: &Value) -> Vec<u8> {
    if let Some(text) = value.as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(list) = value.as_array() {
        return list.iter().flat_map(bytes).collect();
    }
    if let Some(hex) = value["hex"].as_str() {
        let digits = hex
            .as_bytes()
            .chunks(2)
            .map(|two| std::str::from_utf8(two).unwrap());
        return digits
            .map(|two| u8::from_str_radix(two, 16).unwrap())
            .collect();
    }
    let times = usize::try_from(value["times"].as_u64().unwrap()).unwrap();
    bytes(&value["text"]).repeat(times)
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
}

fn part(config: &Value) -> Part {
    if let Some(address) = config.get("address") {
        let trusted = match address.get("proxies") {
            Some(proxies) => {
                Trusted::Proxies(texts(proxies).map(|it| it.parse().unwrap()).collect())
            }
            None => Trusted::Hops(
                address["hops"]
                    .as_u64()
                    .map_or(0, |hops| usize::try_from(hops).unwrap()),
            ),
        };
        return Part::Address(Address {
            from: match address["from"].as_str().unwrap() {
                "peer" => Forwarding::Peer,
                "x-forwarded-for" => Forwarding::XForwardedFor,
                _ => Forwarding::Forwarded,
            },
            trusted,
            ipv6_prefix: address["ipv6_prefix"]
                .as_u64()
                .map_or(64, |bits| u8::try_from(bits).unwrap()),
        });
    }
    if let Some(name) = config["header"].as_str() {
        return Part::Header(name.to_owned());
    }
    if let Some(name) = config["cookie"].as_str() {
        return Part::Cookie(name.to_owned());
    }
    match config.get("path") {
        Some(templates) => Part::Path(texts(templates).map(Template::new).collect()),
        None => Part::Method,
    }
}

#[test]
fn clients_have_the_expected_identifiers() {
    for case in &cases("who.json") {
        let who = case["config"]["key"].as_array().unwrap().iter();
        let who: Vec<Part> = who.map(part).collect();
        for op in case["ops"].as_array().unwrap() {
            let request = &op["request"];
            let owned: Vec<_> = (request["headers"].as_array().unwrap().iter())
                .map(|header| (header[0].as_str().unwrap(), bytes(&header[1])))
                .collect();
            let headers: Vec<_> = owned
                .iter()
                .map(|(name, value)| (*name, value.as_slice()))
                .collect();
            let (method, path) = (bytes(&request["method"]), bytes(&request["path"]));
            let request = Request {
                peer: request["peer"]
                    .as_str()
                    .map(|peer| peer.parse::<std::net::SocketAddr>().unwrap().ip()),
                method: &method,
                path: &path,
                headers: &headers,
                login: None,
            };
            let parts = who.iter().map(|part| part.value(&request));
            let parts: Vec<_> = parts.map(|part| part.map(|part| part.to_vec())).collect();
            let expected: Vec<_> = (op["expect"]["key"].as_array().unwrap().iter())
                .map(|part| (!part.is_null()).then(|| bytes(part)))
                .collect();
            assert_eq!(parts, expected, "{}: {request:?}", case["name"]);
        }
    }
}

#[test]
fn an_ipv4_address_has_the_usual_text() {
    for octets in [[0, 9, 10, 99], [100, 101, 110, 199], [200, 209, 250, 255]] {
        let peer = Some(octets.into());
        let request = Request {
            peer,
            method: b"GET",
            path: b"/",
            headers: &[],
            login: None,
        };
        let text = peer.map(|peer: std::net::IpAddr| peer.to_string().into());
        assert_eq!(Address::peer().client(&request), text);
    }
}
