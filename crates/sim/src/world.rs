//! One simulated cluster from its first moment to the last.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use lockstep_api::{
    kueue::WaitForPodsReady,
    reasons::kueue::workload::{QUOTA_RESERVED, WAITING},
};
use lockstep_control::plan::{
    job::Options,
    jobset::{self, JobSets},
};

use crate::{
    api::Kind,
    chance::Chance,
    check::{Author, Checker, Violation},
    cluster::{Cluster, Happening},
    controller::{Actor, Controller},
    faults::Faults,
    jobs::{self, JobDriver},
    manifest::queue,
    node::{Node, Temper},
    queues::{self, QueueController},
    sets,
    trace::Trace,
    user::User,
};

/// After so many events a world that has not come to rest never will.
const EVENTS_MAX: u64 = 60_000;

/// What a world is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Jobs that users make.
    #[default]
    Jobs,
    /// JobSets that users make, and the Jobs these make.
    JobSets,
    /// Jobs and JobSets that users make and that wait in queues.
    Queues,
}

/// Which world, and what is special about it.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The seed everything is drawn from.
    pub seed: u64,
    /// What it is about.
    pub sort: Sort,
    /// Numbers of faults that do not happen.
    pub muted: BTreeSet<u32>,
    /// Whether the story is kept.
    pub is_told: bool,
    /// Who changes plans behind the back of the planner, if anybody does.
    pub meddler: Option<jobs::Meddler>,
    /// The same for JobSets.
    pub set_meddler: Option<sets::Meddler>,
    /// The same for queues.
    pub queue_meddler: Option<queues::Meddler>,
    /// Who turns the knobs of the controllers, if anybody does.
    pub tune: Option<fn(&mut Options)>,
}

/// How a world ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How many things happened.
    pub events: u64,
    /// How many faults there were.
    pub faults: u32,
    /// How many Jobs or JobSets completed, and how many failed.
    pub endings: (usize, usize),
    /// What must never happen, if it did.
    pub violation: Option<Violation>,
    /// The story, if it was kept.
    pub trace: Trace,
}

/// Runs a world to its end.
pub fn run(setup: &Setup) -> Outcome {
    let mut world = World::new(setup);
    let violation = world.run().err();
    if let Some(violation) = &violation {
        world.cluster.say("checker", || format!("VIOLATION: {violation}"));
    }
    Outcome {
        events: world.events,
        faults: world.faults.fired(),
        endings: world.checker.endings(setup.sort),
        violation,
        trace: world.cluster.trace,
    }
}

struct World {
    cluster: Cluster,
    node: Node,
    user: User,
    faults: Faults,
    checker: Checker,
    /// By number; those that are dead are gone.
    controllers: Vec<Option<(Role, Box<dyn Actor>)>>,
    sort: Sort,
    meddler: Option<jobs::Meddler>,
    set_meddler: Option<sets::Meddler>,
    queue_meddler: Option<queues::Meddler>,
    /// Whether and how pods are waited for.
    wait: Option<WaitForPodsReady>,
    seed: u64,
    options: Options,
    is_collecting: bool,
    is_healed: bool,
    events: u64,
    chance: Chance,
}

impl World {
    fn new(setup: &Setup) -> Self {
        let seed = setup.seed;
        let mut chance = Chance::new(seed, "world");
        let start = Timestamp::from_second(1_800_000_000).expect("a moment of this century");
        let trace = if setup.is_told { Trace::full() } else { Trace::silent() };
        let mut cluster = Cluster::new(start, trace);
        let wait = (setup.sort == Sort::Queues).then(|| make_queues(seed, &mut cluster)).flatten();
        let span = SignedDuration::from_secs(i64::from(chance.between(5, 120)));
        let acts = chance.weighted(&[(3, 0), (4, 3), (3, 8)]);
        let user = User::new((seed, setup.sort), acts, span, &mut cluster);
        let temper =
            Temper { succeed: chance.pick(&[95, 70, 40, 10]), exit: chance.pick(&[20, 60, 90]) };
        cluster.after(span, Happening::Heal);
        let mut options = Options { job_success_policy: !chance.percent(5), ..limits(seed) };
        setup.tune.iter().for_each(|tune| tune(&mut options));
        let mut world = Self {
            node: Node::new(seed, temper),
            user,
            faults: Faults::new(seed, setup.muted.clone()),
            checker: Checker::new(options.job_success_policy, wait.clone()),
            controllers: Vec::new(),
            sort: setup.sort,
            meddler: setup.meddler,
            set_meddler: setup.set_meddler,
            queue_meddler: setup.queue_meddler,
            wait,
            seed,
            options,
            is_collecting: false,
            is_healed: false,
            events: 0,
            chance,
            cluster,
        };
        world.start_controllers();
        world
    }

