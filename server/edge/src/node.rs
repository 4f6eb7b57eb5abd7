//! The node that leases capacity to the callers of this process.

use std::fmt::Debug;
use std::pin::Pin;

use doorward_engine::id::HolderId;
use doorward_engine::messages::{GetCapacity, GetCapacityReply, ReleaseCapacity};
use doorward_engine::node::mastership::Outcome;
use tokio_stream::Stream;

/// A future that another thread may run.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Changes of a client's leases. None: another mastership has begun.
pub type Pushes = Pin<Box<dyn Stream<Item = Option<GetCapacityReply>> + Send>>;

/// The node of this process.
pub trait Node: Debug + Send + Sync {
    /// Asks for capacity. May wait a moment for the parent. None: the node was started anew; ask again.
    fn get_capacity(&self, request: GetCapacity) -> Later<'_, Option<Outcome<GetCapacityReply>>>;

    /// Releases leases.
    fn release(&self, request: ReleaseCapacity) -> Later<'_, ()>;

    /// Opens a stream of changes for a client. None: the node pushes none.
    fn pushes(&self, _client: HolderId) -> Option<Pushes> {
        None
    }
}
