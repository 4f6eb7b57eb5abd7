//! An operator begins and ends learning mode.

use std::sync::Arc;
use std::time::Duration;

use doorward_door::caller_id::CallerId;
use doorward_proto::admin::v1::SetLearningRequest;
use doorward_proto::admin::v1::learning_client::LearningClient;
use doorward_proto::admin::v1::learning_server::Learning;
use doorward_server::admin::learning_service::LearningService;
use doorward_server::app::{Server, ServerConfig};
use doorward_server::transports::parent::ParentTransportConfig;
use tonic::{Code, Request, Status};

use crate::processes::start_with;
use crate::running::{asked, asked_with, capacity, channel, config, gets, start, started};

/// Returns the resources without a holder.
async fn set(server: &Server, learns: bool, resources: &[&str]) -> Result<Vec<String>, Status> {
    let mut operator = LearningClient::new(channel(server).await);
    let request = SetLearningRequest {
        learns,
        resource_id: resources.iter().map(ToString::to_string).collect(),
    };
    Ok(operator.set(request).await?.into_inner().unknown)
}

#[tokio::test]
async fn learning_mode_ends_and_begins_by_an_operators_word() {
    let server = start_with(|template| template.learning_mode_duration = None).await;
    let mut client = capacity(&server).await;
    for resource in ["fair/a", "fair/b"] {
        assert_eq!(gets(&mut client, "first", asked(resource, 5.0)).await, 0.0);
    }
    assert_eq!(set(&server, false, &["fair/c"]).await.unwrap(), ["fair/c"]);

    assert!(set(&server, false, &["fair/a"]).await.unwrap().is_empty());
    assert_eq!(gets(&mut client, "first", asked("fair/a", 5.0)).await, 5.0);
    for unheard in ["fair/b", "fair/c"] {
        assert_eq!(gets(&mut client, "second", asked(unheard, 5.0)).await, 0.0);
    }
    assert!(set(&server, false, &[]).await.unwrap().is_empty());
    for resource in ["fair/b", "fair/c", "fair/d"] {
        assert_eq!(gets(&mut client, "third", asked(resource, 5.0)).await, 5.0);
    }

    // A lease of this master stays.
    assert!(set(&server, true, &[]).await.unwrap().is_empty());
    let has_it = asked_with("fair/a", 5.0, 5.0);
    assert_eq!(gets(&mut client, "first", has_it).await, 5.0);
    for resource in ["fair/a", "fair/e"] {
        assert_eq!(gets(&mut client, "fourth", asked(resource, 5.0)).await, 0.0);
    }
}

#[tokio::test]
async fn below_the_root_learning_mode_cannot_begin() {
    let leaf = started(ServerConfig {
        node_name: "eu".to_owned(),
        parent: Some(ParentTransportConfig {
            servers: vec!["127.0.0.1:1".to_owned()].into(),
            round: Duration::from_millis(1),
            slow_round: Duration::from_millis(1),
        }),
        ..config()
    })
    .await;
    let refused = set(&leaf, true, &[]).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
    assert!(set(&leaf, false, &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn only_an_operator_may() {
    let server = start().await;
    let service = LearningService(Arc::clone(server.state()));
    for (peer, code) in [
        ("192.0.2.1", Some(Code::PermissionDenied)),
        ("127.0.0.1", None),
    ] {
        let mut request = Request::new(SetLearningRequest::default());
        let address = CallerId::of(peer.parse().unwrap());
        request.extensions_mut().insert(address);
        let answer = service.set(request).await;
        assert_eq!(answer.err().map(|it| it.code()), code, "{peer}");
    }
}