    fn run(&mut self) -> Result<(), Violation> {
        while self.step()? {}
        self.checker.check_converged(self.sort)?;
        // Who looks at all of it for the first time must find nothing to do.
        let before = self.state();
        self.controllers.clear();
        self.start_controllers();
        self.plan_work();
        while self.step()? {}
        if self.state() != before {
            return Err(Violation(
                "a controller that starts anew finds something to do".to_owned(),
            ));
        }
        Ok(())
    }

    /// What a controller that starts anew must not change. In which words somebody is told why he
    /// waits may change: his place in the queue is not told whenever another leaves it, and of
    /// those alike only the one that was tried is told in full.
    fn state(&self) -> Vec<String> {
        let api = &self.cluster.api;
        if self.sort != Sort::Queues {
            return vec![api.snapshot().revision().to_string()];
        }
        let objects = Kind::ALL.into_iter().flat_map(|kind| api.list(kind));
        let without_words = |object: &std::sync::Arc<lockstep_store::Object>| {
            let mut object = serde_json::Value::from(object.json());
            object["metadata"]["resourceVersion"] = serde_json::Value::Null;
            object["status"]["resourceRequests"] = serde_json::Value::Null;
            let conditions = object["status"]["conditions"].as_array_mut();
            for said in conditions.into_iter().flatten() {
                if said["type"] == WAITING {
                    *said = serde_json::Value::Null;
                } else if said["type"] == QUOTA_RESERVED && said["status"] == "False" {
                    said["message"] = serde_json::Value::Null;
                }
            }
            object.to_string()
        };
        objects.map(without_words).collect()
    }

    /// Lets the next thing happen; false when nothing is left.
    fn step(&mut self) -> Result<bool, Violation> {
        let Some(happening) = self.cluster.advance() else { return Ok(false) };
        self.events += 1;
        if self.events > EVENTS_MAX {
            return Err(Violation(format!("not at rest after {EVENTS_MAX} events")));
        }
        let author = self.happen(happening)?;
        let now = self.cluster.now();
        self.checker.observe(&mut self.cluster.api, now, author)?;
        if self.sort == Sort::Queues && self.is_healed {
            self.checker.check_running(now)?;
        }
        self.node.observe(&mut self.cluster);
        self.plan_work();
        Ok(true)
    }

    fn happen(&mut self, happening: Happening) -> Result<Author, Violation> {
        match happening {
            Happening::Pod { uid, act } => {
                self.node.act(&mut self.cluster, &uid, act);
                return Ok(Author::Node);
            }
            Happening::User(act) => {
                if !self.is_healed {
                    self.user.act(&mut self.cluster, act);
                }
                return Ok(Author::User);
            }
            Happening::Collect => {
                self.is_collecting = false;
                if let Some(what) = self.cluster.api.collect() {
                    self.cluster.say("collector", || format!("sees to {what}"));
                }
                return Ok(Author::Collector);
            }
            Happening::Deliver { controller, kind } => self.deliver(controller, kind),
            Happening::Work { controller } => return self.work(controller),
            Happening::Abdicate { controller } => {
                self.cluster.say("fault", || format!("controller {controller} is stopped"));
                self.controllers[controller] = None;
            }
            Happening::Heal => self.heal(),
        }
        Ok(Author::User)
    }

    fn deliver(&mut self, number: usize, kind: Kind) {
        let Some((_, controller)) = &mut self.controllers[number] else { return };
        if self.faults.loses_watch() {
            self.cluster.say("fault", || format!("controller {number} loses its {kind:?} watch"));
            controller.lose_watch(kind);
        }
        controller.hear(&mut self.cluster, kind, self.faults.gulp());
    }

