//! Jobs through the API: the controller over an embedded cluster, with pods whose phases the test
//! sets, with nodes that only pretend, and with real processes.

#[cfg(test)]
mod jobs {
    mod budgets;
    mod changes;
    mod counting;
    mod ends;
    mod nodes;
    mod quotas;
    mod success_policy;
    mod support;
}
