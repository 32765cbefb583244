//! The table of queues.

use lockstep_api::quantity::Quantity;

use super::Pool;
use crate::{
    queueing::{
        fraction,
        queue::{ClusterQueue, LocalQueue, Quota},
    },
    tabs::Columns,
};

/// How many columns a bar has.
const BAR: usize = 20;

const HEADER: [&str; 10] = [
    "QUEUE", "COHORT", "PENDING", "ADMITTED", "FLAVOR", "RESOURCE", "USED", "BORROWED", "QUOTA", "",
];

/// The table. LocalQueues in which nobody is are shown of the namespace `here` only, or all of them
/// where there is room.
pub(super) fn render(pools: &[Pool], is_wide: bool, here: &str) -> String {
    let mut rows = vec![header(is_wide)];
    for pool in pools {
        of_pool(pool, is_wide, &mut rows);
        let is_shown = |door: &&LocalQueue| {
            is_wide || door.namespace == here || !door.counts.is_idle() || door.fault().is_some()
        };
        let shown: Vec<&LocalQueue> = pool.doors.iter().filter(is_shown).collect();
        for door in &shown {
            of_door(door, is_wide, &mut rows);
        }
        match pool.doors.len() - shown.len() {
            0 => {}
            1 => rows.push(vec!["  and 1 idle".to_owned()]),
            more => rows.push(vec![format!("  and {more} idle")]),
        }
    }
    let mut text = Columns::default().render(&rows);
    for pool in pools {
        for line in faults(pool) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

fn header(is_wide: bool) -> Vec<String> {
    let mut cells: Vec<String> = HEADER.map(ToOwned::to_owned).into();
    if is_wide {
        cells.splice(9..9, ["LIMIT", "RESERVING", "STRATEGY"].map(ToOwned::to_owned));
    }
    cells
}

fn of_pool(pool: &Pool, is_wide: bool, rows: &mut Vec<Vec<String>>) {
    let queue = &pool.queue;
    let mut head = [
        queue.name.clone(),
        if queue.cohort.is_empty() { "<none>".to_owned() } else { queue.cohort.clone() },
        queue.counts.pending.to_string(),
        queue.counts.admitted.to_string(),
    ];
    if queue.quotas.is_empty() {
        rows.push(head.to_vec());
    }
    for quota in &queue.quotas {
        let mut row = head.to_vec();
        row.extend([
            quota.flavor.clone(),
            quota.resource.clone(),
            quota.used.to_string(),
            quota.borrowed.to_string(),
            quota.nominal.to_string(),
        ]);
        if is_wide {
            let limit = quota.borrowing_limit.map(|limit| limit.to_string());
            row.push(limit.unwrap_or_else(|| "<none>".to_owned()));
            row.push(queue.counts.reserving.to_string());
            row.push(queue.strategy.clone());
        }
        row.push(bar(quota));
        rows.push(row);
        head = Default::default();
    }
}

fn of_door(door: &LocalQueue, is_wide: bool, rows: &mut Vec<Vec<String>>) {
    let head = [
        format!("  {}/{}", door.namespace, door.name),
        String::new(),
        door.counts.pending.to_string(),
        door.counts.admitted.to_string(),
    ];
    let used: Vec<&(String, String, Quantity)> =
        door.used.iter().filter(|(.., used)| is_wide && !used.is_zero()).collect();
    if used.is_empty() {
        rows.push(head.to_vec());
        return;
    }
    for (at, (flavor, resource, used)) in used.into_iter().enumerate() {
        let mut row = if at == 0 { head.to_vec() } else { vec![String::new(); head.len()] };
        row.extend([flavor.clone(), resource.clone(), used.to_string()]);
        rows.push(row);
    }
}

/// Why a queue admits nobody, a line for the ClusterQueue and one for each LocalQueue that has
/// another reason than that.
fn faults(pool: &Pool) -> Vec<String> {
    let of_queue =
        pool.queue.fault().map(|why| format!("{} is inactive: {why}", named(&pool.queue)));
    let of_doors = pool.doors.iter().filter_map(|door| {
        let why = door.fault().filter(|_| of_queue.is_none() || door.has_own_fault())?;
        Some(format!("LocalQueue {}/{} is inactive: {why}", door.namespace, door.name))
    });
    let of_doors: Vec<String> = of_doors.collect();
    of_queue.into_iter().chain(of_doors).collect()
}

fn named(queue: &ClusterQueue) -> String {
    format!("ClusterQueue {}", queue.name)
}

/// `[########>>..........]  50%`: what is used of the queue's own, what is borrowed, what is free.
fn bar(quota: &Quota) -> String {
    let whole = quota.nominal.plus(&quota.borrowed);
    let own = quota.used.minus(&quota.borrowed);
    let borrowed = columns(&quota.borrowed, &whole);
    let own = columns(&own, &whole).min(BAR - borrowed);
    let free = BAR - own - borrowed;
    let percent = fraction(&quota.used, &quota.nominal) * 100.0;
    let percent = if percent.is_finite() { format!("{percent:.0}%") } else { String::new() };
    format!("[{}{}{}] {percent:>4}", "#".repeat(own), ">".repeat(borrowed), ".".repeat(free))
}

/// How many columns of a bar stand for `part`: some for something, and all only for all of it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a fraction of the columns of a bar"
)]
fn columns(part: &Quantity, whole: &Quantity) -> usize {
    let part = fraction(part, whole);
    if part <= 0.0 {
        return 0;
    }
    if part >= 1.0 {
        return BAR;
    }
    ((part * BAR as f64).round() as usize).clamp(1, BAR - 1)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        golden,
        queueing::queue::tests::{cluster_queue, local_queue},
        queues::{pools, to_json},
    };

    fn quota(nominal: &str, used: &str, borrowed: &str) -> Quota {
        let amount = |text| Quantity::parse(text).expect("an amount");
        Quota {
            flavor: "f".to_owned(),
            resource: "cpu".to_owned(),
            nominal: amount(nominal),
            borrowing_limit: None,
            used: amount(used),
            borrowed: amount(borrowed),
        }
    }

    #[test]
    fn a_bar_shows_what_is_used_borrowed_and_free() {
        for (nominal, used, borrowed, want) in [
            ("8", "0", "0", "[....................]   0%"),
            ("8", "4", "0", "[##########..........]  50%"),
            ("8", "8", "0", "[####################] 100%"),
            ("1000", "1", "0", "[#...................]   0%"),
            ("1000", "999", "0", "[###################.] 100%"),
            ("8", "10", "2", "[################>>>>] 125%"),
            ("0", "0", "0", "[....................]   0%"),
            ("0", "2", "2", "[>>>>>>>>>>>>>>>>>>>>] 100%"),
        ] {
            assert_eq!(bar(&quota(nominal, used, borrowed)), want, "{used} of {nominal}");
        }
    }

    fn queues() -> (Vec<Value>, Vec<Value>) {
        let mut broken = cluster_queue("broken", "0", "0");
        broken["spec"]["cohortName"] = Value::Null;
        broken["status"] = json!({"conditions": [{"type": "Active", "status": "False",
            "reason": "FlavorNotFound", "message":
            "Can't admit new workloads: references missing ResourceFlavor(s): spot."}]});
        let queues =
            vec![cluster_queue("pool", "10", "2"), broken, cluster_queue("other", "2", "0")];
        let mut stopped = local_queue("default", "stopped", "other", 0);
        stopped["status"]["conditions"] = json!([{"type": "Active", "status": "False",
            "reason": "Stopped", "message": "LocalQueue is stopped"}]);
        let mut lost = local_queue("research", "lost", "gone", 0);
        lost["status"]["conditions"] = json!([{"type": "Active", "status": "False",
            "reason": "ClusterQueueDoesNotExist",
            "message": "Can't submit new workloads to clusterQueue"}]);
        let doors = vec![
            local_queue("default", "team", "pool", 2),
            local_queue("research", "team", "pool", 1),
            local_queue("default", "idle", "pool", 0),
            local_queue("kube-system", "idle", "pool", 0),
            stopped,
            lost,
            local_queue("default", "old", "broken", 0),
        ];
        (queues, doors)
    }

    #[test]
    fn queues_are_shown_with_what_they_have() {
        let (queues, doors) = queues();
        let all = pools(&queues, &doors, false);
        let research: Vec<Value> = doors
            .iter()
            .filter(|door| door["metadata"]["namespace"] == "research")
            .cloned()
            .collect();
        let some = pools(&queues, &research, true);
        let screens = [
            format!("# queues\n{}\n", render(&all, false, "default")),
            format!("# queues -o wide\n{}\n", render(&all, true, "default")),
            format!("# queues -n research\n{}\n", render(&some, false, "research")),
            format!("# queues -n research -o json\n{:#}\n", to_json(&some)),
        ];
        golden::check("queues.txt", &screens.concat());
    }
}
