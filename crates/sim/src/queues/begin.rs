//! What is due: decisions of the scheduler, passes over Workloads, passes over jobs.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use lockstep_control::plan::{
    Key,
    queue::{Decision, Why, Write},
};

use super::{ACTOR, Meddled, Of, QueueController, call};
use crate::{
    check::{Checker, Violation},
    cluster::Cluster,
    watch::Watch,
};

impl QueueController {
    /// Begins all that is due.
    pub(super) fn begin(
        &mut self,
        cluster: &mut Cluster,
        checker: Option<&Checker>,
    ) -> Result<(), Violation> {
        let now = cluster.now();
        self.decide(cluster, checker)?;
        for key in self.queues.take_touched() {
            self.workloads.touch(&key, now);
            if let Some(workload) = self.workloads.get(&key) {
                let wait = self.queues.around(workload).wait;
                self.jobs.wait_seen(&key, wait, now);
            }
        }
        self.begin_workloads(cluster)?;
        self.begin_jobs(cluster)
    }

    fn decide(
        &mut self,
        cluster: &mut Cluster,
        checker: Option<&Checker>,
    ) -> Result<(), Violation> {
        let now = cluster.now();
        if self.queues.next_due().is_none_or(|due| due > now) {
            return Ok(());
        }
        // Of whoever knows everything, and waits for no answer, can be told whom it must not pass.
        let is_behind = |watch: &Watch| watch.is_behind(&cluster.api);
        let knows_all = self.errands.is_empty() && !self.watches.iter().any(is_behind);
        self.admissions.retain(|key, _| self.queues.is_admitting(key));
        let cycle = self.queues.cycle(now);
        let number = self.number;
        cluster.say(ACTOR, || {
            let told = cycle.decisions.iter().map(|decision| match decision {
                Decision::Admit(write) => format!("admits {}", write.key.name),
                Decision::Preempt(write) => format!("preempts {}", write.key.name),
                Decision::Pend(write) => format!("tells {}", write.key.name),
            });
            format!("{number} decides: {}", told.collect::<Vec<_>>().join(", "))
        });
        if let (true, Some(checker)) = (knows_all, checker) {
            checker.check_admissions(now, &self.admitted(&cycle.decisions), |name| {
                let key =
                    Key { namespace: crate::api::NAMESPACE.to_owned(), name: name.to_owned() };
                self.queues.is_admitting(&key)
                    || matches!(self.queues.why(&key), Some(Why::Refused { .. }))
            })?;
        }
        for decision in cycle.decisions {
            self.send(decision);
        }
        for status in self.queues.take_statuses(now) {
            let calls = [call::status(&status)].into();
            self.start(Of::Status(Box::new(status)), calls);
        }
        for finalizers in self.queues.take_finalizers(now) {
            let calls = [call::finalizers(&finalizers)].into();
            self.start(Of::Finalizers(finalizers), calls);
        }
        Ok(())
    }

    /// The names of those that are admitted, and were not already.
    fn admitted(&self, decisions: &[Decision]) -> BTreeSet<String> {
        let admitted = decisions.iter().filter_map(|decision| match decision {
            Decision::Admit(write) => {
                let is_said_again = self.admissions.contains_key(&write.key);
                (!is_said_again).then(|| write.key.name.clone())
            }
            Decision::Preempt(_) | Decision::Pend(_) => None,
        });
        admitted.collect()
    }

    /// What only says why somebody waits gives way to what is said later.
    fn send(&mut self, decision: Decision) {
        let is_urgent = !matches!(decision, Decision::Pend(_));
        let (Decision::Admit(mut write) | Decision::Preempt(mut write) | Decision::Pend(mut write)) =
            decision;
        self.meddle(&mut write);
        self.errands.retain(|errand| {
            let is_outdated = errand.answer.is_none()
                && matches!(&errand.of, Of::Decision(one, false) if one.key == write.key);
            !is_outdated
        });
        let calls = [(write.key.clone(), call::decision(&write))].into();
        self.start(Of::Decision(Box::new(write), is_urgent), calls);
    }

    fn meddle(&self, write: &mut Write) {
        if let Some(meddle) = self.meddler {
            meddle(Meddled::Status(&write.key.name, &mut write.status));
        }
    }

    fn begin_workloads(&mut self, cluster: &mut Cluster) -> Result<(), Violation> {
        let (now, number) = (cluster.now(), self.number);
        loop {
            let (queues, chance) = (&self.queues, f64::from(self.chance.below(1_000)) / 1_000.0);
            let next = self.workloads.next((now, chance), |workload| queues.around(workload));
            let Some((key, plan)) = next else { return Ok(()) };
            let Some(workload) = self.workloads.get(&key).map(Arc::clone) else { continue };
            if plan.steps.is_empty() && plan.waiting.is_none() {
                return Err(Violation(format!("nothing is done for {key}, and it says not why")));
            }
            cluster.say(ACTOR, || {
                let waiting = plan.waiting.map(|waiting| waiting.to_string()).unwrap_or_default();
                format!("{number} plans {key}: {} steps, {waiting}", plan.steps.len())
            });
            let calls = call::of_workload(&workload, plan.steps);
            self.begin_pass(Of::Workload(key), calls, now);
        }
    }

    fn begin_jobs(&mut self, cluster: &mut Cluster) -> Result<(), Violation> {
        let (now, number) = (cluster.now(), self.number);
        while let Some((key, plan)) = self.jobs.next(now) {
            if plan.steps.is_empty() && plan.waiting.is_none() {
                return Err(Violation(format!("nothing is done for {key}, and it says not why")));
            }
            cluster.say(ACTOR, || {
                let waiting = plan.waiting.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("{number} plans {key}: {} steps, {waiting}", plan.steps.len())
            });
            let calls = call::of_job(&key, plan.steps);
            self.begin_pass(Of::Job(key), calls, now);
        }
        Ok(())
    }

    /// Begins a pass; one without requests is over.
    fn begin_pass(&mut self, of: Of, mut calls: call::Calls, now: Timestamp) {
        if calls.is_empty() {
            self.end_pass(&of, now);
            return;
        }
        if let Some(meddle) = self.meddler {
            for (key, call) in &mut calls {
                if let call::Call::WriteStatus { status, .. } = call {
                    meddle(Meddled::Status(&key.name, status));
                }
            }
        }
        self.start(of, calls);
    }

    pub(super) fn end_pass(&mut self, of: &Of, now: Timestamp) {
        match of {
            Of::Workload(key) => drop(self.workloads.done(key, now)),
            Of::Job(key) => self.jobs.done(key, now),
            Of::Decision(..) | Of::Status(_) | Of::Finalizers(_) => {}
        }
    }
}
