//! Many agents in one process, each with a connection of its own and the real machine. Their
//! workers only pretend.

mod player;
mod target;

use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::board::Board;
use player::{Command, Player};
use target::Target;
pub(super) use target::from_address;

/// Plays the agents, and does to them what is asked for.
pub(super) async fn play(address: &str, ca: &str, ticket: &str, size: &str) {
    let size: u32 = size.parse().unwrap();
    let target = Arc::new(Target::new(address, ca, ticket));
    let board = Arc::new(Board::new(size));
    let mut agents = Vec::new();
    for slot in 0..size {
        let (tell, commands) = mpsc::unbounded_channel();
        let player = Player::new(Arc::clone(&target), Arc::clone(&board), slot, commands);
        tokio::spawn(player.run());
        agents.push(tell);
        if slot % 50 == 49 {
            // As many at once as a machine of two cores can take without them giving up.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let commands = tokio::task::spawn_blocking(move || {
        for line in std::io::stdin().lock().lines() {
            obey(&line.unwrap(), &agents, &board);
        }
    });
    commands.await.unwrap();
}

fn obey(line: &str, agents: &[mpsc::UnboundedSender<Command>], board: &Board) {
    let mut words = line.split(' ');
    let verb = words.next().unwrap_or_default();
    let words: Vec<&str> = words.collect();
    let tell = |word: &str, command| {
        let _ = agents[word.parse::<usize>().unwrap()].send(command);
    };
    match (verb, &words[..]) {
        ("fail", slots) => {
            board.failed();
            slots.iter().for_each(|slot| tell(slot, Command::Fail));
        }
        // One fails; another one keeps all waiting; meanwhile a third one's agent dies.
        ("barrier", [failed, slow, span, dying]) => {
            tell(slow, Command::Linger(Duration::from_millis(span.parse().unwrap())));
            tell(dying, Command::DieWaiting);
            board.failed();
            tell(failed, Command::Fail);
        }
        // All connections are lost, at the moment in which one fails.
        ("cut", [failed, manner]) => {
            board.failed();
            for agent in agents {
                let _ = agent.send(Command::Cut { is_hasty: *manner == "hasty" });
            }
            tell(failed, Command::Fail);
        }
        ("leave", [slot]) => tell(slot, Command::Leave),
        ("join", [slot, uid]) => tell(slot, Command::Join((*uid).to_owned())),
        _ => panic!("{line:?} is no command"),
    }
}
