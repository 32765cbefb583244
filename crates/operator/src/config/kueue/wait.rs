//! `waitForPodsReady`, with the defaults of the version of the file.

use std::time::Duration;

use lockstep_api::{
    field::{ErrorList, FieldError, Path},
    kueue::{Requeuing, RequeuingTimestamp, WaitForPodsReady},
};

use super::{Version, file, not_negative};

/// How long pods may take in v1beta1 when nobody says.
const V1BETA1_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// What holds, or nothing when pods are not waited for.
pub(super) fn read(
    said: Option<&file::Wait>,
    version: Version,
    errors: &mut ErrorList,
) -> Option<WaitForPodsReady> {
    let usual = match version {
        Version::V1Beta1 => {
            // What is off is not looked at, as upstream does not.
            let said = said.filter(|said| said.enable.unwrap_or_default());
            return said.map(|said| wait(said, v1beta1(), errors));
        }
        Version::V1Beta2 => WaitForPodsReady::default(),
    };
    Some(match said {
        Some(said) => wait(said, usual, errors),
        None => usual,
    })
}

/// What v1beta1 means when it says nothing but that pods are waited for.
fn v1beta1() -> WaitForPodsReady {
    WaitForPodsReady {
        timeout: V1BETA1_TIMEOUT,
        recovery_timeout: Some(V1BETA1_TIMEOUT),
        block_admission: true,
        requeuing: Requeuing::default(),
    }
}

fn wait(said: &file::Wait, usual: WaitForPodsReady, errors: &mut ErrorList) -> WaitForPodsReady {
    let path = Path::new("waitForPodsReady");
    let mut time = |span: Option<&file::Span>, field: &str| {
        span.and_then(|span| not_negative(span, &path.child(field), errors))
    };
    // A timeout of nothing is none that was said.
    let timeout = time(said.timeout.as_ref(), "timeout")
        .filter(|time| !time.is_zero())
        .unwrap_or(usual.timeout);
    let recovery = time(said.recovery_timeout.as_ref(), "recoveryTimeout");
    WaitForPodsReady {
        timeout,
        recovery_timeout: match recovery {
            None => Some(timeout),
            Some(time) => (!time.is_zero()).then_some(time),
        },
        block_admission: said.block_admission.unwrap_or(usual.block_admission),
        requeuing: match &said.requeuing_strategy {
            Some(said) => requeuing(said, &path.child("requeuingStrategy"), errors),
            None => usual.requeuing,
        },
    }
}

fn requeuing(said: &file::Requeuing, path: &Path, errors: &mut ErrorList) -> Requeuing {
    let usual = Requeuing::default();
    let timestamp = match said.timestamp.as_deref() {
        None | Some("Eviction") => RequeuingTimestamp::Eviction,
        Some("Creation") => RequeuingTimestamp::Creation,
        Some(other) => {
            let path = path.child("timestamp");
            errors.push(FieldError::not_supported(&path, other, &["Creation", "Eviction"]));
            usual.timestamp
        }
    };
    let mut number = |said: Option<i32>, field: &str| {
        let number = said?;
        if number < 0 {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(&path.child(field), number, why));
        }
        u64::try_from(number).ok()
    };
    Requeuing {
        timestamp,
        limit: number(said.backoff_limit_count, "backoffLimitCount").and(said.backoff_limit_count),
        base: number(said.backoff_base_seconds, "backoffBaseSeconds")
            .map_or(usual.base, Duration::from_secs),
        max: number(said.backoff_max_seconds, "backoffMaxSeconds")
            .map_or(usual.max, Duration::from_secs),
    }
}
