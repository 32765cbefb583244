//! What the definition of Workloads says about the object as a whole, as expressions: mostly what
//! may not change while quota is reserved.

use schemars::Schema;
use serde_json::{Value, json};

/// Adds the rules to the schema of Workloads.
pub(super) fn add(schema: &mut Schema) {
    schema.insert("x-kubernetes-validations".to_owned(), rules());
}

fn rules() -> Value {
    let is = |of: &str, kind: &str| {
        format!(
            "(has({of}.status) && has({of}.status.conditions) && {of}.status.conditions.exists(c, \
             c.type == '{kind}' && c.status == 'True'))"
        )
    };
    let was_reserved = is("oldSelf", "QuotaReserved");
    let is_reserved = is("self", "QuotaReserved");
    let has_both = "has(oldSelf.spec.priorityClassRef) && has(self.spec.priorityClassRef)";
    let class = |member: &str| {
        format!("oldSelf.spec.priorityClassRef.{member} == self.spec.priorityClassRef.{member}")
    };
    let limit = |of: &str| {
        format!(
            "(has({of}.spec.maximumExecutionTimeSeconds) ? \
             {of}.spec.maximumExecutionTimeSeconds : 0)"
        )
    };
    let rule = |condition: &str, then: &str, message: &str| json!({"rule": format!("({condition}) ? ({then}) : true"), "message": message});
    json!([
        rule(
            &format!("{is_reserved} && has(self.status.admission)"),
            "size(self.spec.podSets) == size(self.status.admission.podSetAssignments)",
            "podSetAssignments must have the same number of podSets as the spec",
        ),
        rule(
            &was_reserved,
            "has(oldSelf.spec.priorityClassRef) == has(self.spec.priorityClassRef)",
            "priorityClassRef is immutable while workload quota reserved",
        ),
        rule(
            &format!("{was_reserved} && {has_both}"),
            &class("group"),
            "priorityClassRef.group is immutable while workload quota reserved",
        ),
        rule(
            &format!("{was_reserved} && {has_both}"),
            &class("kind"),
            "priorityClassRef.kind is immutable while workload quota reserved",
        ),
        rule(
            &format!(
                "{was_reserved} && {has_both} && self.spec.priorityClassRef.kind == 'PriorityClass'"
            ),
            &class("name"),
            "priorityClassRef.name is immutable for scheduling.k8s.io/priorityclass while workload \
             quota reserved",
        ),
        rule(
            &format!(
                "{was_reserved} && {is_reserved} && has(oldSelf.spec.queueName) && \
                 has(self.spec.queueName)"
            ),
            "oldSelf.spec.queueName == self.spec.queueName",
            "queueName is immutable while workload quota reserved",
        ),
        rule(
            &format!("{} && {}", is("oldSelf", "Admitted"), is("self", "Admitted")),
            &format!("{} == {}", limit("oldSelf"), limit("self")),
            "maximumExecutionTimeSeconds is immutable while workload quota reserved",
        ),
    ])
}
