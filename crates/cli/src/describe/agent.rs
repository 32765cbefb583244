//! The agent around a worker that restarts in place: it is put into Jobs, never into what a user
//! wrote, so it has to be shown.

use std::fmt;

use serde_json::Value;

use super::{
    template::list,
    text::{Text, scalar},
};

/// The variable that every agent has: where it finds whoever leads its gang.
const ORCHESTRATOR: &str = "LOCKSTEP_ORCHESTRATOR";

/// An agent around a container.
pub(super) struct Agent {
    container: String,
    command: Vec<String>,
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "container {} is started by {}", self.container, self.command.join(" "))
    }
}

/// The agent in the pods of a Job, if there is one.
pub(super) fn of_job(job: &Value) -> Option<Agent> {
    let containers = list(&job["spec"]["template"]["spec"]["containers"]);
    let has_agent = |container: &&Value| {
        list(&container["env"]).iter().any(|variable| variable["name"] == ORCHESTRATOR)
    };
    let worker = containers.iter().find(has_agent)?;
    let command = list(&worker["command"]).iter().map(scalar).collect();
    Some(Agent { container: scalar(&worker["name"]), command })
}

/// Says so of a Job that has one.
pub(super) fn describe(job: &Value, text: &mut Text) {
    if let Some(agent) = of_job(job) {
        text.field(0, "In-Place Restart", agent.to_string());
    }
}
