package main

import (
	"context"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applybatch "k8s.io/client-go/applyconfigurations/batch/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	background = context.Background()
	nothing    = metav1.CreateOptions{}
)

func pod(name, script string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "main", Image: "busybox", Command: []string{"sh", "-c", script},
			}},
		},
	}
}

func job(name, script string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{Spec: pod(name, script).Spec},
		},
	}
}

// server is what the server says about itself.
func (c *clients) server() {
	discovery := c.typed.Discovery()
	check("1 version", func() error {
		version, err := discovery.ServerVersion()
		if err != nil {
			return err
		}
		return has(version.GitVersion, "v1.")
	})
	check("3 groups and resources", func() error {
		groups, resources, err := discovery.ServerGroupsAndResources()
		if err != nil {
			return err
		}
		if len(groups) < 5 || len(resources) < 5 {
			return fmt.Errorf("only %d groups with %d lists", len(groups), len(resources))
		}
		return nil
	})
	check("3 kinds are mapped to resources", func() error {
		groups, err := restmapper.GetAPIGroupResources(discovery)
		if err != nil {
			return err
		}
		kind := schema.GroupKind{Group: "jobset.x-k8s.io", Kind: "JobSet"}
		mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(kind)
		if err != nil {
			return err
		}
		return same(mapping.Resource.Resource, "jobsets")
	})
	check("3 preferred resources", func() error {
		_, err := discovery.ServerPreferredResources()
		return err
	})
	check("30 OpenAPI", func() error {
		paths, err := discovery.OpenAPIV3().Paths()
		if err != nil {
			return err
		}
		var batch openapi.GroupVersion = paths["apis/batch/v1"]
		if batch == nil {
			return fmt.Errorf("no batch/v1 among %d", len(paths))
		}
		document, err := batch.Schema("application/json")
		if err != nil {
			return err
		}
		return has(string(document), "io.k8s.api.batch.v1.JobSpec")
	})
	check("5 readyz", func() error {
		answer, err := discovery.RESTClient().Get().AbsPath("/readyz").DoRaw(background)
		if err != nil {
			return err
		}
		return same(string(answer), "ok")
	})
}

// objects come, change and are listed, through typed clients.
func (c *clients) objects() {
	pods, jobs := c.typed.CoreV1().Pods(namespace), c.typed.BatchV1().Jobs(namespace)
	check("12 create", func() error {
		made, err := pods.Create(background, pod("go1", "sleep 60"), nothing)
		if err != nil {
			return err
		}
		return same(made.Spec.RestartPolicy, corev1.RestartPolicyNever)
	})
	check("12 twice", func() error {
		_, err := pods.Create(background, pod("go1", ""), nothing)
		return refused(err, 409, `pods "go1" already exists`)
	})
	check("10 no such pod", func() error {
		_, err := pods.Get(background, "nope", metav1.GetOptions{})
		return refused(err, 404, `pods "nope" not found`)
	})
	check("14 what is invalid", func() error {
		wrong := job("wrong", "true")
		wrong.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
		_, err := jobs.Create(background, wrong, nothing)
		return refused(err, 422, "spec.template.spec.restartPolicy")
	})
	check("15 a Job completes", func() error {
		if _, err := jobs.Create(background, job("go-job", "echo hi"), nothing); err != nil {
			return err
		}
		return until(func() error {
			got, err := jobs.Get(background, "go-job", metav1.GetOptions{})
			if err != nil {
				return err
			}
			return same(got.Status.Succeeded, 1)
		})
	})
	check("20 a generated name", func() error {
		unnamed := pod("", "true")
		unnamed.GenerateName = "go-gen-"
		made, err := pods.Create(background, unnamed, nothing)
		if err != nil {
			return err
		}
		return same(len(made.Name), len("go-gen-")+5)
	})
	check("27 a dry run", func() error {
		dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		if _, err := pods.Create(background, pod("dry", "true"), dry); err != nil {
			return err
		}
		_, err := pods.Get(background, "dry", metav1.GetOptions{})
		return refused(err, 404, "not found")
	})
	c.changes()
	c.lists()
}

