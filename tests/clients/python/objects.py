"""Objects of built-in kinds, through the typed client."""

from kubernetes import client, utils

from report import check, has, refused, same, until

NS = "default"


def pod(name, script, **spec):
    """A pod that runs one shell line."""
    main = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "containers": [main], **spec},
    }


def job(name, script, **spec):
    """A Job of such pods."""
    template = {"spec": pod(name, script)["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def server(core):
    """What the server says about itself."""
    check("1 version", lambda: same(client.VersionApi().get_code().major, "1"))
    groups = check("2 groups", lambda: client.ApisApi().get_api_versions().groups)
    names = [group.name for group in groups or []]
    check("2 groups are named", lambda: [has(names, n) for n in ["batch", "jobset.x-k8s.io"]])
    resources = lambda: [r.name for r in client.CoreV1Api().get_api_resources().resources]
    check("3 resources", lambda: has(resources(), "pods"))
    def ready():
        node = core.list_node().items[0]
        conditions = {c.type: c.status for c in node.status.conditions}
        same(conditions["Ready"], "True")
        has(node.status.node_info.kubelet_version, "v1.")
        return node.metadata.name
    check("7 a node is ready", lambda: until(ready))
    spaces = lambda: {n.metadata.name: n.status.phase for n in core.list_namespace().items}
    check("8 namespaces", lambda: same(spaces()["kube-system"], "Active"))
    check("10 no such pod", lambda: refused(
        404, 'pods \\"nope\\" not found', lambda: core.read_namespaced_pod("nope", NS)))
    check("11 no such job", lambda: refused(
        404, 'jobs.batch \\"nope\\" not found',
        lambda: client.BatchV1Api().read_namespaced_job("nope", NS)))


def create(core, batch):
    """Creation, and what is refused."""
    first = lambda: core.create_namespaced_pod(NS, pod("p1", "sleep 60"))
    check("12 create", first)
    check("12 twice", lambda: refused(409, "AlreadyExists", first))
    always = job("always", "true")
    always["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    check("14 a Job that always restarts", lambda: refused(
        422, "spec.template.spec.restartPolicy", lambda: batch.create_namespaced_job(NS, always)))
    check("15 a Job", lambda: batch.create_namespaced_job(NS, job("j", "echo hi")))
    ended = lambda: same(batch.read_namespaced_job("j", NS).status.succeeded, 1) or True
    check("15 completes", lambda: until(ended))
    space = client.V1Namespace(metadata=client.V1ObjectMeta(name="n2"))
    check("16 a namespace", lambda: core.create_namespace(space))
    account = lambda: core.read_namespaced_service_account("default", "n2")
    check("16 has an account", lambda: until(account))
    named = client.V1ObjectMeta(name="c")
    check("17 a ConfigMap", lambda: core.create_namespaced_config_map(
        NS, client.V1ConfigMap(metadata=named, data={"a": "b"})))
    check("17 has its data", lambda: same(
        core.read_namespaced_config_map("c", NS).data, {"a": "b"}))
    secret = client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"a": "b"})
    check("18 a Secret", lambda: same(
        core.create_namespaced_secret(NS, secret).data, {"a": "Yg=="}))
    check("18 its type", lambda: same(core.read_namespaced_secret("s", NS).type, "Opaque"))
    generated = pod("", "true")
    generated["metadata"] = {"generateName": "gen-"}
    name = lambda: core.create_namespaced_pod(NS, generated).metadata.name
    check("20 a generated name", lambda: same(len(name()), len("gen-") + 5))
    check("20 from a file's objects", lambda: utils.create_from_dict(
        client.ApiClient(), {"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "listed"}}]}))
    check("27 a dry run", lambda: core.create_namespaced_pod(
        NS, pod("dry", "true"), dry_run="All"))
    check("27 leaves nothing", lambda: refused(
        404, "not found", lambda: core.read_namespaced_pod("dry", NS)))


def change(core, batch):
    """Updates and patches."""
    old = check("31 an object", lambda: core.read_namespaced_config_map("c", NS))
    old.data = {"a": "c"}
    check("31 replace", lambda: same(
        core.replace_namespaced_config_map("c", NS, old).data, {"a": "c"}))
    check("31 replace what has changed", lambda: refused(
        409, "the object has been modified",
        lambda: core.replace_namespaced_config_map("c", NS, old)))
    labels = {"metadata": {"labels": {"x": "y"}}}
    check("33 a strategic patch", lambda: same(
        core.patch_namespaced_pod("p1", NS, labels).metadata.labels["x"], "y"))
    operations = [{"op": "replace", "path": "/metadata/labels/x", "value": "z"}]
    check("33 a JSON patch", lambda: same(
        core.patch_namespaced_pod("p1", NS, operations).metadata.labels["x"], "z"))
    test = [{"op": "test", "path": "/metadata/labels/x", "value": "other"}]
    check("33 a test that fails", lambda: refused(
        422, "", lambda: core.patch_namespaced_pod("p1", NS, test)))
    status = {"status": {"conditions": [
        {"type": "Mine", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
    patched = lambda: core.patch_namespaced_pod_status("p1", NS, status).status.conditions
    check("34 a status", lambda: has([c.type for c in patched()], "Mine"))
    check("34 not through the object", lambda: same(
        core.patch_namespaced_pod("p1", NS, {"status": {"phase": "Failed"}}).status.phase
        in ("Pending", "Running"), True))
    check("36 what must not change", lambda: refused(
        422, "pod updates may not change fields other than",
        lambda: core.patch_namespaced_pod("p1", NS, {"spec": {"hostname": "other"}})))
    stopped = {"spec": {"suspend": True, "parallelism": 2}}
    check("23 a Job to change", lambda: batch.create_namespaced_job(
        NS, job("still", "true", suspend=True)))
    generation = lambda: batch.patch_namespaced_job("still", NS, stopped).metadata.generation
    check("23 a change counts", lambda: same(generation(), 2))
    check("22 the same again does not", lambda: same(generation(), 2))
    apps = client.AppsV1Api()
    labels = {"app": "web"}
    web = {
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": pod("web", "true")["spec"]}},
    }
    check("a kind that is not run is refused", lambda: refused(
        405, "use a Job or a JobSet", lambda: apps.create_namespaced_deployment(NS, web)))
    check("there are none of it", lambda: same(apps.list_namespaced_deployment(NS).items, []))


def read(core):
    """Lists and selectors."""
    for name, labels in [("a1", {"a": "x"}), ("a2", {"a": "y"}), ("a3", {"a": "x", "z": "1"})]:
        meta = client.V1ObjectMeta(name=name, labels=labels)
        check(f"37 {name}", lambda: core.create_namespaced_config_map(
            "n2", client.V1ConfigMap(metadata=meta)))
    names = lambda **by: [m.metadata.name for m in core.list_namespaced_config_map(
        "n2", **by).items if m.metadata.name.startswith("a")]
    check("37 in and not", lambda: same(names(label_selector="a in (x,y),!z"), ["a1", "a2"]))
    check("37 other than", lambda: same(names(label_selector="a!=x"), ["a2"]))
    check("38 by field", lambda: same(names(field_selector="metadata.name=a3"), ["a3"]))
    check("38 by no field", lambda: refused(
        400, "field label not supported",
        lambda: core.list_namespaced_pod(NS, field_selector="foo=bar")))
    phase = lambda: [p.metadata.name for p in core.list_namespaced_pod(
        NS, field_selector="status.phase=Running").items]
    check("38 by phase", lambda: until(lambda: has(phase(), "p1") or True))
    def pages():
        seen, token = [], None
        while True:
            page = core.list_namespaced_config_map(
                "n2", label_selector="a", limit=2, _continue=token)
            seen += [m.metadata.name for m in page.items]
            token = page.metadata._continue
            if not token:
                return seen
    check("39 in pages", lambda: same(pages(), ["a1", "a2", "a3"]))
    check("39 everywhere", lambda: has(
        [m.metadata.namespace for m in core.list_config_map_for_all_namespaces().items], "n2"))


def delete(core, batch):
    """Deletion."""
    check("53 a Job with a pod", lambda: batch.create_namespaced_job(NS, job("d", "sleep 60")))
    pods = lambda: core.list_namespaced_pod(NS, label_selector="job-name=d").items
    check("53 its pod", lambda: until(pods))
    check("53 orphans its pods", lambda: batch.delete_namespaced_job("d", NS))
    owners = lambda: pods()[0].metadata.owner_references is None
    check("53 who have no owner", lambda: until(owners))
    check("55 a collection", lambda: core.delete_collection_namespaced_pod(
        NS, label_selector="job-name=d", grace_period_seconds=0))
    check("55 is gone", lambda: until(lambda: pods() == []))
    check("53 another", lambda: batch.create_namespaced_job(NS, job("d", "sleep 60")))
    check("53 has a pod", lambda: until(pods))
    check("53 in the background", lambda: batch.delete_namespaced_job(
        "d", NS, propagation_policy="Background"))
    check("53 takes its pods along", lambda: until(lambda: pods() == []))
    check("51 a pod", lambda: core.delete_namespaced_pod("p1", NS, grace_period_seconds=1))
    gone = lambda: refused(404, "not found", lambda: core.read_namespaced_pod("p1", NS))
    check("51 is gone", lambda: until(gone))
    precondition = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="other"))
    check("51 another of that name", lambda: refused(
        409, "the UID in the precondition",
        lambda: core.delete_namespaced_config_map("c", NS, body=precondition)))
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    check("54 something that stays", lambda: core.create_namespaced_config_map("n2", held))
    check("54 a namespace", lambda: core.delete_namespace("n2"))
    def waits():
        conditions = core.read_namespace("n2").status.conditions or []
        said = {one.type: one.message for one in conditions}
        has(said.get("NamespaceFinalizersRemaining"), "example.com/hold in 1 resource instances")
        return True
    check("54 says what it waits for", lambda: until(waits))
    check("54 takes nothing new", lambda: refused(
        403, "NamespaceTerminating",
        lambda: core.create_namespaced_pod("n2", pod("late", "true"))))
    free = {"metadata": {"finalizers": None}}
    check("54 is let go", lambda: core.patch_namespaced_config_map("held", "n2", free))
    empty = lambda: refused(404, "not found", lambda: core.read_namespace("n2"))
    check("54 is gone", lambda: until(empty))
    check("54 nothing can be made there", lambda: refused(
        404, 'namespaces \\"n2\\" not found',
        lambda: core.create_namespaced_pod("n2", pod("late", "true"))))
