//! Controllers of a simulated cluster: real drivers and planners, with watches that lag and
//! requests that go wrong. A controller does what a shell does, and decides nothing; what it drives
//! is a [`Driver`].

mod driver;
mod pass;
pub(crate) mod request;

use jiff::Timestamp;
use lockstep_control::plan::Key;
use lockstep_store::Object;

use crate::{
    api::Kind,
    check::{Checker, Violation},
    cluster::{Cluster, Happening},
    faults::Faults,
    watch::{News, Seen, Watch},
};
pub(crate) use driver::{Answer, Call, Driver};
use pass::Pass;

/// One process that takes itself for the leader.
pub(crate) struct Controller<D: Driver> {
    number: usize,
    driver: D,
    /// Who changes plans behind the back of the planner, if anybody does.
    meddler: Option<fn(&mut D::Plan)>,
    watches: Vec<Watch>,
    /// Whether news of a kind is on its way.
    is_coming: [bool; Kind::COUNT],
    /// News is taken in at any time; only one thing at a time is done about it.
    pass: Option<Pass<D::Call>>,
    /// When it works next.
    works_at: Option<Timestamp>,
}

/// A controller, whatever it drives.
pub(crate) trait Actor {
    /// What it had seen when it planned what it does now.
    fn seen(&self) -> Seen;

    /// How many things it had asked for before it asked for what it does now, if it asks for
    /// several at a time.
    fn turn(&self) -> u64 {
        0
    }

    /// Loses the watch of one kind.
    fn lose_watch(&mut self, kind: Kind);

    /// Hears the next `max` things about one kind.
    fn hear(&mut self, cluster: &mut Cluster, kind: Kind, max: usize);

    /// Begins the next pass, or does the next thing of the one it is in; fails when a plan or a
    /// request is not what it must be. Only of one that is alone in its role can be told whether
    /// it waits for good reason: then there is a `checker`.
    fn work(
        &mut self,
        cluster: &mut Cluster,
        faults: &mut Faults,
        checker: Option<&Checker>,
    ) -> Result<(), Violation>;

    /// Plans when it hears and works next.
    fn plan(&mut self, cluster: &mut Cluster, faults: &mut Faults);
}

impl<D: Driver> Controller<D> {
    /// A controller that has just started.
    pub(crate) fn new(number: usize, driver: D, meddler: Option<fn(&mut D::Plan)>) -> Self {
        Self {
            number,
            driver,
            meddler,
            watches: D::KINDS.iter().copied().map(Watch::new).collect(),
            is_coming: [false; Kind::COUNT],
            pass: None,
            works_at: None,
        }
    }

    fn begin(&mut self, cluster: &mut Cluster, checker: Option<&Checker>) -> Result<(), Violation> {
        let (now, number, seen) = (cluster.now(), self.number, self.seen());
        let Some((key, mut plan)) = self.driver.next(now) else {
            let beside = self.driver.next_beside(now);
            self.pass = beside.map(|(key, call)| Pass::beside(key, call, seen));
            return Ok(());
        };
        if let (0, None) = D::summary(&plan) {
            let (actor, name) = (D::ACTOR, key.name);
            return Err(Violation(format!("{actor} does nothing for {name} and says not why")));
        }
        if let Some(meddle) = self.meddler {
            meddle(&mut plan);
        }
        let (steps, waiting) = D::summary(&plan);
        cluster.say(D::ACTOR, || match waiting {
            Some(waiting) => format!("{number} plans {}: waits, {waiting}", key.name),
            None => format!("{number} plans {}: {steps} steps", key.name),
        });
        let is_behind = |watch: &Watch| watch.is_behind(&cluster.api);
        if let (0, Some(waiting), Some(checker)) = (steps, waiting, checker)
            && !self.watches.iter().any(is_behind)
        {
            D::check_rest(checker, &key, waiting)?;
        }
        self.pass = Some(Pass::new(key, D::cut(plan)?, seen));
        Ok(())
    }

