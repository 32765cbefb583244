//! Where the node keeps its files, below the data directory.

use std::path::{Path, PathBuf};

use super::runtime::ContainerId;

/// Where folders in memory are, on every Linux.
pub(super) const MEMORY: &str = "/dev/shm";

/// The folders of one node.
#[derive(Clone, Debug)]
pub struct NodeDirs {
    data: PathBuf,
    node: PathBuf,
}

impl NodeDirs {
    /// The folders of the node whose cluster keeps its data in `data_dir`, which must be absolute.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        let data = data_dir.into();
        let node = data.join("node");
        Self { data, node }
    }

    /// The data directory as a whole; pods do not see it.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Everything that belongs to the pods.
    pub fn pods(&self) -> PathBuf {
        self.node.join("pods")
    }

    /// Everything that belongs to one pod, except its logs.
    pub fn pod(&self, uid: &str) -> PathBuf {
        self.pods().join(uid)
    }

    /// The volumes of one pod.
    pub fn volumes(&self, uid: &str) -> PathBuf {
        self.pod(uid).join("volumes")
    }

    /// The volumes of all claims: these stay when pods go.
    pub fn claims(&self) -> PathBuf {
        self.node.join("claims")
    }

    /// What all pods of this cluster have in memory: nothing else of it is outside the data
    /// directory.
    pub fn memory(&self) -> PathBuf {
        Path::new(MEMORY).join(self.instance())
    }

    /// A name for what this cluster claims on the machine: the same whenever it is started again.
    pub fn instance(&self) -> String {
        // FNV-1a: short, and the same in every version.
        let bytes = self.data.as_os_str().as_encoded_bytes();
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("lockstep-{hash:016x}")
    }

    /// The state of one container instance.
    pub fn container(&self, id: &ContainerId) -> PathBuf {
        self.pod(&id.pod_uid).join("containers").join(&id.container).join(id.attempt.to_string())
    }

    /// The logs of all pods.
    pub fn logs(&self) -> PathBuf {
        self.node.join("logs")
    }

    /// The logs of one pod, named as kubelets name them.
    pub fn pod_logs(&self, namespace: &str, name: &str, uid: &str) -> PathBuf {
        self.logs().join(format!("{namespace}_{name}_{uid}"))
    }

    /// The hosts file of a pod that has lines of its own.
    pub fn pod_hosts(&self, uid: &str) -> PathBuf {
        self.pod(uid).join("hosts")
    }

    /// The per-namespace hosts files.
    pub fn hosts(&self) -> PathBuf {
        self.node.join("hosts")
    }
}
