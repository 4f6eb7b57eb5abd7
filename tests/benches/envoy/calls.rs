//! Cost of an RLS call, beside a tonic server that answers the same message without a decision.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use doorward_proto::envoy::ratelimit::rate_limit_descriptor::Entry;
use doorward_proto::envoy::ratelimit::rate_limit_response::rate_limit::Unit;
use doorward_proto::envoy::ratelimit::rate_limit_response::{Code, DescriptorStatus, RateLimit};
use doorward_proto::envoy::ratelimit::rate_limit_service_client::RateLimitServiceClient;
use doorward_proto::envoy::ratelimit::rate_limit_service_server::{
    RateLimitService, RateLimitServiceServer,
};
use doorward_proto::envoy::ratelimit::{
    HeaderValue, RateLimitDescriptor, RateLimitRequest, RateLimitResponse,
};
use doorward_tests::figures::cpu_time;
use doorward_tests::processes::Server;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// Argument by which this program is the echo.
pub(crate) const ECHO: &str = "--echo-of-rls";

const CONNECTIONS: usize = 8;
const IN_FLIGHT: usize = 16;
const CALLS_EACH: usize = 500;
const PAIRS: usize = 7;

/// A service that allows all requests.
struct Echo;

#[tonic::async_trait]
impl RateLimitService for Echo {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let statuses = request
            .get_ref()
            .descriptors
            .iter()
            .map(|_| DescriptorStatus {
                code: Code::Ok.into(),
                current_limit: Some(RateLimit {
                    name: String::new(),
                    requests_per_unit: 1_000_000_000,
                    unit: Unit::Second.into(),
                }),
                limit_remaining: 999_999_999,
                duration_until_reset: Some(prost_types::Duration {
                    seconds: 0,
                    nanos: 1_000_000,
                }),
            });
        let header = |key: &str, value: &str| HeaderValue {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        Ok(Response::new(RateLimitResponse {
            overall_code: Code::Ok.into(),
            statuses: statuses.collect(),
            response_headers_to_add: vec![
                header("RateLimit-Policy", "\"api.user\";q=1000000000;w=1"),
                header("RateLimit", "\"api.user\";r=999999999;t=1"),
            ],
        }))
    }
}

/// Serves until the process is ended. The first line that it prints is its address.
pub(crate) async fn echo() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    tonic::transport::Server::builder()
        .add_service(RateLimitServiceServer::new(Echo))
        .serve_with_incoming(TcpListenerStream::new(listener))
        .await
        .unwrap();
}

/// Returns the echo's process and address.
fn start_echo() -> (Child, String) {
    let mut process = Command::new(env::current_exe().unwrap())
        .arg(ECHO)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    let mut lines = BufReader::new(process.stdout.take().unwrap());
    lines.read_line(&mut address).unwrap();
    (process, address.trim().to_owned())
}

/// Calls a server, and returns the processor time that it needed for a call.
async fn call(address: &str, process: u32) -> Duration {
    let mut tasks = Vec::new();
    let before = cpu_time(process);
    for _ in 0..CONNECTIONS {
        let endpoint = tonic::transport::Endpoint::new(format!("http://{address}")).unwrap();
        let channel = endpoint.connect().await.unwrap();
        for number in 0..IN_FLIGHT {
            let mut client = RateLimitServiceClient::new(channel.clone());
            tasks.push(tokio::spawn(async move {
                for call in 0..CALLS_EACH {
                    let entry = Entry {
                        key: "user".to_owned(),
                        value: format!("{}", (number * CALLS_EACH + call) % 1_000),
                    };
                    let request = RateLimitRequest {
                        domain: "api".to_owned(),
                        descriptors: vec![RateLimitDescriptor {
                            entries: vec![entry],
                            ..RateLimitDescriptor::default()
                        }],
                        hits_addend: 1,
                    };
                    let answer = client.should_rate_limit(request).await.unwrap();
                    assert_eq!(answer.get_ref().overall_code(), Code::Ok);
                }
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    let calls = u32::try_from(CONNECTIONS * IN_FLIGHT * CALLS_EACH).unwrap();
    (cpu_time(process) - before) / calls
}

/// Compares both.
pub(crate) async fn compare(agent: &Server) {
    let (mut process, address) = start_echo();
    let mut ratios = Vec::new();
    for _ in 0..PAIRS {
        let echo = call(&address, process.id()).await;
        let agent = call(&agent.address, agent.process()).await;
        println!("  a call: agent {agent:.1?}, echo {echo:.1?} of processor time");
        ratios.push(agent.as_secs_f64() / echo.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "RLS from memory: {:.2} × the echo, median of {PAIRS} pairs",
        ratios[PAIRS / 2]
    );
    process.kill().unwrap();
    process.wait().unwrap();
}
