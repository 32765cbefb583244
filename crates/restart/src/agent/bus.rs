//! An agent whose leader is reached through Valkey.

use std::error::Error as _;
use std::io;

use super::link::{Link, News, refused};
use crate::valkey::{self, Error, Inlet, Outlet, Server};
use crate::wire::{Hello, PROTOCOL};

impl Link {
    /// One connection to Valkey, which outlives leaders.
    pub(super) async fn talk_on_bus(
        &mut self,
        server: &Server,
        job: &str,
        has_heard: &mut bool,
    ) -> io::Result<()> {
        let (ticket, pod) = (self.ticket.clone(), self.pod.clone());
        let hello = Hello { protocol: PROTOCOL, ticket, pod };
        let connected = valkey::connect(server, job, hello, self.session).await;
        let (orders, inlet, outlet) = connected.map_err(failed)?;
        *has_heard = true;
        // What was said before may not have arrived.
        self.latest.mark_unchanged();
        for order in orders {
            if self.tell.send(News::Order(order)).await.is_err() {
                return Ok(());
            }
        }
        if self.tell.send(News::Connected).await.is_err() {
            return Ok(());
        }
        self.converse(inlet, outlet).await.map_err(failed)
    }

    async fn converse(&mut self, mut inlet: Inlet, mut outlet: Outlet) -> Result<(), Error> {
        let (latest, tell) = (&mut self.latest, &self.tell);
        let writing = async {
            while latest.changed().await.is_ok() {
                let status = latest.borrow_and_update().clone();
                if let Some(status) = status {
                    outlet.report(status).await?;
                }
            }
            Ok(())
        };
        let reading = async {
            loop {
                match inlet.next().await? {
                    Ok(order) if tell.send(News::Order(order)).await.is_err() => return Ok(()),
                    Ok(_) => {}
                    // Another leader may see it differently, on the same connection.
                    Err(refusal) => drop(refused(&refusal)),
                }
            }
        };
        tokio::select! {
            ended = reading => ended,
            ended = writing => ended,
        }
    }
}

fn failed(error: Error) -> io::Error {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let what = format!("{error}{cause}");
    if matches!(error, Error::Denied(_)) {
        // What will not change by waiting is worth a word.
        tracing::error!("not let in: {what}");
    }
    io::Error::other(what)
}