func (c *clients) changes() {
	pods, maps := c.typed.CoreV1().Pods(namespace), c.typed.CoreV1().ConfigMaps(namespace)
	check("31 update, and a conflict that is retried", func() error {
		first := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "go-map"}}
		made, err := maps.Create(background, first, nothing)
		if err != nil {
			return err
		}
		made.Data = map[string]string{"a": "1"}
		if _, err := maps.Update(background, made, metav1.UpdateOptions{}); err != nil {
			return err
		}
		_, err = maps.Update(background, made, metav1.UpdateOptions{})
		if err := refused(err, 409, "the object has been modified"); err != nil {
			return err
		}
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			now, err := maps.Get(background, "go-map", metav1.GetOptions{})
			if err != nil {
				return err
			}
			now.Data["a"] = "2"
			_, err = maps.Update(background, now, metav1.UpdateOptions{})
			return err
		})
	})
	patches := []struct {
		name string
		kind types.PatchType
		body string
	}{
		{"strategic", types.StrategicMergePatchType, `{"metadata":{"labels":{"x":"1"}}}`},
		{"merge", types.MergePatchType, `{"metadata":{"labels":{"x":"2"}}}`},
		{"JSON", types.JSONPatchType, `[{"op":"add","path":"/metadata/labels/x","value":"3"}]`},
	}
	for at, patch := range patches {
		check("33 a "+patch.name+" patch", func() error {
			got, err := pods.Patch(
				background, "go1", patch.kind, []byte(patch.body), metav1.PatchOptions{})
			if err != nil {
				return err
			}
			return same(got.Labels["x"], fmt.Sprint(at+1))
		})
	}
	check("34 a status", func() error {
		got, err := pods.Get(background, "go1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		got.Status.Conditions = append(got.Status.Conditions,
			corev1.PodCondition{Type: "Mine", Status: corev1.ConditionTrue})
		body := []byte(`{"status":{"conditions":[{"type":"Mine","status":"True"}]}}`)
		_, err = pods.Patch(background, "go1", types.StrategicMergePatchType, body,
			metav1.PatchOptions{}, "status")
		return err
	})
	check("36 what must not change", func() error {
		body := []byte(`{"spec":{"hostname":"other"}}`)
		_, err := pods.Patch(
			background, "go1", types.MergePatchType, body, metav1.PatchOptions{})
		return refused(err, 422, "pod updates may not change fields other than")
	})
}

func (c *clients) lists() {
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	check("39 in pages", func() error {
		for _, name := range []string{"page-a", "page-b", "page-c"} {
			labelled := metav1.ObjectMeta{Name: name, Labels: map[string]string{"page": "yes"}}
			one := &corev1.ConfigMap{ObjectMeta: labelled}
			if _, err := maps.Create(background, one, nothing); err != nil {
				return err
			}
		}
		var names []string
		options := metav1.ListOptions{LabelSelector: "page in (yes)", Limit: 2}
		for {
			page, err := maps.List(background, options)
			if err != nil {
				return err
			}
			for _, one := range page.Items {
				names = append(names, one.Name)
			}
			if options.Continue = page.Continue; options.Continue == "" {
				return same(strings.Join(names, " "), "page-a page-b page-c")
			}
		}
	})
	check("55 a collection", func() error {
		return maps.DeleteCollection(background, metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: "page=yes"})
	})
	check("65 metadata alone", func() error {
		resource := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		list, err := c.metadata.Resource(resource).Namespace(namespace).
			List(background, metav1.ListOptions{LabelSelector: "app=go1"})
		if err != nil {
			return err
		}
		return same(len(list.Items), 1)
	})
}

// apply is server-side apply, with the generated builders.
func (c *clients) apply() {
	maps := c.typed.CoreV1().ConfigMaps(namespace)
	apply := func(manager string, force bool, data map[string]string) (*corev1.ConfigMap, error) {
		wanted := applycore.ConfigMap("go-ssa", namespace).WithData(data)
		options := metav1.ApplyOptions{FieldManager: manager, Force: force}
		return maps.Apply(background, wanted, options)
	}
	check("24 apply", func() error {
		got, err := apply("one", false, map[string]string{"a": "1", "b": "1"})
		if err != nil {
			return err
		}
		return same(string(got.ManagedFields[0].Operation), "Apply")
	})
	check("25 a conflict", func() error {
		_, err := apply("two", false, map[string]string{"a": "2"})
		return refused(err, 409, `Apply failed with 1 conflict: conflict with "one": .data.a`)
	})
	check("25 force", func() error {
		got, err := apply("two", true, map[string]string{"a": "2"})
		if err != nil {
			return err
		}
		return same(got.Data["a"], "2")
	})
	check("26 what is left out goes", func() error {
		got, err := apply("one", false, nil)
		if err != nil {
			return err
		}
		return same(fmt.Sprint(got.Data), "map[a:2]")
	})
	check("26 apply what one owner has", func() error {
		got, err := maps.Get(background, "go-ssa", metav1.GetOptions{})
		if err != nil {
			return err
		}
		mine, err := applycore.ExtractConfigMap(got, "two")
		if err != nil {
			return err
		}
		return same(fmt.Sprint(mine.Data), "map[a:2]")
	})
	check("24 a Job", func() error {
		container := applycore.Container().WithName("main").WithImage("busybox").
			WithCommand("true")
		template := applycore.PodTemplateSpec().WithSpec(applycore.PodSpec().
			WithRestartPolicy(corev1.RestartPolicyNever).WithContainers(container))
		wanted := applybatch.Job("go-applied", namespace).WithSpec(applybatch.JobSpec().
			WithSuspend(true).WithTemplate(template))
		options := metav1.ApplyOptions{FieldManager: "one"}
		_, err := c.typed.BatchV1().Jobs(namespace).Apply(background, wanted, options)
		return err
	})
}
