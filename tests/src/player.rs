//! Plays the containers of pods whose nodes only pretend, with the programs that the pods name:
//! agents around real workers.

use std::{
    collections::HashMap,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{EnvVar, Pod, Secret};
use kube::{ResourceExt, api::ListParams};
use tokio::process::{Child, Command};

use crate::world::World;

const LOOK: Duration = Duration::from_millis(50);
/// How long a container may take to end.
const GRACE: Duration = Duration::from_secs(3);

/// Goes through a case while the pods of its namespace are played.
pub(crate) async fn played(
    world: World,
    case: impl AsyncFnOnce(&World, &Player) -> Result<()>,
) -> Result<()> {
    let player = Player { pids: Arc::default() };
    let stage = Stage {
        world: world.clone(),
        played: HashMap::new(),
        ending: Vec::new(),
        pids: Arc::clone(&player.pids),
    };
    tokio::select! {
        ended = case(&world, &player) => ended,
        ended = stage.run() => ended,
    }
}

/// What plays the pods of a namespace. They are ended with it.
pub(crate) struct Player {
    pids: Arc<Mutex<HashMap<String, u32>>>,
}

impl Player {
    /// Sends a signal to what plays a pod.
    pub(crate) fn signal(&self, pod: &str, signal: &str) -> Result<()> {
        let pids = self.pids.lock().unwrap_or_else(PoisonError::into_inner);
        let pid = pids.get(pod).with_context(|| format!("pod {pod} is not played"))?;
        send(*pid, signal)
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let pids = self.pids.lock().unwrap_or_else(PoisonError::into_inner);
        // A worker ends with its agent only if that can see to it.
        for pid in pids.values() {
            drop(send(*pid, "CONT"));
            drop(send(*pid, "TERM"));
        }
    }
}

fn send(pid: u32, signal: &str) -> Result<()> {
    let mut kill = std::process::Command::new("kill");
    let status = kill.args(["-s", signal, &pid.to_string()]).stderr(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { bail!("process {pid} is not there") }
}

struct Stage {
    world: World,
    /// Nothing once the container has ended.
    played: HashMap<String, Option<Child>>,
    /// Containers of pods that are gone or going, and until when they may end by themselves.
    ending: Vec<(Child, Instant)>,
    pids: Arc<Mutex<HashMap<String, u32>>>,
}

impl Stage {
    async fn run(mut self) -> Result<()> {
        loop {
            self.look().await.context("a pod could not be played")?;
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn look(&mut self) -> Result<()> {
        let pods = self.world.api::<Pod>().list(&ListParams::default()).await?.items;
        for pod in &pods {
            let uid = pod.uid().unwrap_or_default();
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            let is_ending = pod.metadata.deletion_timestamp.is_some();
            if phase == Some("Running") && !is_ending && !self.played.contains_key(&uid) {
                let child = self.begin(pod).await?;
                let pid = child.id().unwrap_or_default();
                self.lock().insert(pod.name_any(), pid);
                self.played.insert(uid.clone(), Some(child));
            }
            let Some(playing) = self.played.get_mut(&uid) else { continue };
            let Some(child) = playing else { continue };
            if let Some(status) = child.try_wait()? {
                *playing = None;
                self.lock().remove(&pod.name_any());
                if !is_ending {
                    self.world.end_pod(pod, status.code().unwrap_or(137)).await?;
                }
            }
        }
        let is_left = |uid: &str| {
            pods.iter().any(|pod| {
                pod.uid().as_deref() == Some(uid) && pod.metadata.deletion_timestamp.is_none()
            })
        };
        let gone: Vec<String> = self.played.keys().filter(|uid| !is_left(uid)).cloned().collect();
        for child in gone.iter().filter_map(|uid| self.played.remove(uid).flatten()) {
            if let Some(pid) = child.id() {
                drop(send(pid, "TERM"));
            }
            self.ending.push((child, Instant::now() + GRACE));
        }
        self.ending.retain_mut(|(child, until)| {
            if Instant::now() > *until {
                drop(child.start_kill());
            }
            matches!(child.try_wait(), Ok(None))
        });
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, u32>> {
        self.pids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn begin(&self, pod: &Pod) -> Result<Child> {
        let spec = pod.spec.as_ref().context("a pod without a spec")?;
        let container = spec.containers.first().context("a pod without containers")?;
        let mut words = container.command.iter().chain(&container.args).flatten();
        let mut command = Command::new(words.next().context("a container without a command")?);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null());
        command.env_clear().env("PATH", std::env::var("PATH").unwrap_or_default());
        for env in container.env.iter().flatten() {
            command.env(&env.name, self.value(pod, env).await?);
        }
        command.spawn().context("a container could not be started")
    }

    /// The value of a variable, as a node finds it.
    async fn value(&self, pod: &Pod, env: &EnvVar) -> Result<String> {
        if let Some(value) = &env.value {
            return Ok(value.clone());
        }
        let source = env.value_from.as_ref().context("a variable without a value")?;
        if let Some(key) = &source.secret_key_ref {
            let secret = self.world.api::<Secret>().get(&key.name).await?;
            let value = secret.data.as_ref().and_then(|data| data.get(&key.key));
            let value = value.with_context(|| format!("no {} in {}", key.key, key.name))?;
            return Ok(String::from_utf8(value.0.clone())?);
        }
        let field = source.field_ref.as_ref().context("a variable from somewhere else")?;
        let named = |prefix: &str| {
            field.field_path.strip_prefix(prefix)?.strip_suffix("']").map(str::to_owned)
        };
        if field.field_path == "metadata.uid" {
            return Ok(pod.uid().unwrap_or_default());
        }
        let found = match (named("metadata.labels['"), named("metadata.annotations['")) {
            (Some(key), _) => pod.labels().get(&key),
            (None, Some(key)) => pod.annotations().get(&key),
            (None, None) => bail!("nobody knows {}", field.field_path),
        };
        Ok(found.cloned().unwrap_or_default())
    }
}