    /// Makes the next request of the pass.
    fn go_on(&mut self, cluster: &mut Cluster, faults: &mut Faults) -> Result<(), Violation> {
        let Some(pass) = &mut self.pass else { return Ok(()) };
        let Some(call) = pass.next() else { return Ok(()) };
        let answer = request::send((&call, &pass.key), (D::ACTOR, self.number), cluster, faults)?;
        let (driver, api) = (&mut self.driver, &mut cluster.api);
        match answer {
            Ok(object) => {
                let follower = driver.accepted(api, &pass.key, call, object);
                follower.into_iter().for_each(|call| pass.insert(call));
            }
            Err(status) => {
                let refusal = request::refusal(&status);
                if driver.refused(api, &pass.key, call, &refusal) {
                    pass.fail();
                }
            }
        }
        Ok(())
    }

    fn watch(&mut self, kind: Kind) -> Option<&mut Watch> {
        self.watches.iter_mut().find(|watch| watch.kind() == kind)
    }
}

impl<D: Driver> Actor for Controller<D> {
    fn seen(&self) -> Seen {
        self.pass.as_ref().map_or_else(|| Seen::by(&self.watches), |pass| pass.seen)
    }

    fn lose_watch(&mut self, kind: Kind) {
        self.watch(kind).into_iter().for_each(Watch::lose);
    }

    fn hear(&mut self, cluster: &mut Cluster, kind: Kind, max: usize) {
        self.is_coming[kind as usize] = false;
        let Some(watch) = self.watch(kind) else { return };
        let news = watch.hear(&cluster.api, max);
        cluster.say(D::ACTOR, || format!("{} {}", self.number, told(&news)));
        news.iter().for_each(|news| self.driver.hear(&mut cluster.api, kind, news));
    }

    fn work(
        &mut self,
        cluster: &mut Cluster,
        faults: &mut Faults,
        checker: Option<&Checker>,
    ) -> Result<(), Violation> {
        self.works_at = None;
        match self.pass {
            Some(_) => self.go_on(cluster, faults)?,
            None => self.begin(cluster, checker)?,
        }
        let over = self.pass.take_if(|pass| pass.is_over());
        if let Some(pass) = over.filter(|pass| !pass.is_beside) {
            self.driver.done(&pass.key, cluster.now());
        }
        Ok(())
    }

    fn plan(&mut self, cluster: &mut Cluster, faults: &mut Faults) {
        for watch in &self.watches {
            let kind = watch.kind();
            if !self.is_coming[kind as usize] && watch.is_behind(&cluster.api) {
                self.is_coming[kind as usize] = true;
                let lag = faults.lag();
                cluster.after(lag, Happening::Deliver { controller: self.number, kind });
            }
        }
        let due = match &self.pass {
            Some(_) if self.works_at.is_some() => return,
            Some(_) => Some(cluster.now() + faults.latency()),
            None => self.driver.next_due().map(|due| due.max(cluster.now())),
        };
        let Some(due) = due.filter(|due| self.works_at.is_none_or(|at| *due < at)) else { return };
        self.works_at = Some(due);
        cluster.at(due, Happening::Work { controller: self.number });
    }
}

/// The key of an object.
pub(crate) fn key(object: &Object) -> Key {
    Key { namespace: object.meta.namespace.to_string(), name: object.meta.name.to_string() }
}

pub(crate) fn told(news: &[News]) -> String {
    let verb = if let Some(News::Listing) = news.first() { "lists" } else { "hears of" };
    let one = |news: &News| match news {
        News::Seen(object) => Some(format!("{}@{}", object.meta.name, object.revision())),
        News::Gone(object) | News::Missing(object) => {
            Some(format!("the end of {}", object.meta.name))
        }
        News::Listing | News::Listed => None,
    };
    format!("{verb} {}", news.iter().filter_map(one).collect::<Vec<_>>().join(", "))
}
