//! Lines that xtask counts.

use std::{error::Error, fmt::Debug, process::ExitCode, time::Duration};

use futures::future::BoxFuture;
use kube::core::Status;

/// What a check comes to.
pub(crate) type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What passed and what did not.
#[derive(Debug, Default)]
pub(crate) struct Report {
    failed: usize,
}

impl Report {
    /// Waits for a check and prints its line.
    pub(crate) async fn check(&mut self, name: &str, check: BoxFuture<'_, Outcome>) {
        let outcome = tokio::time::timeout(PATIENCE, check);
        let outcome = outcome.await.unwrap_or_else(|_| Err("it takes too long".into()));
        match outcome {
            Ok(()) => println!("ok\t{name}"),
            Err(error) => {
                self.failed += 1;
                println!("FAIL\t{name}\t{:?}", error.to_string());
            }
        }
    }

    /// Prints the last line, without which nobody knows whether there would have been more.
    pub(crate) fn end(self) -> ExitCode {
        println!("done");
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Fails unless both are equal.
pub(crate) fn same<T: PartialEq + Debug>(got: T, want: T) -> Outcome {
    if got == want { Ok(()) } else { Err(format!("{got:?} instead of {want:?}").into()) }
}

/// Fails unless the server refused with this code and these words.
pub(crate) fn refused<T: Debug>(answer: kube::Result<T>, code: u16, words: &str) -> Outcome {
    match answer {
        Err(kube::Error::Api(status)) => {
            let Status { code: got, message, .. } = *status;
            same(got, code)?;
            match message.contains(words) {
                true => Ok(()),
                false => Err(format!("no {words:?} in {message:?}").into()),
            }
        }
        other => Err(format!("it was not refused: {other:?}").into()),
    }
}
