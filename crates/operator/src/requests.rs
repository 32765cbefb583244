//! Many requests at the same time, and what kind of no an answer is.

use std::time::Instant;

use futures::{Stream, StreamExt};
use lockstep_control::plan::{Refusal, RefusalKind};

/// Makes a request for each of `items`, at most `max` at the same time, none begun after `until`,
/// and yields what became of each. One that is refused does not keep the others back.
pub(crate) fn concurrently<T, A, F>(
    items: Vec<T>,
    (max, until): (usize, Instant),
    request: impl Fn(T) -> F,
) -> impl Stream<Item = Result<A, Refusal>>
where
    A: Send + 'static,
    F: Future<Output = A> + Send + 'static,
{
    // A task each: what a request costs is not all paid on one core.
    let requests = futures::stream::iter(items)
        .take_while(move |_| std::future::ready(Instant::now() < until))
        .map(move |item| tokio::spawn(request(item)))
        .buffer_unordered(max);
    // A task that panicked may have done anything.
    requests.map(|answer| {
        answer.map_err(|error| Refusal { kind: RefusalKind::Other, message: error.to_string() })
    })
}

/// What kind of no an error is.
pub(crate) fn refusal(error: &kube::Error) -> Refusal {
    let kube::Error::Api(status) = error else {
        return Refusal { kind: RefusalKind::Other, message: error.to_string() };
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes = causes.map(|cause| cause.reason.as_str());
    let kind = RefusalKind::of(status.code, &status.reason, &status.message, causes);
    Refusal { kind, message: status.message.clone() }
}
