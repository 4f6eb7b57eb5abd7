//! Compatibility of the status with the previous version, which had no pages and marked no value as absent.

use doorward_proto::admin::v1::{
    ChildStatus, EtcdStatus, GetStatusRequest, GetStatusResponse, OwnLeaseStatus, ParentStatus,
    ResourceStatus, States,
};
use prost::Message;

/// The messages that have changed since, in their previous form.
mod previous {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Request {
        #[prost(string, tag = "1")]
        pub(super) resource_id: String,
        #[prost(uint32, tag = "2")]
        pub(super) leases_max: u32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Response {
        #[prost(string, tag = "1")]
        pub(super) node: String,
        #[prost(string, tag = "4")]
        pub(super) master_address: String,
        #[prost(uint64, tag = "5")]
        pub(super) epoch: u64,
        #[prost(uint32, tag = "8")]
        pub(super) templates: u32,
        #[prost(message, repeated, tag = "9")]
        pub(super) resource: Vec<Resource>,
        #[prost(string, tag = "10")]
        pub(super) templates_problem: String,
        #[prost(message, optional, tag = "11")]
        pub(super) parent: Option<Parent>,
        #[prost(string, repeated, tag = "12")]
        pub(super) ancestor: Vec<String>,
        #[prost(message, optional, tag = "14")]
        pub(super) etcd: Option<Etcd>,
        #[prost(message, optional, tag = "18")]
        pub(super) states: Option<States>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Resource {
        #[prost(string, tag = "1")]
        pub(super) resource_id: String,
        #[prost(string, tag = "2")]
        pub(super) template: String,
        #[prost(string, tag = "4")]
        pub(super) algorithm: String,
        #[prost(double, tag = "6")]
        pub(super) safe_capacity: f64,
        #[prost(uint64, tag = "12")]
        pub(super) learning_remaining_ms: u64,
        #[prost(message, optional, tag = "17")]
        pub(super) own_lease: Option<OwnLease>,
        #[prost(message, repeated, tag = "19")]
        pub(super) child: Vec<Child>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct OwnLease {
        #[prost(string, tag = "6")]
        pub(super) refused: String,
        #[prost(uint64, optional, tag = "7")]
        pub(super) parent_learns_for_ms: Option<u64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Child {
        #[prost(string, tag = "1")]
        pub(super) child: String,
        #[prost(double, tag = "2")]
        pub(super) clients: f64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Parent {
        #[prost(string, repeated, tag = "1")]
        pub(super) configured_address: Vec<String>,
        #[prost(string, tag = "5")]
        pub(super) problem: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Etcd {
        #[prost(string, tag = "1")]
        pub(super) problem: String,
        #[prost(uint64, optional, tag = "3")]
        pub(super) master_for_ms: Option<u64>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct States {
        #[prost(string, tag = "1")]
        pub(super) parent_session: String,
        #[prost(string, tag = "2")]
        pub(super) election: String,
        #[prost(message, repeated, tag = "3")]
        pub(super) child_streams: Vec<StateCount>,
        #[prost(string, tag = "4")]
        pub(super) learning: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct StateCount {
        #[prost(string, tag = "1")]
        pub(super) state: String,
        #[prost(uint64, tag = "2")]
        pub(super) count: u64,
    }
}

/// Returns a response with every field set, from a server that has everything.
fn previous_response() -> previous::Response {
    let text = |text: &str| text.to_owned();
    previous::Response {
        node: text("eu"),
        master_address: text("eu-0:1"),
        epoch: 7,
        templates: 2,
        resource: vec![previous::Resource {
            resource_id: text("r"),
            template: text("*"),
            algorithm: text("STATIC"),
            safe_capacity: -1.0,
            learning_remaining_ms: 5,
            own_lease: Some(previous::OwnLease {
                refused: text("no"),
                parent_learns_for_ms: Some(3),
            }),
            child: vec![previous::Child {
                child: text("eu1"),
                clients: 4.0,
            }],
        }],
        templates_problem: text("bad"),
        parent: Some(previous::Parent {
            configured_address: vec![text("root:1")],
            problem: text("away"),
        }),
        ancestor: vec![text("root")],
        etcd: Some(previous::Etcd {
            problem: text("down"),
            master_for_ms: Some(9),
        }),
        states: Some(previous::States {
            parent_session: text("polling"),
            election: text("master"),
            child_streams: vec![previous::StateCount {
                state: text("open"),
                count: 3,
            }],
            learning: text("over"),
        }),
    }
}

/// Returns the same response in today's form.
fn current_response() -> GetStatusResponse {
    let text = |text: &str| Some(text.to_owned());
    GetStatusResponse {
        node: "eu".to_owned(),
        master_address: text("eu-0:1"),
        epoch: Some(7),
        templates_count: 2,
        resources: vec![ResourceStatus {
            resource_id: "r".to_owned(),
            template: text("*"),
            algorithm: text("STATIC"),
            safe_capacity: Some(-1.0),
            learning_remaining_ms: Some(5),
            own_lease: Some(OwnLeaseStatus {
                refusal: text("no"),
                parent_learning_remaining_ms: Some(3),
                ..OwnLeaseStatus::default()
            }),
            children: vec![ChildStatus {
                child: "eu1".to_owned(),
                clients_count: 4.0,
                ..ChildStatus::default()
            }],
            ..ResourceStatus::default()
        }],
        templates_problem: text("bad"),
        parent: Some(ParentStatus {
            addresses: vec!["root:1".to_owned()],
            problem: text("away"),
            ..ParentStatus::default()
        }),
        ancestors: vec!["root".to_owned()],
        etcd: Some(EtcdStatus {
            problem: text("down"),
            mastership_remaining_ms: Some(9),
            ..EtcdStatus::default()
        }),
        states: Some(States {
            parent_session: text("polling"),
            election: text("master"),
            child_streams: [("open".to_owned(), 3)].into(),
            learning: "over".to_owned(),
        }),
        ..GetStatusResponse::default()
    }
}

#[test]
fn a_program_reads_a_previous_server_in_full() {
    let bytes = previous_response().encode_to_vec();
    let status = GetStatusResponse::decode(bytes.as_slice()).unwrap();
    assert_eq!(status, current_response());
    assert_eq!((status.schema_version, status.next_token), (0, None));
}

#[test]
fn fields_that_a_previous_server_leaves_empty_are_absent() {
    let bytes = previous::Response {
        resource: vec![previous::Resource {
            own_lease: Some(previous::OwnLease::default()),
            ..previous::Resource::default()
        }],
        parent: Some(previous::Parent::default()),
        etcd: Some(previous::Etcd::default()),
        states: Some(previous::States::default()),
        ..previous::Response::default()
    }
    .encode_to_vec();
    let status = GetStatusResponse::decode(bytes.as_slice()).unwrap();
    assert_eq!((&status.master_address, status.epoch), (&None, None));
    assert_eq!(status.templates_problem, None);
    assert_eq!(status.parent.unwrap().problem, None);
    assert_eq!(status.etcd.unwrap().problem, None);
    let states = status.states.unwrap();
    assert_eq!((states.parent_session, states.election), (None, None));
    let resource = &status.resources[0];
    assert_eq!((&resource.template, &resource.algorithm), (&None, &None));
    assert_eq!(resource.learning_remaining_ms, None);
    assert_eq!(resource.own_lease.as_ref().unwrap().refusal, None);
}

#[test]
fn a_previous_program_reads_a_current_server() {
    let status = GetStatusResponse {
        schema_version: 1,
        next_token: Some("r".to_owned()),
        resources_count: Some(20_000),
        ..current_response()
    };
    let read = previous::Response::decode(status.encode_to_vec().as_slice()).unwrap();
    assert_eq!(read, previous_response());
    let nothing = GetStatusResponse::default().encode_to_vec();
    let read = previous::Response::decode(nothing.as_slice()).unwrap();
    assert_eq!(read, previous::Response::default());
}

#[test]
fn a_previous_program_asks_for_no_pages() {
    let asked = previous::Request {
        resource_id: "r".to_owned(),
        leases_max: 3,
    };
    let asked = GetStatusRequest::decode(asked.encode_to_vec().as_slice()).unwrap();
    let expected = GetStatusRequest {
        resource_id: "r".to_owned(),
        leases_max: 3,
        ..GetStatusRequest::default()
    };
    assert_eq!(asked, expected);
}
