//! What Valkey does in one step.

use std::fmt::Write as _;
use std::sync::OnceLock;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, ServerErrorKind};
use ring::digest;

use super::Error;

/// How long anything stays that nobody asks for any more, in seconds.
pub(super) const KEPT: u32 = 7 * 24 * 3600;

/// A script with one key.
pub(super) struct Script {
    body: &'static str,
    digest: OnceLock<String>,
}

/// Writes a record over an earlier one. Arguments: its version, the record, the version that must
/// be there (`*` for any, nothing for none), how long to keep it. The answer is the version that
/// was in the way, or nothing if the record was written.
pub(super) static COMMIT: Script = Script::new(
    r"
local there = redis.call('HGET', KEYS[1], 'version')
local is_older = not there or there < ARGV[1]
local is_own = there and string.sub(there, 1, 20) == string.sub(ARGV[1], 1, 20)
if is_older and (ARGV[3] == '*' or is_own or (there or '') == ARGV[3]) then
    redis.call('HSET', KEYS[1], 'version', ARGV[1], 'record', ARGV[2])
    redis.call('EXPIRE', KEYS[1], ARGV[4])
    return false
end
if there and redis.call('TTL', KEYS[1]) < ARGV[4] / 2 then
    redis.call('EXPIRE', KEYS[1], ARGV[4])
end
return there or ''
",
);

/// Says something, unless something later was said. Arguments: its version, the frame, how long to
/// keep it, and whether to say it again if it is there. The answer is the version that was in the
/// way, or nothing.
pub(super) static SAY: Script = Script::new(
    r"
local there = redis.call('HGET', KEYS[1], 'version')
if there and (there > ARGV[1] or (there == ARGV[1] and ARGV[4] == 'once')) then
    if redis.call('TTL', KEYS[1]) < ARGV[3] / 2 then
        redis.call('EXPIRE', KEYS[1], ARGV[3])
    end
    return there
end
redis.call('HSET', KEYS[1], 'version', ARGV[1], 'frame', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('PUBLISH', KEYS[1], ARGV[2])
return false
",
);

/// A call of a script: the key, then the arguments.
pub(super) type Call<'a> = (&'a str, Vec<&'a [u8]>);

impl Script {
    const fn new(body: &'static str) -> Self {
        Self { body, digest: OnceLock::new() }
    }

    /// Calls it once for each of these, and gives all answers.
    pub(super) async fn call(
        &self,
        connection: &mut MultiplexedConnection,
        calls: &[Call<'_>],
    ) -> Result<Vec<Option<String>>, Error> {
        let known = self.pipeline("EVALSHA", self.digest(), calls);
        match known.query_async(connection).await {
            // A server that was restarted has to be told what it is.
            Err(error) if is_unknown(&error) => {
                let whole = self.pipeline("EVAL", self.body, calls);
                whole.query_async(connection).await.map_err(Error::from)
            }
            answers => answers.map_err(Error::from),
        }
    }

    /// The name by which a server knows a script that it has run before.
    fn digest(&self) -> &str {
        self.digest.get_or_init(|| {
            let algorithm = &digest::SHA1_FOR_LEGACY_USE_ONLY;
            let digest = digest::digest(algorithm, self.body.as_bytes());
            digest.as_ref().iter().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
        })
    }

    fn pipeline(&self, command: &str, script: &str, calls: &[Call<'_>]) -> Pipeline {
        let mut pipeline = Pipeline::with_capacity(calls.len());
        for (key, arguments) in calls {
            let mut call = Cmd::new();
            call.arg(command).arg(script).arg(1).arg(*key);
            arguments.iter().for_each(|argument| {
                call.arg(*argument);
            });
            pipeline.add_command(call);
        }
        pipeline
    }
}

fn is_unknown(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
