//! Random worlds, against what must never happen.

use proptest::prelude::*;

use super::*;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Add { queue: usize, gpus: i64, priority: i32 },
    Finish(usize),
    Release(usize),
    Quota { queue: usize, nominal: i64 },
    Run,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..3_usize, 1..5_i64, 0..3_i32)
            .prop_map(|(queue, gpus, priority)| Step::Add { queue, gpus, priority }),
        2 => (0..40_usize).prop_map(Step::Finish),
        2 => (0..40_usize).prop_map(Step::Release),
        1 => (0..3_usize, 0..7_i64).prop_map(|(queue, nominal)| Step::Quota { queue, nominal }),
        2 => Just(Step::Run),
    ];
    prop::collection::vec(step, 1..80)
}

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Whom each queue may preempt: of its own, and of others.
type Policies = [(&'static str, &'static str); 3];

fn policies() -> impl Strategy<Value = Policies> {
    let within = prop::sample::select(vec!["Never", "LowerPriority", "LowerOrNewerEqualPriority"]);
    let reclaim = prop::sample::select(vec!["Never", "LowerPriority", "Any"]);
    prop::array::uniform3((within, reclaim))
}

/// What each queue allows: the first is strict, the second borrows only so much.
fn spec(queue: usize, nominal: i64, policies: &Policies) -> Value {
    let (within, reclaim) = policies[queue];
    let preemption = json!({"withinClusterQueue": within, "reclaimWithinCohort": reclaim});
    let mut spec = gpus(nominal, json!({"cohortName": "c", "preemption": preemption}));
    if queue == 0 {
        spec["queueingStrategy"] = json!("StrictFIFO");
    }
    if queue == 1 {
        spec["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = json!("2");
    }
    spec
}

struct Oracle {
    world: World,
    policies: Policies,
    nominal: [i64; 3],
    asked: BTreeMap<String, (usize, i64)>,
}

impl Oracle {
    /// What the workloads of each queue hold, counted one by one.
    fn used(&self) -> [i64; 3] {
        let mut used = [0; 3];
        for name in self.world.holding() {
            let (queue, gpus) = self.asked[name];
            used[queue] += gpus;
        }
        used
    }

    /// Whether a queue may use so much more, by the rules alone.
    fn fits(&self, queue: usize, more: i64) -> bool {
        let used = self.used();
        let total: i64 = used.iter().sum();
        let within = queue != 1 || used[1] + more <= self.nominal[1] + 2;
        total + more <= self.nominal.iter().sum() && within
    }

    /// Runs cycles and checks each admission against the rules.
    fn run(&mut self) {
        for _ in 0..50 {
            let cycle = self.world.cycle();
            if cycle.decisions.is_empty() {
                return;
            }
            for decision in cycle.decisions {
                if matches!(decision, Decision::Admit(_)) {
                    let (queue, gpus) = self.asked[&decision.write().key.name];
                    assert!(self.fits(queue, gpus), "{decision:?} with {:?}", self.used());
                }
                self.world.carry_out(decision.write());
            }
        }
        panic!("no rest");
    }

    /// Nobody of the strict queue goes before its head, and the head goes when it fits.
    fn check_rest(&self) {
        let used = self.used();
        let pending = |name: &&str| {
            let conditions = self.world.workloads[*name].status.clone().unwrap_or_default();
            !conditions.conditions.iter().any(|it| {
                matches!(it.type_.as_str(), "QuotaReserved" | "Finished") && it.status == "True"
            })
        };
        let names = self.world.workloads.keys().map(String::as_str);
        let waits_in_first = names.filter(pending).any(|name| self.asked[name].0 == 0);
        for (queue, own) in used.iter().enumerate() {
            let names = self.world.workloads.keys().map(String::as_str);
            let mut waiting: Vec<&str> =
                names.filter(|name| self.asked[*name].0 == queue).filter(pending).collect();
            waiting.sort_by_key(|name| {
                let object = &self.world.workloads[*name];
                let created = object.metadata.creation_timestamp.clone().map(|at| at.0);
                (std::cmp::Reverse(object.spec.priority), created, (*name).to_owned())
            });
            // What fits into the queue's own quota, with nobody else having a claim, is not left.
            let claims = self.world.workloads.values().any(|object| {
                let status = object.status.clone().unwrap_or_default();
                status.conditions.iter().any(|it| it.type_ == "Evicted" && it.status == "True")
            });
            // The head of a strict queue that cannot take back what it lent claims it for good.
            let claims = claims || queue != 0 && self.policies[0].1 != "Any" && waits_in_first;
            let first = if queue == 0 { &waiting[..waiting.len().min(1)] } else { &waiting[..] };
            for name in first {
                let gpus = self.asked[*name].1;
                let is_own = own + gpus <= self.nominal[queue];
                assert!(
                    claims || !(is_own && self.fits(queue, gpus)),
                    "{name} could run: {used:?} of {:?}",
                    self.nominal
                );
            }
        }
    }

    /// Lets one thing happen, as the `at`th.
    fn happen(&mut self, at: usize, step: &Step) {
        let second = i64::try_from(at).unwrap();
        self.world.now = super::at(100 + second);
        match *step {
            Step::Add { queue, gpus, priority } => {
                let name = format!("w{at:03}");
                self.asked.insert(name.clone(), (queue, gpus));
                self.world.add(&name, NAMES[queue], gpus, priority, second);
            }
            Step::Finish(index) => {
                let holding = self.world.holding();
                let name = holding.iter().nth(index % holding.len().max(1));
                if let Some(name) = name.map(ToString::to_string) {
                    self.world.finish(&name);
                }
            }
            Step::Release(index) => {
                let holding = self.world.holding().into_iter();
                let evicted: Vec<String> = holding
                    .filter(|name| self.world.condition(name, "Evicted").0 == "True")
                    .map(str::to_owned)
                    .collect();
                if let Some(name) = evicted.get(index % evicted.len().max(1)) {
                    self.world.release(name);
                }
            }
            Step::Quota { queue, nominal } => {
                self.nominal[queue] = nominal;
                let spec = spec(queue, nominal, &self.policies);
                self.world.cluster(NAMES[queue], spec);
            }
            Step::Run => {
                self.run();
                self.check_rest();
            }
        }
    }
}

/// Lets all of it happen, then lets everything run that can.
fn play(steps: &[Step], policies: Policies) {
    let nominal = [4, 3, 2];
    let clusters: Vec<(&str, Value)> = NAMES
        .iter()
        .enumerate()
        .map(|(at, name)| (*name, spec(at, nominal[at], &policies)))
        .collect();
    let world = World::new(&clusters);
    let mut oracle = Oracle { world, policies, nominal, asked: BTreeMap::new() };
    for (at, step) in steps.iter().enumerate() {
        oracle.happen(at, step);
    }
    // When nothing more comes, everything that can ever run does.
    for _ in 0..200 {
        oracle.run();
        oracle.check_rest();
        let holding: Vec<String> = oracle.world.holding().into_iter().map(str::to_owned).collect();
        let Some(name) = holding.first() else { break };
        if oracle.world.condition(name, "Evicted").0 == "True" {
            oracle.world.release(name);
        } else {
            oracle.world.finish(name);
        }
    }
    assert!(oracle.world.holding().is_empty(), "some go and come back for ever");
    for (name, (queue, gpus)) in &oracle.asked {
        let (status, reason, _) = oracle.world.condition(name, "QuotaReserved");
        if status != "True" {
            let can_ever = oracle.fits(*queue, *gpus);
            // Behind the head of a strict queue that can never run nobody runs.
            assert!(!can_ever || *queue == 0, "{name} is left with {reason}");
        }
    }
}

#[test]
fn those_that_give_way_do_not_take_turns_for_ever() {
    let add = |queue, gpus, priority| Step::Add { queue, gpus, priority };
    let quota = |queue, nominal| Step::Quota { queue, nominal };
    let steps = [
        add(2, 4, 1),
        quota(0, 0),
        add(1, 3, 1),
        add(1, 2, 1),
        add(0, 1, 0),
        add(2, 2, 2),
        add(1, 1, 0),
        quota(2, 5),
        add(2, 2, 1),
        add(2, 1, 0),
    ];
    // Whatever the first queue may do: it has nothing of its own.
    for within in ["Never", "LowerPriority", "LowerOrNewerEqualPriority"] {
        for reclaim in ["Never", "LowerPriority", "Any"] {
            play(&steps, [(within, reclaim), ("LowerPriority", "Any"), ("Never", "Any")]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    // rule: queueing 4.3.1
    // rule: queueing 4.1.1
    #[test]
    fn quota_is_kept_and_nobody_who_could_run_is_left(
        steps in steps(),
        policies in policies(),
    ) {
        play(&steps, policies);
    }
}
