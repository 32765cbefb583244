//! Valkey's PUBLISH to as many subscribers as there are agents, each with a connection of its own:
//! one message to all, which nobody answers.

use std::sync::Arc;

use super::board::Board;
use super::clock::{milliseconds, now};
use super::fleet::Fleet;
use super::patience::Stalled;
use super::valkey::{Client, Valkey};
use crate::report::{Budget, Report, median, percentile};

const CHANNEL: &str = "jobset-uid:job";
/// How often, and how many of these are not counted.
const ROUNDS: usize = 33;
const WARM_UP: usize = 3;
/// As long as one of our orders, with its frame.
const MESSAGE: &str = "0123456789abcdef";

/// Milliseconds from the request to the last subscriber.
pub(super) async fn measure(
    report: &mut Report,
    valkey: &Valkey,
    size: u32,
) -> Result<f64, Stalled> {
    let (address, count) = (valkey.address.to_string(), size.to_string());
    let mut fleet = Fleet::new("subscribers", &[&address, &count]);
    fleet.started("led ").await?;
    let mut client = Client::new(0, valkey.address).await?;
    let mut spans = Vec::new();
    let cpu = valkey.processor_time();
    for round in 0..ROUNDS {
        fleet.forget();
        let begun = now();
        client.ask(&["PUBLISH", CHANNEL, MESSAGE]).await?;
        let times = fleet.running().await?;
        if round >= WARM_UP {
            spans.push(milliseconds(begun, times.started[2]));
        }
    }
    let cpu = (valkey.processor_time() - cpu) * 1e6 / (ROUNDS as f64 * f64::from(size));
    let name = |what: &str| format!("Valkey, PUBLISH to {size}: {what}");
    let middle = median(spans.clone());
    report.add(&name("until the last has it, median"), middle, "ms", Budget::None);
    let late = percentile(&mut spans, 99);
    report.add(&name("until the last has it, p99"), late, "ms", Budget::None);
    report.add(&name("CPU time of the server, for each"), cpu, "µs", Budget::None);
    Ok(middle)
}

/// Plays the subscribers.
pub(super) async fn play(address: &str, size: &str) {
    let size: u32 = size.parse().unwrap();
    let address = address.parse().unwrap();
    let board = Arc::new(Board::new(size));
    for number in 0..size {
        let mut client = Client::new(number, address).await.unwrap();
        client.ask(&["SUBSCRIBE", CHANNEL]).await.unwrap();
        board.led();
        let board = Arc::clone(&board);
        tokio::spawn(async move {
            while client.answer().await.is_ok() {
                board.started(0);
            }
        });
    }
    // Until whoever has asked for it is gone.
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().lines().count()).await;
}
