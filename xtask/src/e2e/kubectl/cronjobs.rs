//! CronJobs.

use crate::e2e::check::{Check, Suite};

/// `create cronjob`, what comes of it, and Jobs made from it by hand.
pub(super) fn checks(suite: &mut Suite) {
    let made = "create cronjob tick --image=busybox --schedule='0 0 1 1 *' -- echo tock";
    suite.check("create cronjob", Check::new(made).out_is("cronjob.batch/tick created"));
    let shown = Check::new("get cj").out("SCHEDULE").out("LAST SCHEDULE").out("0 0 1 1 *");
    suite.check("get cj", shown.out("<none>").out("False"));
    let by_hand = Check::new("create job by-hand --from=cronjob/tick");
    suite.check("create job --from", by_hand.out_is("job.batch/by-hand created"));
    let wait = Check::new("wait --for=condition=Complete job/by-hand --timeout=60s");
    suite.check("it completes", wait.out("condition met"));
    suite.check("and said it", Check::new("logs job/by-hand").out_is("tock"));
    let patch = "patch cj tick --type=merge -p '{\"spec\":{\"schedule\":\"@every 1s\"}}'";
    suite.check("another schedule", Check::new(patch).out("tick patched"));
    let last = "get cj tick -o jsonpath={.status.lastScheduleTime}";
    suite.check("its time comes", Check::new(last).out("T").within(30));
    let told = Check::new("describe cj tick").out("SuccessfulCreate").out("Created job tick-");
    suite.check("describe cj", told.within(30));
    let done = "get cj tick -o jsonpath={.status.lastSuccessfulTime}";
    suite.check("and is done", Check::new(done).out("T").within(60));
    let wrong = "create cronjob wrong --image=busybox --schedule='* * *' -- true";
    let wrong = Check::new(wrong).code(1).err("expected exactly 5 fields, found 3: [* * *]");
    suite.check("no schedule", wrong);
    suite.check("clean up", Check::new("delete cj tick").out("\"tick\" deleted"));
}
