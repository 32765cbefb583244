//! The task of a gang, without connections.

use std::future::ready;
use std::pin::Pin;
use std::sync::atomic::AtomicU32;

use tokio::time::timeout;

use super::super::mailbox::Mailbox;
use super::super::store::Memory;
use super::*;

const SOON: Duration = Duration::from_secs(10);

fn lead(store: Arc<dyn RecordStore>) -> Gang {
    let (tell, _) = mpsc::unbounded_channel();
    Gang::lead("job", Terms::new(2, 3, Duration::from_secs(60)), (1, None), store, tell)
}

#[tokio::test]
async fn an_agent_that_has_just_come_is_let_go_with_all_others() {
    let gang = lead(Arc::new(Memory::default()));
    gang.pod_seen("pod", 0, 1).await;
    let seat = gang.seat("pod").unwrap();
    let mailbox = Arc::new(Mailbox::new(None));
    let way = Way { alone: Arc::<Mailbox>::clone(&mailbox), is_on_air: false };
    gang.tell(Input::Connected { link: gang.next_link(), seat, way }).await.unwrap();
    // The task has not had its turn yet, so that nobody has taken the agent in.
    gang.stop();
    let told = timeout(SOON, mailbox.take()).await;
    assert_eq!(told, Ok(None), "it would wait for a leader that is no more");
}

/// Says nothing of the first record, and takes all others.
#[derive(Default)]
struct Forgetful(AtomicU32);

impl RecordStore for Forgetful {
    fn write<'a>(
        &'a self,
        _: &'a str,
        _: Record,
        _: Expected,
    ) -> Pin<Box<dyn Future<Output = Written> + Send + 'a>> {
        let is_first = self.0.fetch_add(1, Ordering::Relaxed) == 0;
        Box::pin(ready(if is_first { Written::Unsure } else { Written::Yes }))
    }
}

#[tokio::test]
async fn what_is_due_is_done_also_while_more_comes_in_without_a_pause() {
    let gang = lead(Arc::new(Forgetful::default()));
    let mut record = gang.record();
    let talking = async {
        loop {
            gang.pods_known().await;
        }
    };
    let written = async {
        record.wait_for(|record| record.revision > 0).await.unwrap();
    };
    let done = timeout(SOON, async {
        tokio::select! {
            () = talking => {}
            () = written => {}
        }
    });
    assert_eq!(done.await, Ok(()), "the record was never tried again");
}
