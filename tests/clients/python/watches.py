"""Watches, informers, and who leads."""

import threading
import time

from kubernetes import client, informer, watch
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

import dynamic_client
import objects as jobs
from report import check, has, refused, same, until

NS = "default"


def config_map(name, **data):
    """A ConfigMap to watch."""
    meta = client.V1ObjectMeta(name=name, labels={"watched": "yes"})
    return client.V1ConfigMap(metadata=meta, data=data)


def streams(core):
    """What a watch tells, from where, and until when."""
    listed = lambda **by: core.list_namespaced_config_map(NS, label_selector="watched", **by)
    since = check("42 a version", lambda: listed().metadata.resource_version)
    core.create_namespaced_config_map(NS, config_map("w1"))
    core.patch_namespaced_config_map("w1", NS, {"data": {"a": "1"}})
    core.create_namespaced_config_map(NS, config_map("w2"))
    core.delete_namespaced_config_map("w1", NS)
    def events(count, **by):
        watcher, seen = watch.Watch(), []
        for event in watcher.stream(core.list_namespaced_config_map, NS,
                                    label_selector="watched", timeout_seconds=20, **by):
            seen.append((event["type"], event["object"].metadata.name))
            if len(seen) == count:
                watcher.stop()
        return seen
    check("42 what has happened since", lambda: same(events(4, resource_version=since), [
        ("ADDED", "w1"), ("MODIFIED", "w1"), ("ADDED", "w2"), ("DELETED", "w1")]))
    check("42 what there is", lambda: same(events(1), [("ADDED", "w2")]))
    def ends():
        began = time.monotonic()
        seen = list(watch.Watch().stream(core.list_namespaced_config_map, NS, timeout_seconds=2,
                                         label_selector="nobody"))
        same(seen, [])
        took = time.monotonic() - began
        if not 1.5 < took < 8:
            raise AssertionError(f"it took {took} s")
    check("44 ends in time", ends)
    def stale():
        watcher = watch.Watch()
        try:
            for event in watcher.stream(core.list_namespaced_config_map, NS, timeout_seconds=5,
                                        resource_version="999999999"):
                raise AssertionError(f"{event['type']} from the future")
        except client.ApiException as error:
            same(error.status in (410, 504), True)
    check("42 from the future", stale)
    def moves():
        watcher, seen = watch.Watch(), []
        stream = watcher.stream(core.list_namespaced_config_map, NS, label_selector="watched=yes",
                                timeout_seconds=20)
        for event in stream:
            seen.append(event["type"])
            if len(seen) == 1:
                relabelled = {"metadata": {"labels": {"watched": "no"}}}
                core.patch_namespaced_config_map("w2", NS, relabelled)
            else:
                watcher.stop()
        return seen
    check("42 what no longer matches is gone", lambda: same(moves(), ["ADDED", "DELETED"]))
    core.delete_namespaced_config_map("w2", NS)


def running(batch, custom):
    """Jobs from their creation to their end, and what is no built-in kind."""
    def job():
        watcher, seen = watch.Watch(), []
        batch.create_namespaced_job(NS, jobs.job("watched-job", "true"))
        for event in watcher.stream(batch.list_namespaced_job, NS, timeout_seconds=60,
                                    field_selector="metadata.name=watched-job"):
            status = event["object"].status
            seen.append((event["type"], status.succeeded))
            conditions = {c.type for c in status.conditions or []}
            if event["type"] != "DELETED" and "Complete" in conditions:
                batch.delete_namespaced_job("watched-job", NS, propagation_policy="Background")
            elif event["type"] == "DELETED":
                watcher.stop()
        return [seen[0][0], *seen[-2:]]
    check("42 a Job until it is gone", lambda: same(job(), [
        "ADDED", ("MODIFIED", 1), ("DELETED", 1)]))
    kind = ("jobset.x-k8s.io", "v1alpha2", NS, "jobsets")
    def sets():
        watcher, states = watch.Watch(), []
        custom.create_namespaced_custom_object(*kind, dynamic_client.jobset("watched-set"))
        for event in watcher.stream(custom.list_namespaced_custom_object, *kind,
                                    timeout_seconds=60,
                                    field_selector="metadata.name=watched-set"):
            states.append((event["type"], event["object"].get("status", {}).get("terminalState")))
            if states[-1] == ("MODIFIED", "Completed"):
                custom.delete_namespaced_custom_object(*kind, "watched-set")
            elif event["type"] == "DELETED":
                watcher.stop()
        return [states[0], states[-1]]
    check("42 a custom object until it is gone", lambda: same(sets(), [
        ("ADDED", None), ("DELETED", "Completed")]))


def informers(core):
    """A cache that follows."""
    seen = []
    follower = informer.SharedInformer(
        core.list_namespaced_config_map, namespace=NS, label_selector="watched")
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        follower.add_event_handler(kind, lambda o, k=kind: seen.append((k, o.metadata.name)))
    core.create_namespaced_config_map(NS, config_map("i1"))
    follower.start()
    check("65 an informer knows what there is", lambda: until(lambda: ("ADDED", "i1") in seen))
    core.create_namespaced_config_map(NS, config_map("i2"))
    check("65 hears of what comes", lambda: until(lambda: ("ADDED", "i2") in seen))
    core.patch_namespaced_config_map("i2", NS, {"data": {"a": "1"}})
    check("65 of what changes", lambda: until(lambda: ("MODIFIED", "i2") in seen))
    core.delete_namespaced_config_map("i2", NS)
    check("65 of what goes", lambda: until(lambda: ("DELETED", "i2") in seen))
    check("65 and keeps the rest", lambda: same(
        [o.metadata.name for o in follower.cache.list()], ["i1"]))
    follower.stop()
    core.delete_namespaced_config_map("i1", NS)


def leaders():
    """One leads at a time, and another follows."""
    led, stop = [], threading.Event()
    def candidate(name):
        def leading():
            led.append(name)
            stop.wait(20)
            raise RuntimeError("enough")  # Who leads stops by failing; there is no other way.
        config = electionconfig.Config(
            LeaseLock("python", NS, name), lease_duration=4, renew_deadline=3, retry_period=1.1,
            onstarted_leading=leading, onstopped_leading=lambda: None)
        runs = threading.Thread(target=leaderelection.LeaderElection(config).run, daemon=True)
        runs.start()
        return runs
    candidate("one")
    check("65 somebody leads", lambda: until(lambda: led == ["one"]))
    candidate("two")
    time.sleep(2.5)
    check("65 and nobody else", lambda: same(led, ["one"]))
    leases = client.CoordinationV1Api()
    holder = lambda: leases.read_namespaced_lease("python", NS).spec.holder_identity
    check("65 by a Lease", lambda: same(holder(), "one"))
    stop.set()
    check("65 until another does", lambda: until(lambda: led == ["one", "two"]))
    check("65 by the same Lease", lambda: same(holder(), "two"))
    stale = leases.read_namespaced_lease("python", NS)
    stale.metadata.resource_version = "1"
    check("65 nobody takes it unseen", lambda: refused(
        409, "the object has been modified",
        lambda: leases.replace_namespaced_lease("python", NS, stale)))
