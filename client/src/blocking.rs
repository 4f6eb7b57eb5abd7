//! Clients of programs without async.
//!
//! ```no_run
//! use doorward::Client;
//! use doorward::limiter::rate::Burst;
//!
//! let client = Client::builder().address("127.0.0.1:6970").connect_blocking()?;
//! let limiter = client.resource("db/orders").open()?.rate_limiter(Burst::default());
//! client.block_on(limiter.acquire(1))?;
//! client.close_blocking();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::mpsc;
use std::thread;

use tokio::runtime::{Builder, Runtime};

use crate::client::{Client, ClientBuilder};
use crate::error::ConnectError;

impl ClientBuilder {
    /// Does the same as [`ClientBuilder::connect`] without async: the client runs in a thread of its own, until it is
    /// closed.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::connect`], and if the system gives no thread.
    pub fn connect_blocking(self) -> Result<Client, ConnectError> {
        self.in_thread(Self::connect)
    }

    /// Does the same as [`ClientBuilder::connect_lazy`] without async and without a runtime.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::connect_lazy`], and if the system gives no thread.
    pub fn connect_lazy_blocking(self) -> Result<Client, ConnectError> {
        self.in_thread(async |builder| builder.connect_lazy())
    }

    fn in_thread(
        self,
        connect: impl AsyncFnOnce(Self) -> Result<Client, ConnectError> + Send + 'static,
    ) -> Result<Client, ConnectError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| ConnectError::NoThread(error.to_string()))?;
        let (sender, connected) = mpsc::sync_channel(1);
        let run = move || {
            runtime.block_on(async {
                let client = connect(self).await;
                let closed = client.as_ref().ok().map(Client::closed);
                let is_taken = sender.send(client).is_ok();
                if let Some(mut closed) = closed.filter(|_| is_taken) {
                    let _ended = closed.wait_for(|closed| *closed).await;
                }
            });
        };
        let thread = thread::Builder::new().name("doorward-client".to_owned());
        let spawned = thread.spawn(run);
        spawned.map_err(|error| ConnectError::NoThread(error.to_string()))?;
        let ended = |_| ConnectError::NoThread("it has ended".to_owned());
        connected.recv().map_err(ended)?
    }
}

impl Client {
    /// Does the same as [`Client::close`] without async.
    ///
    /// # Panics
    ///
    /// As [`Client::block_on`].
    pub fn close_blocking(self) {
        self.clone().block_on(self.close());
    }

    /// Waits for a future of this client, such as that of `acquire`, in a thread without async. If the program runs the
    /// client in a runtime of one thread, another thread must run that meanwhile.
    ///
    /// # Panics
    ///
    /// In an async task, because it would block its thread.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self.runtime() {
            Some(runtime) => runtime.block_on(future),
            // A fake client outside a runtime.
            None => fake_runtime().block_on(future),
        }
    }
}

fn fake_runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_time().build();
    #[expect(
        clippy::expect_used,
        reason = "it needs nothing of the system, which could fail"
    )]
    runtime.expect("a runtime without I/O")
}
