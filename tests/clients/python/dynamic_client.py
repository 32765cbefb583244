"""Kinds that are found by discovery: the dynamic client, and custom objects."""

import tempfile

from kubernetes import client, dynamic, watch

from report import check, has, refused, same, until

NS = "default"
GROUP = ("jobset.x-k8s.io", "v1alpha2", NS, "jobsets")


def jobset(name):
    """A JobSet of one pod."""
    pod = {"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "busybox", "command": ["sh", "-c", "echo set"]}]}
    template = {"spec": {"backoffLimit": 0, "template": {"spec": pod}}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"replicatedJobs": [{"name": "w", "replicas": 1, "template": template}]},
    }


def discovered():
    """The dynamic client, with a cache of its own."""
    cache = tempfile.NamedTemporaryFile(suffix=".json").name
    return dynamic.DynamicClient(client.ApiClient(), cache_file=cache)


def objects(anything):
    """Any kind, by its name."""
    maps = check("3 a kind", lambda: anything.resources.get(api_version="v1", kind="ConfigMap"))
    jobs = check("3 a kind of a group", lambda: anything.resources.get(
        api_version="batch/v1", kind="Job"))
    check("3 is namespaced", lambda: same(jobs.namespaced, True))
    check("3 a short name", lambda: same(
        anything.resources.get(api_version="v1", short_names=["po"]).kind, "Pod"))
    check("3 all of a category", lambda: has(
        [r.kind for r in anything.resources.search(categories=["all"])], "Job"))
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dyn"}}
    check("12 create", lambda: maps.create(body={**body, "data": {"a": "1"}}, namespace=NS))
    typo, strict = {**body, "foo": 1}, [("fieldValidation", "Strict")]
    check("13 an unknown field", lambda: refused(
        400, 'unknown field \\"foo\\"',
        lambda: maps.create(body=typo, namespace=NS, query_params=strict)))
    check("10 get", lambda: same(maps.get(name="dyn", namespace=NS).data.a, "1"))
    merge = "application/merge-patch+json"
    check("33 a merge patch", lambda: same(maps.patch(
        body={"data": {"b": "2"}}, name="dyn", namespace=NS, content_type=merge).data.b, "2"))
    check("6 list", lambda: has([m.metadata.name for m in maps.get(namespace=NS).items], "dyn"))
    def events():
        watcher, seen = watch.Watch(), []
        stream = maps.watch(namespace=NS, name="dyn", resource_version=0, timeout=20,
                            watcher=watcher)
        for event in stream:
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "ADDED":
                maps.delete(name="dyn", namespace=NS)
            else:
                watcher.stop()
        return seen
    check("42 watch", lambda: same(events(), [("ADDED", "dyn"), ("DELETED", "dyn")]))


def apply(anything):
    """Server-side apply."""
    maps = anything.resources.get(api_version="v1", kind="ConfigMap")
    def applied(manager, data, **options):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ssa"}, "data": data}
        return maps.server_side_apply(body=body, namespace=NS, field_manager=manager, **options)
    check("24 apply", lambda: same(applied("one", {"a": "1", "b": "1"}).data.a, "1"))
    owners = lambda: [(f.manager, f.operation) for f in
                      maps.get(name="ssa", namespace=NS).metadata.managedFields]
    check("24 has an owner", lambda: same(owners(), [("one", "Apply")]))
    def conflict():
        try:
            applied("two", {"a": "2"})
        except dynamic.exceptions.ConflictError as error:
            has(error.summary(), "Apply failed with 1 conflict")
            has(error.summary(), 'conflict with "one": .data.a')
            return True
        raise AssertionError("there was no conflict")
    check("25 a conflict", conflict)
    check("25 force", lambda: same(applied("two", {"a": "2"}, force_conflicts=True).data.a, "2"))
    check("26 a field that is left out", lambda: same(
        applied("one", {}).data.to_dict(), {"a": "2"}))
    check("26 clean up", lambda: maps.delete(name="ssa", namespace=NS))


def custom(custom):
    """Custom objects: what is no built-in kind."""
    made = check("28 a JobSet", lambda: custom.create_namespaced_custom_object(
        *GROUP, jobset("js")))
    check("28 is given defaults", lambda: same(made["spec"]["network"]["enableDNSHostnames"], True))
    typo = jobset("typo")
    typo["spec"]["replicatedJobs"][0]["replica"] = 2
    check("29 a typo", lambda: refused(
        400, 'unknown field \\"spec.replicatedJobs[0].replica\\"',
        lambda: custom.create_namespaced_custom_object(*GROUP, typo, field_validation="Strict")))
    def state():
        status = custom.get_namespaced_custom_object(*GROUP, "js").get("status", {})
        return status.get("terminalState") == "Completed"
    check("28 completes", lambda: until(state))
    patch = {"metadata": {"labels": {"x": "y"}}}
    check("28 a merge patch", lambda: same(custom.patch_namespaced_custom_object(
        *GROUP, "js", patch)["metadata"]["labels"], {"x": "y"}))
    check("28 its status alone", lambda: same(custom.get_namespaced_custom_object_status(
        *GROUP, "js")["status"]["terminalState"], "Completed"))
    names = lambda listed: [one["metadata"]["name"] for one in listed["items"]]
    check("28 a list", lambda: same(names(custom.list_namespaced_custom_object(
        *GROUP, field_selector="metadata.name=js")), ["js"]))
    check("28 everywhere", lambda: has(names(custom.list_cluster_custom_object(
        GROUP[0], GROUP[1], GROUP[3])), "js"))
    check("28 delete", lambda: custom.delete_namespaced_custom_object(*GROUP, "js"))
    check("28 is gone", lambda: until(lambda: refused(
        404, "not found", lambda: custom.get_namespaced_custom_object(*GROUP, "js"))))
