//! Commands that make objects without a file. kubectl sends them as protobuf since 1.32.

use crate::e2e::check::{Check, Suite};

/// Checks 15 to 18 and 62, as far as they need no second user.
pub(super) fn checks(suite: &mut Suite) {
    let job = Check::new("create job made --image=busybox -- echo from-protobuf");
    suite.check("15 create job", job.out_is("job.batch/made created"));
    let wait = Check::new("wait --for=condition=Complete job/made --timeout=60s");
    suite.check("15 it completes", wait.out("condition met"));
    suite.check("15 and said it", Check::new("logs job/made").out_is("from-protobuf"));
    let space = Check::new("create namespace made").out_is("namespace/made created");
    suite.check("16 create namespace", space);
    let account = Check::new("get serviceaccount default -n made").out("default");
    suite.check("16 it has a service account", account.within(10));
    let map = Check::new("create configmap made --from-literal=a=b -n made");
    suite.check("17 create configmap", map.out_is("configmap/made created"));
    let map = Check::new("get cm made -n made -o jsonpath={.data.a}");
    suite.check("17 it has what was said", map.out_is("b"));
    let again = Check::new("create configmap made -n made").code(1).err("already exists");
    suite.check("17 not twice", again);
    let secret = Check::new("create secret generic made --from-literal=a=b -n made");
    suite.check("18 create secret", secret.out_is("secret/made created"));
    let secret = Check::new("get secret made -n made -o jsonpath={.data.a}/{.type}");
    suite.check("18 it has what was said", secret.out_is("Yg==/Opaque"));
    let service = Check::new("create service clusterip made --tcp=80:8080 -n made");
    suite.check("create service", service.out_is("service/made created"));
    let port = "get service made -n made -o jsonpath={.spec.ports[0].port}:{.spec.ports[0]";
    let port = format!("{port}.targetPort}}");
    suite.check("it has numbers and names", Check::new(&port).out_is("80:8080"));
    let account = Check::new("create serviceaccount made -n made");
    suite.check("create serviceaccount", account.out_is("serviceaccount/made created"));
    let class = Check::new("create priorityclass made --value=7 --description=seven");
    suite.check("create priorityclass", class.out("made created"));
    exposing(suite);
    suite.check("62 may I", Check::new("auth can-i create pods").out_is("yes"));
    suite.check("62 what may I", Check::new("auth can-i --list").out("*.*"));
    suite.check("62 who am I", Check::new("auth whoami").out("kubernetes-admin"));
    rights(suite);
    let bad = Check::new("create namespace Not_Valid").code(1).err("metadata.name: Invalid value");
    suite.check("a bad name in protobuf", bad);
    suite.check("clean up", Check::new("delete job/made ns/made priorityclass/made").out("made"));
}

/// What is changed and looked at without a file.
fn exposing(suite: &mut Suite) {
    let run =
        "run shown --image=busybox --restart=Never --port=8080 -n made --command -- sleep 600";
    suite.check("19 run, with a port", Check::new(run).out("pod/shown created"));
    let expose = Check::new("expose pod shown --port=80 --target-port=8080 -n made");
    suite.check("expose", expose.out_is("service/shown exposed"));
    let service = "{.spec.selector.run} {.spec.ports[0].port}:{.spec.ports[0].targetPort}";
    let service = Check::new(&format!("get service shown -n made -o 'jsonpath={service}'"));
    suite.check("expose: the pod by its label", service.out_is("shown 80:8080"));
    let slices = "get endpointslices -n made -l kubernetes.io/service-name=shown -o";
    let slices =
        Check::new(&format!("{slices} jsonpath={{.items[*].endpoints[*].targetRef.name}}"));
    suite.check("expose: it is behind the service", slices.out_is("shown").within(20));
    let again = Check::new("expose pod shown --port=80 -n made").code(1).err("already exists");
    suite.check("expose: not twice", again);
    let image = Check::new("set image pod/shown shown=busybox:2 -n made");
    suite.check("set image", image.out_is("pod/shown image updated"));
    let image = Check::new("get pod shown -n made -o jsonpath={.spec.containers[0].image}");
    suite.check("set image: it is there", image.out_is("busybox:2"));
    let nobody = Check::new("set image pod/shown nobody=x -n made").code(1);
    suite.check("set image: no such container", nobody.err("unable to find container"));
    let all = Check::new("get pods,services -A").out("NAMESPACE").out("made        pod/shown");
    suite.check("get -A", all.out("default     service/kubernetes"));
    let clean = Check::new("delete pod/shown service/shown -n made --now").out("deleted");
    suite.check("clean up what was shown", clean);
}

/// Users with fewer rights, whom the administrator acts as.
fn rights(suite: &mut Suite) {
    let account = "--as=system:serviceaccount:made:made -n made";
    let may_not = Check::new(&format!("auth can-i list pods {account}")).code(1).out_is("no");
    suite.check("62 an account may not", may_not);
    let refused = Check::new(&format!("get pods {account}")).code(1).err(
        "pods is forbidden: User \"system:serviceaccount:made:made\" cannot list resource \"pods\" \
         in API group \"\" in the namespace \"made\"",
    );
    suite.check("62 and is refused", refused);
    let role = Check::new("create role reader --verb=get,list,watch --resource=pods -n made");
    suite.check("62 create role", role.out("reader created"));
    let line = "create rolebinding read --role=reader --serviceaccount=made:made -n made";
    suite.check("62 create rolebinding", Check::new(line).out("read created"));
    let may = Check::new(&format!("auth can-i list pods {account}")).out_is("yes");
    suite.check("62 now it may", may);
    let pods = Check::new(&format!("get pods {account}")).err("No resources found");
    suite.check("62 and does", pods);
    let more = Check::new(&format!("delete pod x {account}")).code(1).err("cannot delete resource");
    suite.check("62 but no more than that", more);
    let list = Check::new(&format!("auth can-i --list {account}")).out("pods");
    suite.check("62 what it may", list);
    suite.check("62 roles", Check::new("get roles,rolebindings -n made").out("Role/reader"));
    let roles = Check::new("get clusterroles").out("cluster-admin").out("CREATED AT");
    suite.check("62 roles of the cluster", roles);
    suite.check("62 describe one", Check::new("describe clusterrole view").out("jobs.batch"));
}
