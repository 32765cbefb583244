//! The end of the bus at an agent.

use redis::Cmd;
use redis::Pipeline;
use redis::aio::MultiplexedConnection;

use super::keys::Keys;
use super::letter::Letter;
use super::script::KEPT;
use super::server::{Connection, Error, Listener, Server};
use crate::seal::Sealed;
use crate::wire::{Down, Hello, Refusal, Status, frame, parse};

/// How many orders may come in before one is looked at.
const ROOM: usize = 64;

/// Where orders arrive.
pub(crate) struct Inlet(Listener);

/// Where reports leave.
pub(crate) struct Outlet {
    commands: MultiplexedConnection,
    reports: String,
    hello: Hello,
}

/// Connects an agent. First it listens, then it reads what was said last to all and to this one.
pub(crate) async fn connect(
    server: &Server,
    job: &str,
    hello: Hello,
    session: u64,
) -> Result<(Vec<Sealed>, Inlet, Outlet), Error> {
    let keys = Keys::new(job);
    let told = keys.told(session);
    let connection = server.connect(&[&keys.order, &told], ROOM).await?;
    let Connection { mut commands, listener } = connection;
    let mut orders = Vec::new();
    for key in [&keys.order, &told] {
        let mut get = Cmd::new();
        get.arg("HGET").arg(key).arg("frame");
        let stored: Option<Vec<u8>> = get.query_async(&mut commands).await?;
        if let Some(Down::Order(order)) = stored.and_then(|stored| parse(&stored)) {
            orders.push(order);
        }
    }
    Ok((orders, Inlet(listener), Outlet { commands, reports: keys.reports, hello }))
}

impl Inlet {
    /// Waits for the next order.
    pub(crate) async fn next(&mut self) -> Result<Result<Sealed, Refusal>, Error> {
        loop {
            let message = self.0.next().await?;
            match parse(&message) {
                Some(Down::Order(order)) => return Ok(Ok(order)),
                Some(Down::Refused(refusal)) => return Ok(Err(refusal)),
                None => tracing::debug!("there is garbage on the bus"),
            }
        }
    }
}

impl Outlet {
    /// Says how the agent is. It is stored first: whoever hears of it can read it too.
    pub(crate) async fn report(&mut self, status: Status) -> Result<(), Error> {
        let pod = self.hello.pod.clone();
        let letter = frame(&Letter { hello: self.hello.clone(), status });
        let mut report = Pipeline::new();
        report.cmd("HSET").arg(&self.reports).arg(pod).arg(&letter[..]).ignore();
        report.cmd("EXPIRE").arg(&self.reports).arg(KEPT).ignore();
        report.cmd("PUBLISH").arg(&self.reports).arg(&letter[..]).ignore();
        report.exec_async(&mut self.commands).await.map_err(Error::from)
    }
}
