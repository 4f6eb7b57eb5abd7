//! The echo: a raw tonic server that decodes a `GetCapacity` request, and grants all wants. It shows the cost of the
//! same messages without a quota server, the physical limit for the comparison.
//!
//! It has the runtime, the profile and the allocator of the server.

use std::io::Write;
use std::path::Path;

use doorward_proto::doorman::capacity_server::{Capacity, CapacityServer};
use doorward_proto::doorman::{
    DiscoveryRequest, DiscoveryResponse, GetCapacityRequest, GetCapacityResponse,
    GetServerCapacityRequest, GetServerCapacityResponse, Lease, LimitedBy, Mastership,
    ReleaseCapacityRequest, ReleaseCapacityResponse, ResourceResponse,
};
use tokio::net::TcpSocket;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::mtls;

/// A service that grants all wants.
struct Echo {
    address: String,
}

#[tonic::async_trait]
impl Capacity for Echo {
    async fn get_capacity(
        &self,
        request: Request<GetCapacityRequest>,
    ) -> Result<Response<GetCapacityResponse>, Status> {
        let resources = request.into_inner().resource.into_iter();
        let response = resources.map(|asked| ResourceResponse {
            budget: None,
            resource_id: asked.resource_id,
            gets: Lease {
                expiry_time: 1_800_000_000,
                refresh_interval: 1,
                capacity: asked.wants,
                expires_in_ms: Some(60_000),
                refresh_in_ms: Some(1_000),
                granted_by: None,
            },
            safe_capacity: Some(1.0),
            limited_by: Some(LimitedBy::Wants.into()),
            learning_for_ms: None,
            decided: Some(true),
            sequence: None,
        });
        Ok(Response::new(GetCapacityResponse {
            response: response.collect(),
            mastership: Some(Mastership {
                master_address: Some(self.address.clone()),
                epoch: None,
            }),
            ..GetCapacityResponse::default()
        }))
    }

    async fn discovery(
        &self,
        _: Request<DiscoveryRequest>,
    ) -> Result<Response<DiscoveryResponse>, Status> {
        Err(Status::unimplemented("an echo"))
    }

    async fn get_server_capacity(
        &self,
        _: Request<GetServerCapacityRequest>,
    ) -> Result<Response<GetServerCapacityResponse>, Status> {
        Err(Status::unimplemented("an echo"))
    }

    async fn release_capacity(
        &self,
        _: Request<ReleaseCapacityRequest>,
    ) -> Result<Response<ReleaseCapacityResponse>, Status> {
        Err(Status::unimplemented("an echo"))
    }
}

/// Serves until the process is ended, with mutual TLS if there are certificates. The first line that it prints is its address.
pub(crate) async fn serve(certificates: Option<&Path>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    // The longest queue of connections that the system allows: a storm must not meet another limit.
    let listener = socket.listen(u32::from(u16::MAX)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    println!("{address}");
    std::io::stdout().flush().unwrap();
    // As for every server of small messages that callers wait for.
    let connections = TcpIncoming::from(listener).with_nodelay(Some(true));
    let echo = CapacityServer::new(Echo { address });
    let mut server = Server::builder();
    if let Some(folder) = certificates {
        server = server.tls_config(mtls::of_echo(folder)).unwrap();
    }
    let serving = server.add_service(echo).serve_with_incoming(connections);
    serving.await.unwrap();
}
