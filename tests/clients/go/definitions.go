package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const definition = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": {"name": "masts.go.lockstep.dev"},
	"spec": {
		"group": "go.lockstep.dev", "scope": "Namespaced",
		"names": {"kind": "Mast", "plural": "masts"},
		"versions": [{"name": "v1", "served": true, "storage": true, "schema": {
			"openAPIV3Schema": {"type": "object", "properties": {"spec": {
				"type": "object", "properties": {"height": {"type": "integer"}}
			}}}
		}}]
	}
}`

// definitions make a kind of one's own, which an informer follows.
func (c *clients) definitions() {
	kinds := c.dynamic.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	const name = "masts.go.lockstep.dev"
	check("65 a definition is established", func() error {
		wanted := &unstructured.Unstructured{}
		if err := wanted.UnmarshalJSON([]byte(definition)); err != nil {
			return err
		}
		if _, err := kinds.Create(background, wanted, nothing); err != nil {
			return err
		}
		return until(func() error {
			got, err := kinds.Get(background, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			conditions, _, err := unstructured.NestedSlice(got.Object, "status", "conditions")
			if err != nil {
				return err
			}
			return has(fmt.Sprint(conditions), "status:True type:Established")
		})
	})
	resource := schema.GroupVersionResource{
		Group: "go.lockstep.dev", Version: "v1", Resource: "masts",
	}
	masts := c.dynamic.Resource(resource).Namespace(namespace)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	heard := &seen{}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(
		c.dynamic, 0, namespace, nil)
	informer := factory.ForResource(resource)
	check("65 an informer of its kind: in step", func() error {
		if _, err := informer.Informer().AddEventHandler(heard.handler()); err != nil {
			return err
		}
		factory.Start(ctx.Done())
		ready, stop := within(30)
		defer stop()
		if !cache.WaitForCacheSync(ready.Done(), informer.Informer().HasSynced) {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	check("65 an informer of its kind: what comes, changes and goes", func() error {
		mast := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "go.lockstep.dev/v1", "kind": "Mast",
			"metadata": map[string]any{"name": "main"},
			"spec":     map[string]any{"height": int64(20)},
		}}
		made, err := masts.Create(background, mast, nothing)
		if err != nil {
			return err
		}
		if err := heard.has("add main"); err != nil {
			return err
		}
		if err := unstructured.SetNestedField(made.Object, int64(25), "spec", "height"); err != nil {
			return err
		}
		if _, err := masts.Update(background, made, metav1.UpdateOptions{}); err != nil {
			return err
		}
		if err := heard.has("update main"); err != nil {
			return err
		}
		found, err := informer.Lister().ByNamespace(namespace).Get("main")
		if err != nil {
			return err
		}
		if err := has(fmt.Sprint(found), "height:25"); err != nil {
			return err
		}
		if err := masts.Delete(background, "main", metav1.DeleteOptions{}); err != nil {
			return err
		}
		return heard.has("delete main")
	})
	check("65 its end", func() error {
		if err := kinds.Delete(background, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		return until(func() error {
			_, err := masts.List(background, metav1.ListOptions{})
			return refused(err, 404, "could not find the requested resource")
		})
	})
}

// inside is what this very program does in a pod: it finds the API and its account by itself.
func inside() error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	version, err := c.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	_, err = c.CoreV1().Pods(namespace).List(background, metav1.ListOptions{})
	if err := refused(err, 403, "cannot list resource \"pods\""); err != nil {
		return err
	}
	fmt.Println("inside", version.Major)
	return nil
}

// pods run this program, which talks to the cluster from there.
func (c *clients) fromInside() {
	check("62 this program in a pod", func() error {
		program, err := os.Executable()
		if err != nil {
			return err
		}
		wanted := pod("go-inside", "")
		wanted.Spec.Containers[0].Command = []string{program, "inside"}
		if err := c.started(wanted, corev1.PodSucceeded); err != nil {
			said, _ := c.typed.CoreV1().Pods(namespace).
				GetLogs("go-inside", &corev1.PodLogOptions{}).DoRaw(background)
			return fmt.Errorf("%w; it said %q", err, said)
		}
		said, err := c.typed.CoreV1().Pods(namespace).
			GetLogs("go-inside", &corev1.PodLogOptions{}).DoRaw(background)
		if err != nil {
			return err
		}
		return same(string(said), "inside 1\n")
	})
}