    fn work(&mut self, number: usize) -> Result<Author, Violation> {
        let Some((role, _)) = self.controllers[number] else { return Ok(Author::User) };
        if self.faults.crashes() {
            self.cluster.say("fault", || format!("controller {number} crashes"));
            self.controllers[number] = None;
            self.start_controller(role);
            return Ok(Author::User);
        }
        let is_alone = self.of_role(role).count() == 1;
        let (_, controller) = self.controllers[number].as_mut().expect("it was there just now");
        let seen = controller.seen();
        let checker = is_alone.then_some(&self.checker);
        controller.work(&mut self.cluster, &mut self.faults, checker)?;
        // Of many requests under way nobody knows before which one it is.
        let seen = if role == Role::Queues { controller.seen() } else { seen };
        let turn = controller.turn();
        if is_alone && self.faults.usurps() {
            let next = self.start_controller(role);
            self.cluster.say("fault", || format!("controller {next} believes to be the leader"));
            let delay = self.chance.millis(1, 20_000);
            self.cluster.after(delay, Happening::Abdicate { controller: number });
        }
        if let Some(by) = self.faults.jump() {
            self.cluster.jump(by);
            self.cluster.say("fault", || format!("the clock jumps by {by:#}"));
        }
        Ok(match role {
            Role::Jobs => Author::Controller { number, seen, is_alone },
            Role::Sets => Author::Sets { number, seen },
            Role::Queues => Author::Queues { number, seen, turn },
        })
    }

    fn heal(&mut self) {
        self.cluster.say("world", || "faults end".to_owned());
        self.faults.end();
        self.is_healed = true;
        self.node.heal(&mut self.cluster);
        match self.sort {
            Sort::Jobs | Sort::JobSets => self.user.heal(&mut self.cluster),
            Sort::Queues => self.user.heal_queues(&mut self.cluster),
        }
        // Of those that believe to lead, the last one does.
        for role in [Role::Jobs, Role::Sets, Role::Queues] {
            let last = self.of_role(role).last();
            for (number, controller) in self.controllers.iter_mut().enumerate() {
                if Some(number) != last {
                    controller.take_if(|(of, _)| *of == role);
                }
            }
        }
    }

    /// The numbers of the controllers of a role that are alive.
    fn of_role(&self, role: Role) -> impl Iterator<Item = usize> {
        let alive = self.controllers.iter().enumerate();
        alive.filter_map(move |(number, controller)| {
            controller.as_ref().is_some_and(|(of, _)| *of == role).then_some(number)
        })
    }

    fn start_controllers(&mut self) {
        self.start_controller(Role::Jobs);
        match self.sort {
            Sort::Jobs => {}
            Sort::JobSets => drop(self.start_controller(Role::Sets)),
            Sort::Queues => {
                self.start_controller(Role::Sets);
                self.start_controller(Role::Queues);
            }
        }
    }

    fn start_controller(&mut self, role: Role) -> usize {
        let number = self.controllers.len();
        let controller: Box<dyn Actor> = match role {
            Role::Jobs => {
                let driver = JobDriver::new(self.options.clone());
                Box::new(Controller::new(number, driver, self.meddler))
            }
            Role::Sets => {
                let driver = JobSets::new(jobset::Options::default());
                Box::new(Controller::new(number, driver, self.set_meddler))
            }
            Role::Queues => {
                let (wait, now) = (self.wait.clone(), self.cluster.now());
                let stream = (number, self.seed);
                Box::new(QueueController::new(stream, wait, self.queue_meddler, now))
            }
        };
        self.controllers.push(Some((role, controller)));
        number
    }

    /// Plans what follows from what happened: news for controllers, work, garbage.
    fn plan_work(&mut self) {
        for (_, controller) in self.controllers.iter_mut().flatten() {
            controller.plan(&mut self.cluster, &mut self.faults);
        }
        if !self.is_collecting && self.cluster.api.has_garbage() {
            self.is_collecting = true;
            let delay = self.faults.lag();
            self.cluster.after(delay, Happening::Collect);
        }
    }
}

/// What a controller sees to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Jobs,
    Sets,
    Queues,
}

/// Makes the queues of a world; whether and how pods are waited for there.
fn make_queues(seed: u64, cluster: &mut Cluster) -> Option<WaitForPodsReady> {
    let queue::Drawn { objects, wait } = queue::draw(&mut Chance::new(seed, "queues"));
    for (kind, object) in objects {
        let shown = cluster.trace.is_full().then(|| serde_json::Value::from(object.clone()));
        cluster.say("world", || format!("has {kind:?} {}", shown.unwrap_or_default()));
        cluster.api.create(kind, object).expect("queues that are drawn are accepted");
    }
    cluster.say("world", || format!("waits for pods: {wait:?}"));
    wait
}

/// How much a controller may do in one pass: in most worlds more than there ever is to do.
fn limits(seed: u64) -> Options {
    let mut chance = Chance::new(seed, "limits");
    let choices = [(1, 1), (1, 2), (2, 500)];
    Options {
        uncounted_max: chance.weighted(&choices),
        pods_per_pass_max: chance.weighted(&choices),
        ..Options::default()
    }
}
