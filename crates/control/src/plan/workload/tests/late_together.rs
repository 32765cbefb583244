//! Gangs that wait for each other's nodes.

use std::collections::BTreeMap;

use lockstep_api::kueue::PodSetAssignment;

use super::*;

/// Workloads of these names that were admitted together, on nodes of these flavors.
struct Gangs {
    driver: Workloads,
    around: Around,
    all: BTreeMap<String, Arc<Workload>>,
    now: Timestamp,
    version: u64,
}

impl Gangs {
    fn new(gangs: &[(&str, &str)]) -> Self {
        let world = World::new().admitted();
        let mut driver = Workloads::new(Options::default());
        let mut all = BTreeMap::new();
        for (name, flavor) in gangs {
            let mut workload = world.workload.clone();
            workload.metadata.name = Some((*name).to_owned());
            workload.metadata.uid = Some((*name).to_owned());
            let given = workload.status.as_mut().and_then(|status| status.admission.as_mut());
            given.expect("it is admitted").pod_set_assignments = vec![PodSetAssignment {
                flavors: [("cpu".to_owned(), (*flavor).to_owned())].into(),
                ..PodSetAssignment::default()
            }];
            let workload = Arc::new(workload);
            driver.seen(&workload, world.now);
            all.insert((*name).to_owned(), workload);
        }
        Self { driver, around: world.around, all, now: world.now, version: 1 }
    }

    /// Runs all passes that are due then; who is evicted by them.
    fn at(&mut self, second: i64) -> Vec<String> {
        self.now = at(second);
        let mut evicted = Vec::new();
        loop {
            let around = self.around.clone();
            let next = self.driver.next((self.now, 0.0), |_| around.clone());
            let Some((key, plan)) = next else { return evicted };
            for step in plan.steps {
                if let Step::WriteStatus(status) = step {
                    let before = self.all[&key.name].status.clone().unwrap_or_default();
                    if status.is_true(conditions::EVICTED) && !before.is_true(conditions::EVICTED) {
                        evicted.push(key.name.clone());
                    }
                    self.write(&key.name, |workload| workload.status = Some(*status));
                }
            }
            self.driver.done(&key, self.now);
        }
    }

    fn write(&mut self, name: &str, change: impl FnOnce(&mut Workload)) {
        self.version += 1;
        let workload = self.all.get_mut(name).expect("it is there");
        let workload = Arc::make_mut(workload);
        change(workload);
        workload.metadata.resource_version = Some(self.version.to_string());
        self.driver.seen(&Arc::new(workload.clone()), self.now);
    }

    /// The job of one has stopped.
    fn released(&mut self, name: &str) {
        let now = self.now;
        self.write(name, |workload| {
            let status = workload.status.as_mut().expect("a status");
            status.admission = None;
            status.say((conditions::QUOTA_RESERVED, false), ("R", ""), None, now);
            status.say((conditions::ADMITTED, false), ("NoReservation", ""), None, now);
        });
    }
}

#[test]
fn one_goes_at_a_time_and_the_others_have_the_whole_time_again() {
    let mut gangs = Gangs::new(&[("a", "f"), ("b", "f"), ("c", "f")]);
    assert_eq!(gangs.at(1299), Vec::<String>::new());
    assert_eq!(gangs.at(1300), ["a"], "all are late, and one goes");
    assert_eq!(gangs.at(1310), Vec::<String>::new(), "its pods are not gone yet");
    gangs.released("a");
    assert_eq!(gangs.at(1609), Vec::<String>::new());
    gangs.write("c", |workload| {
        let status = workload.status.as_mut().expect("a status");
        status.say((conditions::PODS_READY, true), ("Started", ""), None, at(1609));
    });
    assert_eq!(gangs.at(1610), ["b"], "what was left was enough for one of them");
    assert_eq!(gangs.at(9999), Vec::<String>::new());
}

#[test]
fn those_who_recover_have_the_time_of_a_recovery_again_and_no_more() {
    let mut gangs = Gangs::new(&[("a", "f"), ("b", "f"), ("c", "f")]);
    let wait = gangs.around.wait.as_mut().expect("waits");
    wait.recovery_timeout = Some(Duration::from_secs(60));
    let lost = |gangs: &mut Gangs, name: &str, second| {
        gangs.now = at(second);
        gangs.write(name, |workload| {
            let status = workload.status.as_mut().expect("a status");
            status.say((conditions::PODS_READY, true), ("Started", ""), None, at(1000));
            let words = ("WaitForRecovery", "");
            status.say((conditions::PODS_READY, false), words, None, at(second));
        });
    };
    lost(&mut gangs, "a", 1100);
    lost(&mut gangs, "b", 1100);
    assert_eq!(gangs.at(1160), ["a"]);
    gangs.now = at(1170);
    gangs.released("a");
    assert_eq!(gangs.at(1229), Vec::<String>::new(), "what was left may help");
    assert_eq!(gangs.at(1230), ["b"], "for as long as a recovery may take, not a start");
    // One that is lost long after does not have the time of those who left.
    gangs.now = at(1240);
    gangs.released("b");
    lost(&mut gangs, "c", 1280);
    assert_eq!(gangs.at(1339), Vec::<String>::new());
    assert_eq!(gangs.at(1340), ["c"]);
}

#[test]
fn other_nodes_are_none_of_their_business() {
    let mut gangs = Gangs::new(&[("a", "f"), ("b", "g")]);
    assert_eq!(gangs.at(1300), ["a", "b"]);
}

#[test]
fn an_eviction_that_was_refused_holds_up_nobody() {
    let mut gangs = Gangs::new(&[("a", "f"), ("b", "f")]);
    gangs.now = at(1300);
    let around = gangs.around.clone();
    let (key, plan) = gangs.driver.next((gangs.now, 0.0), |_| around.clone()).expect("a pass");
    assert!(plan.evicts_late());
    let refusal = Refusal { kind: RefusalKind::Other, message: String::new() };
    gangs.driver.refused(&key, &refusal, gangs.now);
    gangs.driver.done(&key, gangs.now);
    assert_eq!(gangs.at(1300), ["b"], "the first is tried again later");
    gangs.driver.gone(&Key { namespace: "ns".to_owned(), name: "b".to_owned() }, "b", at(1301));
    assert_eq!(gangs.at(1302), Vec::<String>::new(), "it has the whole time again");
    assert_eq!(gangs.at(1601), ["a"]);
}
