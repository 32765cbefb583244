//! An agent, for whoever started it.

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::Message;

/// A running agent. Dropping it ends the agent and leaves its containers alone.
pub struct AgentHandle {
    task: Option<JoinHandle<()>>,
    messages: mpsc::Sender<Message>,
}

impl AgentHandle {
    pub(super) fn new(task: JoinHandle<()>, messages: mpsc::Sender<Message>) -> Self {
        Self { task: Some(task), messages }
    }

    /// Tells the agent that its node is about to go, and waits until all containers have ended and
    /// the API knows why.
    pub async fn shut_down(&self) {
        let (sender, receiver) = oneshot::channel();
        if self.messages.send(Message::Leave(sender)).await.is_ok() {
            // An agent that has ended by itself does not answer.
            let _ = receiver.await;
        }
    }

    pub(super) fn into_task(mut self) -> JoinHandle<()> {
        self.task.take().expect("only this takes it, and the handle with it")
    }
}

impl Drop for AgentHandle {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
