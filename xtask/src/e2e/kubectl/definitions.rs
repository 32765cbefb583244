//! Kinds that users define.

use crate::e2e::check::{Check, Suite, interrupt_after};

const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.e2e.lockstep.dev}
spec:
  group: e2e.lockstep.dev
  scope: Namespaced
  names: {kind: Boat, plural: boats, singular: boat, shortNames: [bt], categories: [fleet]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.crew, statusReplicasPath: .status.aboard}
    additionalPrinterColumns:
    - {name: Crew, type: integer, jsonPath: .spec.crew}
    - {name: Port, type: string, jsonPath: .spec.port}
    - {name: Draught, type: string, jsonPath: .spec.draught, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [crew]
            x-kubernetes-validations:
            - {rule: self.crew <= self.seats, message: more crew than seats}
            properties:
              crew: {type: integer, minimum: 0, description: How many sail it.}
              seats: {type: integer, default: 4}
              port: {type: string, default: Kiel}
              draught: {type: string}
          status:
            type: object
            properties: {aboard: {type: integer}}
";

/// What the definition is called.
const NAME: &str = "boats.e2e.lockstep.dev";

fn boat(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: e2e.lockstep.dev/v1\nkind: Boat\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

/// A definition, its objects, and the end of both.
pub(super) fn checks(suite: &mut Suite) {
    defining(suite);
    objects(suite);
    subresources(suite);
    refused(suite);
    warned(suite);
    ending(suite);
}

fn established(suite: &mut Suite, name: &str) {
    let wait = format!("wait --for=condition=Established crd/{NAME} --timeout=20s");
    suite.check(name, Check::new(&wait).out("condition met"));
}

fn defining(suite: &mut Suite) {
    let none = Check::new("get boats").code(1);
    let none = none.err("the server doesn't have a resource type \"boats\"");
    suite.check("a kind that nobody defined", none);
    let apply = Check::new("apply -f -").stdin(DEFINITION);
    suite.check("a definition", apply.out(&format!("{NAME} created")));
    established(suite, "it is established");
    let again = Check::new("apply -f -").stdin(DEFINITION);
    suite.check("the definition again", again.out(&format!("{NAME} unchanged")));
    let resources = Check::new("api-resources --api-group=e2e.lockstep.dev").out("boats");
    suite.check("its kind is discovered", resources.out("bt ").out("true         Boat"));
    let explain = Check::new("explain boat.spec").out("crew\t<integer> -required-");
    suite.check("explain it", explain.out("How many sail it.").out("KIND:       Boat"));
    let shown = Check::new("get crds").out(NAME).out("CREATED AT");
    suite.check("get crds", shown);
    suite.check("describe crd", Check::new(&format!("describe crd {NAME}")).out("NoConflicts"));
}

fn objects(suite: &mut Suite) {
    let apply = |spec: &str| Check::new("apply -f -").stdin(&boat("one", spec));
    let object = "boat.e2e.lockstep.dev/one";
    suite.check("an object", apply("{crew: 2}").out_is(&format!("{object} created")));
    suite.check("again", apply("{crew: 2}").out_is(&format!("{object} unchanged")));
    suite.check("changed", apply("{crew: 3}").out_is(&format!("{object} configured")));
    let filled = Check::new("get boat one -o jsonpath={.spec}");
    let filled = filled.out_is(r#"{"crew":3,"port":"Kiel","seats":4}"#);
    suite.check("it has its defaults", filled);
    for kind in ["boats", "bt", "fleet"] {
        let table = Check::new(&format!("get {kind}"));
        let table = table.out_is("NAME   CREW   PORT\none    3      Kiel");
        suite.check(&format!("get {kind}: its columns"), table);
    }
    suite.check("more of them", Check::new("get bt -o wide").out("PORT   DRAUGHT"));
    let edit = Check::new("edit boat one").var("EDITOR", "sed -i s/port:.Kiel/port:\\ Bonn/");
    suite.check("32 edit one", edit.out_is(&format!("{object} edited")));
    let edited = Check::new("get boat one -o jsonpath={.spec.port}/{.metadata.generation}");
    suite.check("32 the edit is there", edited.out_is("Bonn/3"));
    suite.check("describe one", Check::new("describe boat one").out("Port:   Bonn"));
    let applied = Check::new("apply --server-side --field-manager=other -f -");
    let conflict = applied.stdin(&boat("one", "{crew: 1}")).code(1);
    suite.check("25 apply on the server: a conflict", conflict.err("conflict with \"kubectl"));
}

fn subresources(suite: &mut Suite) {
    let watch = suite.start_past("get boats -w", "NAME   CREW   PORT");
    let patch = "patch boat one --subresource=status --type=merge -p";
    let both = Check::new(&format!(r#"{patch} '{{"status":{{"aboard":3}},"spec":{{"crew":0}}}}'"#));
    suite.check("34 patch the status", both.out("patched"));
    let now = "get boat one -o jsonpath={.spec.crew}/{.status.aboard}/{.metadata.generation}";
    suite.check("34 only the status changed", Check::new(now).out_is("3/3/3"));
    let main = r#"patch boat one --type=merge -p '{"status":{"aboard":9}}'"#;
    suite.check("34 not by the main resource", Check::new(main).out("patched (no change)"));
    suite.check("scale it", Check::new("scale boat one --replicas=1").out("one scaled"));
    suite.check("its scale", Check::new(now).out_is("1/3/4"));
    let scale = "get boat one --subresource=scale -o jsonpath={.spec.replicas}/{.status.replicas}";
    suite.check("get its scale", Check::new(scale).out_is("1/3"));
    suite.prove("41 a watch shows each change", |_| {
        let watch = watch.map_err(|error| error.to_string())?;
        let seen = interrupt_after(watch, "one    1 ").out;
        let rows: Vec<&str> =
            seen.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
        (rows == ["3", "3", "1"]).then_some(()).ok_or(seen)
    });
}

fn refused(suite: &mut Suite) {
    let create = |spec: &str| Check::new("create -f -").stdin(&boat("wrong", spec)).code(1);
    let typo = create("{crew: 1, prot: Bonn}");
    let typo = typo.err("strict decoding error: unknown field \"spec.prot\"");
    suite.check("13 an unknown field", typo);
    let rule = create("{crew: 5}").err("The Boat \"wrong\" is invalid: spec: Invalid value");
    suite.check("a rule is broken", rule.err("more crew than seats"));
    suite.check("what is required", create("{}").err("spec.crew: Required value"));
    let kind = create("{crew: two}").err("spec.crew in body must be of type integer: \"string\"");
    suite.check("a wrong type", kind);
    let least = create("{crew: -1}").err("spec.crew in body should be greater than or equal to 0");
    suite.check("too little", least);
    let scale = Check::new("scale boat one --replicas=9").code(1).err("more crew than seats");
    suite.check("a scale that breaks a rule", scale);
    let strategic = "patch boat one --type=strategic -p '{}'";
    let strategic = Check::new(strategic).code(1).err("was in an unknown format");
    suite.check("no strategic patches", strategic);
}

/// What is in a definition and not enforced is told.
fn warned(suite: &mut Suite) {
    let webhook = "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], \
                   clientConfig: {url: 'https://127.0.0.1:1/convert'}}}\n  scope:";
    let apply = Check::new("apply -f -").stdin(&DEFINITION.replace("  scope:", webhook));
    let apply = apply.out(&format!("{NAME} configured"));
    let why = "Warning: spec.conversion.strategy: Webhook is not supported";
    suite.check("a warning of what is not enforced", apply.err(why));
    let wrong = DEFINITION.replace("minimum: 0", "minimum: none");
    let wrong = Check::new("apply -f -").stdin(&wrong).code(1);
    suite.check("a definition that is wrong", wrong.err("minimum"));
    suite.check("objects stay", Check::new("get boat one -o name").out("/one"));
}

fn ending(suite: &mut Suite) {
    let delete = Check::new(&format!("delete crd {NAME} --timeout=20s")).out("deleted");
    suite.check("delete the definition", delete);
    let gone = Check::new("get boat one").code(1);
    suite.check("its kind is gone", gone.err("could not find the requested resource"));
    let again = Check::new("create -f -").stdin(DEFINITION).out("created");
    suite.check("define it again", again);
    established(suite, "it is established again");
    suite.check("its objects were gone too", Check::new("get boats -A -o name").out_is(""));
    suite.check("clean up", Check::new(&format!("delete crd {NAME}")).out("deleted"));
}
