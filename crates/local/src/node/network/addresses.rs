//! One loopback address per pod.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv4Addr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

use super::PodName;

/// The second bytes of the networks that clusters can claim.
static NETWORKS: std::ops::Range<u8> = 64..128;

/// A network that no other cluster on this machine uses. Given back by the kernel when the process
/// ends, however it ends.
pub(super) struct Claim {
    network: u8,
    _socket: UnixListener,
}

impl Claim {
    /// Claims a network, the same as last time if it is free.
    pub(super) fn first_free(data_dir: &Path) -> io::Result<Self> {
        let count = NETWORKS.len();
        let bytes = data_dir.as_os_str().as_encoded_bytes();
        let preferred =
            bytes.iter().fold(0, |sum: usize, byte| sum * 31 % count + usize::from(*byte));
        for index in 0..count {
            let network =
                NETWORKS.clone().nth((preferred + index) % count).expect("below the count");
            // Abstract names belong to the network namespace, exactly as loopback addresses do.
            let name = format!("lockstep/127.{network}");
            match UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?) {
                Ok(socket) => return Ok(Self { network, _socket: socket }),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "all networks from 127.64.0.0/16 to 127.127.0.0/16 are claimed by other clusters",
        ))
    }

    pub(super) fn network(&self) -> u8 {
        self.network
    }
}

/// Who has which address.
#[derive(Debug)]
pub(super) struct Addresses {
    network: u8,
    /// Where the search for a free one goes on, so that an address rests before it is used again.
    next: u16,
    by_pod: BTreeMap<String, Ipv4Addr>,
    promised: BTreeMap<PodName, Ipv4Addr>,
    /// The addresses of pods.
    given: BTreeSet<Ipv4Addr>,
    /// The addresses that were promised.
    reserved: BTreeSet<Ipv4Addr>,
}

impl Addresses {
    pub(super) fn new(network: u8) -> Self {
        Self {
            network,
            next: 2,
            by_pod: BTreeMap::new(),
            promised: BTreeMap::new(),
            given: BTreeSet::new(),
            reserved: BTreeSet::new(),
        }
    }

    /// The address of a pod, found or given now; `None` if there is none left.
    pub(super) fn of_pod(&mut self, uid: &str, name: &PodName) -> Option<Ipv4Addr> {
        if let Some(address) = self.by_pod.get(uid) {
            return Some(*address);
        }
        let promised = self.promised.get(name).copied();
        let address = match promised.filter(|address| !self.given.contains(address)) {
            Some(address) => address,
            None => self.free()?,
        };
        self.give(uid, address);
        Some(address)
    }

    /// The address that the pod of this name will have.
    pub(super) fn promise(&mut self, name: &PodName) -> Option<Ipv4Addr> {
        if let Some(address) = self.promised.get(name) {
            return Some(*address);
        }
        let address = self.free()?;
        self.reserved.insert(address);
        self.promised.insert(name.clone(), address);
        Some(address)
    }

    /// Leaves a pod its address; `false` when another pod has it, or no pod can have it.
    ///
    /// It may be one of a network that the cluster had before. Others are nobody's to give: a
    /// status can say anything.
    pub(super) fn adopt(&mut self, uid: &str, address: Ipv4Addr) -> bool {
        if self.by_pod.contains_key(uid) {
            return true;
        }
        let [first, second, ..] = address.octets();
        let is_a_pods = first == 127 && NETWORKS.contains(&second);
        if !is_a_pods || self.given.contains(&address) {
            return false;
        }
        self.give(uid, address);
        true
    }

    pub(super) fn release(&mut self, uid: &str) {
        // A promised address waits for the next pod of that name: others were told it.
        if let Some(address) = self.by_pod.remove(uid) {
            self.given.remove(&address);
        }
    }

    fn give(&mut self, uid: &str, address: Ipv4Addr) {
        self.given.insert(address);
        self.by_pod.insert(uid.to_owned(), address);
    }

    fn free(&mut self) -> Option<Ipv4Addr> {
        // The first and the last two are left alone: they look like network and broadcast
        // addresses.
        for _ in 0..=u16::MAX {
            let [high, low] = self.next.to_be_bytes();
            self.next = self.next.checked_add(1).filter(|next| *next < u16::MAX).unwrap_or(2);
            let address = Ipv4Addr::new(127, self.network, high, low);
            if !self.given.contains(&address) && !self.reserved.contains(&address) {
                return Some(address);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(hostname: &str) -> PodName {
        let subdomain = Some("gang".to_owned());
        PodName { namespace: "ns".to_owned(), hostname: hostname.to_owned(), subdomain }
    }

    #[test]
    fn addresses_are_kept_promised_and_given_back() {
        let mut addresses = Addresses::new(70);
        let promised = addresses.promise(&name("gang-0")).unwrap();
        assert_eq!(addresses.promise(&name("gang-0")), Some(promised));
        let other = addresses.of_pod("b", &name("gang-1")).unwrap();
        assert_ne!(other, promised);
        assert_eq!(addresses.of_pod("a", &name("gang-0")), Some(promised));
        assert_eq!(addresses.of_pod("a", &name("gang-0")), Some(promised));
        assert_ne!(addresses.of_pod("twin", &name("gang-0")), Some(promised));
        addresses.release("a");
        assert_eq!(addresses.of_pod("c", &name("gang-0")), Some(promised), "others were told it");
        let old = Ipv4Addr::new(127, 70, 0, 5);
        assert!(addresses.adopt("old", old));
        assert!(addresses.adopt("old", old));
        assert!(!addresses.adopt("thief", old), "one address, one pod");
        assert!(addresses.adopt("moved", Ipv4Addr::new(127, 71, 0, 5)), "of an earlier network");
        for elsewhere in [[127, 0, 0, 1], [10, 0, 0, 5], [127, 128, 0, 1]] {
            assert!(!addresses.adopt("liar", Ipv4Addr::from(elsewhere)), "{elsewhere:?}");
        }
        let more: Vec<_> =
            (0..5).filter_map(|n| addresses.of_pod(&n.to_string(), &name("x"))).collect();
        assert!(!more.contains(&old));
    }

    #[test]
    fn a_full_network_says_so_and_recovers() {
        let mut addresses = Addresses::new(70);
        let mut count = 0;
        while addresses.of_pod(&count.to_string(), &name("x")).is_some() {
            count += 1;
        }
        assert_eq!(count, 65_533);
        addresses.release("7");
        assert!(addresses.of_pod("new", &name("x")).is_some());
    }

    #[test]
    fn clusters_claim_different_networks() {
        let dir = Path::new("/some/data");
        let first = Claim::first_free(dir).unwrap();
        let second = Claim::first_free(dir).unwrap();
        assert_ne!(first.network(), second.network());
        let again = first.network();
        drop(first);
        assert_eq!(Claim::first_free(dir).unwrap().network(), again);
    }
}
