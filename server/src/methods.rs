//! The methods that this server answers, and those whose calls the door treats in a way of their own.

use doorward_door::paths::Paths;
use tonic::{Response, Status as RpcStatus};

/// Answer of a method.
pub(crate) type Answer<T> = Result<Response<T>, RpcStatus>;

/// Method of nearly all calls. Its calls are refused while too many are in progress. A release frees capacity, child
/// servers ask for many clients and are few, and an operator who looks for a problem must get an answer.
pub const GET_CAPACITY: &str = "/doorman.Capacity/GetCapacity";

const GET_SERVER_CAPACITY: &str = "/doorman.Capacity/GetServerCapacity";
const DISCOVERY: &str = "/doorman.Capacity/Discovery";
const RELEASE_CAPACITY: &str = "/doorman.Capacity/ReleaseCapacity";
const STREAM_CAPACITY: &str = "/doorward.v1.CapacityStream/StreamCapacity";
const STREAM: &str = "/doorward.v1.CapacityStream/StreamServerCapacity";
/// The method of the admin service.
pub const GET_STATUS: &str = "/doorward.admin.v1.Admin/GetStatus";

const PLAN: &str = "/doorward.admin.v1.Plans/Plan";
const WHO_AM_I: &str = "/doorward.admin.v1.Callers/WhoAmI";
const LIST_RULES: &str = "/doorward.admin.v1.Rules/List";
const GET_RULES: &str = "/doorward.admin.v1.Rules/Get";
/// Method of the rules service that checks a document.
pub const CHECK_RULES: &str = "/doorward.admin.v1.Rules/Check";
/// Method of the rules service that follows documents.
pub const WATCH_RULES: &str = "/doorward.admin.v1.Rules/Watch";

const LIST_INSTANCES: &str = "/doorward.admin.v1.Rules/ListInstances";
const CHECK_HEALTH: &str = "/grpc.health.v1.Health/Check";
const WATCH_HEALTH: &str = "/grpc.health.v1.Health/Watch";

/// Method of Envoy's requests.
pub const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const STREAM_QUOTAS: &str =
    "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas";

/// All methods, which are counted by name.
pub const ALL: [&str; 24] = [
    GET_CAPACITY,
    GET_SERVER_CAPACITY,
    DISCOVERY,
    RELEASE_CAPACITY,
    STREAM,
    STREAM_CAPACITY,
    GET_STATUS,
    PLAN,
    LIST_RULES,
    GET_RULES,
    CHECK_RULES,
    WHO_AM_I,
    "/doorward.admin.v1.Learning/Set",
    "/doorward.admin.v1.Rules/Apply",
    "/doorward.admin.v1.Rules/Delete",
    "/doorward.admin.v1.Rules/History",
    WATCH_RULES,
    LIST_INSTANCES,
    SHOULD_RATE_LIMIT,
    STREAM_QUOTAS,
    CHECK_HEALTH,
    WATCH_HEALTH,
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// Paths for the door. The server answers discovery, releases, health checks and child servers even if the address
/// makes too many other calls.
pub const PATHS: Paths = Paths {
    vital: &[
        GET_SERVER_CAPACITY,
        STREAM,
        DISCOVERY,
        RELEASE_CAPACITY,
        CHECK_HEALTH,
        WATCH_HEALTH,
    ],
    looks: &[
        GET_STATUS,
        PLAN,
        LIST_RULES,
        GET_RULES,
        CHECK_RULES,
        LIST_INSTANCES,
    ],
    with_one_message: &[
        GET_CAPACITY,
        RELEASE_CAPACITY,
        DISCOVERY,
        GET_SERVER_CAPACITY,
        SHOULD_RATE_LIMIT,
        WHO_AM_I,
        CHECK_HEALTH,
        WATCH_HEALTH,
    ],
    large: &[GET_SERVER_CAPACITY, STREAM, STREAM_QUOTAS, PLAN],
    silent: &[STREAM_CAPACITY, STREAM_QUOTAS, WATCH_HEALTH],
    open: &[CHECK_HEALTH, WATCH_HEALTH],
    of_all: &[DISCOVERY, WHO_AM_I],
    of_servers: &[GET_SERVER_CAPACITY, STREAM],
    only: &[],
};

/// Paths for the port of Doorman's clients.
pub const DOORMAN_PATHS: Paths = Paths {
    only: &[GET_CAPACITY, RELEASE_CAPACITY, DISCOVERY],
    ..PATHS
};
