//! The GPUs of this machine and who has which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The resource name of NVIDIA GPUs.
pub const NVIDIA: &str = "nvidia.com/gpu";
/// The resource name of AMD GPUs.
pub const AMD: &str = "amd.com/gpu";

/// The devices of this node, by resource name, and which of them are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    counts: BTreeMap<String, u32>,
    taken: BTreeMap<(String, String), BTreeMap<String, BTreeSet<u32>>>,
}

/// There are not as many devices as a container wants.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("requested {wanted} of {resource}, but only {free} are free")]
pub struct NotEnough {
    /// What was wanted.
    pub resource: String,
    /// How many.
    pub wanted: u32,
    /// How many there are.
    pub free: u32,
}

impl Devices {
    /// The devices found on this machine.
    pub fn find() -> Self {
        Self::find_in(Path::new("/"))
    }

    /// The devices of a machine whose root is `root`.
    fn find_in(root: &Path) -> Self {
        let dev = root.join("dev");
        let count = |dir: &Path, is_one: &dyn Fn(&str) -> bool| {
            let entries = fs::read_dir(dir).into_iter().flatten().flatten();
            let found = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_one));
            u32::try_from(found.count()).unwrap_or(u32::MAX)
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let nodes = count(&dev, &|name| name.strip_prefix("nvidia").is_some_and(is_number));
        // In some containers the driver shows devices whose nodes are made on first use.
        let driver = count(&root.join("proc/driver/nvidia/gpus"), &|_| true);
        let mut counts = BTreeMap::new();
        counts.insert(NVIDIA.to_owned(), if nodes > 0 { nodes } else { driver });
        if dev.join("kfd").exists() {
            let renders = count(&dev.join("dri"), &|name| name.starts_with("renderD"));
            counts.insert(AMD.to_owned(), renders);
        }
        counts.retain(|_, count| *count > 0);
        Self { counts, taken: BTreeMap::new() }
    }

    /// Says that there are `count` of `resource`, whatever was found. Indices count from 0.
    pub fn pretend(&mut self, resource: &str, count: u32) {
        self.counts.insert(resource.to_owned(), count);
    }

    /// How many there are, by resource name.
    pub fn capacity(&self) -> &BTreeMap<String, u32> {
        &self.counts
    }

    /// Gives a container of a pod `count` devices: the ones it has, or the lowest free ones.
    pub fn allocate(
        &mut self,
        pod_uid: &str,
        container: &str,
        resource: &str,
        count: u32,
    ) -> Result<Vec<u32>, NotEnough> {
        let key = (pod_uid.to_owned(), container.to_owned());
        let wanted = usize::try_from(count).unwrap_or(usize::MAX);
        let own = self.taken.get(&key).and_then(|of| of.get(resource));
        if let Some(own) = own.filter(|own| own.len() == wanted) {
            return Ok(own.iter().copied().collect());
        }
        let by_others: BTreeSet<u32> = self
            .taken
            .iter()
            .filter(|(holder, _)| **holder != key)
            .filter_map(|(_, of)| of.get(resource))
            .flatten()
            .copied()
            .collect();
        let all = 0..self.counts.get(resource).copied().unwrap_or(0);
        let free: Vec<u32> = all.filter(|index| !by_others.contains(index)).collect();
        if free.len() < wanted {
            let free = u32::try_from(free.len()).unwrap_or(u32::MAX);
            return Err(NotEnough { resource: resource.to_owned(), wanted: count, free });
        }
        let given = free[..wanted].to_vec();
        let of = self.taken.entry(key).or_default();
        of.insert(resource.to_owned(), given.iter().copied().collect());
        Ok(given)
    }

    /// Notes which devices a container had before this process started.
    pub fn adopt(&mut self, pod_uid: &str, container: &str, resource: &str, indices: &[u32]) {
        let key = (pod_uid.to_owned(), container.to_owned());
        let of = self.taken.entry(key).or_default();
        of.insert(resource.to_owned(), indices.iter().copied().collect());
    }

    /// Takes the devices of a container back.
    pub fn release_container(&mut self, pod_uid: &str, container: &str) {
        self.taken.remove(&(pod_uid.to_owned(), container.to_owned()));
    }

    /// Takes all devices of a pod back.
    pub fn release(&mut self, pod_uid: &str) {
        self.taken.retain(|(holder, _), _| holder != pod_uid);
    }
}

/// The variables by which a container learns of its devices. Who has none of a kind that the
/// machine has sees none.
pub fn variables(resource: &str, indices: &[u32]) -> Vec<(String, String)> {
    let list = indices.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let names: &[&str] = match resource {
        NVIDIA => &["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"],
        AMD => &["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"],
        _ => &[],
    };
    names.iter().map(|name| ((*name).to_owned(), list.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_by_their_nodes() {
        let root = tempfile::tempdir().unwrap();
        let touch = |path: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        assert!(Devices::find_in(root.path()).capacity().is_empty());
        touch("proc/driver/nvidia/gpus/0000:00:04.0");
        assert_eq!(Devices::find_in(root.path()).capacity()[NVIDIA], 1);
        for name in ["nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "kfd", "dri/renderD128"] {
            touch(&format!("dev/{name}"));
        }
        let devices = Devices::find_in(root.path());
        assert_eq!(devices.capacity()[NVIDIA], 2);
        assert_eq!(devices.capacity()[AMD], 1);
    }

    #[test]
    fn a_device_has_one_holder_at_a_time() {
        let mut devices = Devices::default();
        devices.pretend(NVIDIA, 4);
        assert_eq!(devices.allocate("a", "c", NVIDIA, 2), Ok(vec![0, 1]));
        assert_eq!(devices.allocate("b", "c", NVIDIA, 1), Ok(vec![2]));
        assert_eq!(devices.allocate("a", "c", NVIDIA, 2), Ok(vec![0, 1]), "after a restart");
        let error = devices.allocate("d", "c", NVIDIA, 2).unwrap_err();
        assert_eq!(error.to_string(), "requested 2 of nvidia.com/gpu, but only 1 are free");
        devices.release("a");
        assert_eq!(devices.allocate("d", "c", NVIDIA, 2), Ok(vec![0, 1]));
        devices.adopt("old", "c", NVIDIA, &[3]);
        assert!(devices.allocate("e", "c", NVIDIA, 1).is_err());
        assert_eq!(devices.allocate("e", "c", AMD, 0), Ok(vec![]));
    }

    #[test]
    fn variables_name_the_indices() {
        let cuda = ("CUDA_VISIBLE_DEVICES".to_owned(), "0,3".to_owned());
        assert_eq!(variables(NVIDIA, &[0, 3])[0], cuda);
        assert_eq!(variables(AMD, &[]).len(), 2);
        assert!(variables("example.com/fpga", &[1]).is_empty());
    }
}
