package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	watchtools "k8s.io/client-go/tools/watch"
)

// seen collects what an informer was told.
type seen struct {
	lock   sync.Mutex
	events []string
}

func (s *seen) add(kind string, object any) {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	named, _ := object.(metav1.Object)
	s.lock.Lock()
	defer s.lock.Unlock()
	s.events = append(s.events, kind+" "+named.GetName())
}

func (s *seen) has(event string) error {
	return until(func() error {
		s.lock.Lock()
		defer s.lock.Unlock()
		return has(fmt.Sprint(s.events), event)
	})
}

func (s *seen) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { s.add("add", object) },
		UpdateFunc: func(_, object any) { s.add("update", object) },
		DeleteFunc: func(object any) { s.add("delete", object) },
	}
}

// informers follow ConfigMaps, typed and dynamic. How they begin is client-go's to choose, by
// KUBE_FEATURE_WatchListClient: with a stream or with a list.
func (c *clients) informers() {
	before := streamed.Load()
	c.informed("go-informed")
	wanted := os.Getenv("KUBE_FEATURE_WatchListClient") != "false"
	check(fmt.Sprintf("65 informers began with a stream: %v", wanted), func() error {
		return same(streamed.Load() > before, wanted)
	})
	check("65 a watch until something is so", func() error {
		ctx, cancel := within(30)
		defer cancel()
		one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "go-until"}}
		maps := c.typed.CoreV1().ConfigMaps(namespace)
		made, err := maps.Create(ctx, one, nothing)
		if err != nil {
			return err
		}
		watcher := &cache.ListWatch{
			WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) {
				options.FieldSelector = "metadata.name=go-until"
				return maps.Watch(ctx, options)
			},
		}
		if err := maps.Delete(ctx, "go-until", metav1.DeleteOptions{}); err != nil {
			return err
		}
		isGone := func(event watch.Event) (bool, error) { return event.Type == watch.Deleted, nil }
		_, err = watchtools.Until(ctx, made.ResourceVersion, watcher, isGone)
		return err
	})
}

func (c *clients) informed(name string) {
	title := "65 informers"
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	typed, any := &seen{}, &seen{}
	factory := informers.NewSharedInformerFactoryWithOptions(
		c.typed, 0, informers.WithNamespace(namespace))
	maps := factory.Core().V1().ConfigMaps()
	factory.Batch().V1().Jobs().Informer()
	factory.Core().V1().Pods().Informer()
	if _, err := maps.Informer().AddEventHandler(typed.handler()); err != nil {
		check(title, func() error { return err })
		return
	}
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	dynamics := dynamicinformer.NewFilteredDynamicSharedInformerFactory(
		c.dynamic, 0, namespace, nil)
	if _, err := dynamics.ForResource(resource).Informer().AddEventHandler(any.handler()); err != nil {
		check(title, func() error { return err })
		return
	}
	factory.Start(ctx.Done())
	dynamics.Start(ctx.Done())
	check(title+": in step", func() error {
		ctx, cancel := within(30)
		defer cancel()
		for kind, ready := range factory.WaitForCacheSync(ctx.Done()) {
			if !ready {
				return fmt.Errorf("%v is not", kind)
			}
		}
		for kind, ready := range dynamics.WaitForCacheSync(ctx.Done()) {
			if !ready {
				return fmt.Errorf("%v is not", kind)
			}
		}
		_, err := maps.Lister().ConfigMaps(namespace).List(labels.Everything())
		return err
	})
	check(title+": what comes, changes and goes", func() error {
		api := c.typed.CoreV1().ConfigMaps(namespace)
		one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		made, err := api.Create(ctx, one, nothing)
		if err != nil {
			return err
		}
		for _, heard := range []*seen{typed, any} {
			if err := heard.has("add " + name); err != nil {
				return err
			}
		}
		made.Data = map[string]string{"a": "b"}
		if _, err := api.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
			return err
		}
		for _, heard := range []*seen{typed, any} {
			if err := heard.has("update " + name); err != nil {
				return err
			}
		}
		if err := api.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		for _, heard := range []*seen{typed, any} {
			if err := heard.has("delete " + name); err != nil {
				return err
			}
		}
		return nil
	})
}

// leaders are elected with a Lease.
func (c *clients) leaders() {
	var leading atomic.Value
	leading.Store("")
	candidate := func(name string) context.CancelFunc {
		ctx, stop := context.WithCancel(background)
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "go-leader", Namespace: namespace},
			Client:     c.typed.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		go leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true, Name: "go-leader",
			LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second,
			RetryPeriod: 200 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leading.Store(name) },
				OnStoppedLeading: func() {},
			},
		})
		return stop
	}
	leads := func(name string) error {
		return until(func() error { return same(leading.Load().(string), name) })
	}
	stop := candidate("one")
	check("65 somebody leads", func() error { return leads("one") })
	other := candidate("two")
	check("65 one at a time", func() error {
		time.Sleep(time.Second)
		return same(leading.Load().(string), "one")
	})
	stop()
	// At once, or when the term is over: an update that was under way may get in between.
	check("65 who gives up is followed", func() error { return leads("two") })
	other()
}
