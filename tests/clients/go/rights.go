package main

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const account = "system:serviceaccount:default:go-bot"

// rights are those of a service account that comes with a token.
func (c *clients) rights() {
	accounts := c.typed.CoreV1().ServiceAccounts(namespace)
	var bot kubernetes.Interface
	check("62 a token", func() error {
		named := metav1.ObjectMeta{Name: "go-bot"}
		if _, err := accounts.Create(
			background, &corev1.ServiceAccount{ObjectMeta: named}, nothing); err != nil {
			return err
		}
		made, err := accounts.CreateToken(
			background, "go-bot", &authenticationv1.TokenRequest{}, nothing)
		if err != nil {
			return err
		}
		config := rest.AnonymousClientConfig(c.config)
		config.BearerToken = made.Status.Token
		bot, err = kubernetes.NewForConfig(config)
		return err
	})
	if bot == nil {
		return
	}
	check("62 who am I", func() error {
		got, err := bot.AuthenticationV1().SelfSubjectReviews().
			Create(background, &authenticationv1.SelfSubjectReview{}, nothing)
		if err != nil {
			return err
		}
		return same(got.Status.UserInfo.Username, account)
	})
	may := func() (bool, error) {
		question := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: "list", Resource: "pods", Namespace: namespace,
				},
			},
		}
		got, err := bot.AuthorizationV1().SelfSubjectAccessReviews().
			Create(background, question, nothing)
		if err != nil {
			return false, err
		}
		return got.Status.Allowed, nil
	}
	check("62 may I", func() error {
		allowed, err := may()
		if err != nil {
			return err
		}
		return same(allowed, false)
	})
	check("62 no", func() error {
		_, err := bot.CoreV1().Pods(namespace).List(background, metav1.ListOptions{})
		return refused(err, 403, `User "`+account+`" cannot list resource "pods"`)
	})
	check("62 with a role I may", func() error {
		named := metav1.ObjectMeta{Name: "go-bot"}
		rbac := c.typed.RbacV1()
		role := &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		}}
		if _, err := rbac.Roles(namespace).Create(background, role, nothing); err != nil {
			return err
		}
		binding := &rbacv1.RoleBinding{
			ObjectMeta: named,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "go-bot"},
			Subjects: []rbacv1.Subject{
				{Kind: rbacv1.ServiceAccountKind, Name: "go-bot", Namespace: namespace},
			},
		}
		if _, err := rbac.RoleBindings(namespace).Create(background, binding, nothing); err != nil {
			return err
		}
		return until(func() error {
			_, err := bot.CoreV1().Pods(namespace).List(background, metav1.ListOptions{})
			return err
		})
	})
}

// jobSets are no built-in kind: the dynamic client.
func (c *clients) jobSets() {
	resource := schema.GroupVersionResource{
		Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets",
	}
	sets := c.dynamic.Resource(resource).Namespace(namespace)
	pod := map[string]any{
		"restartPolicy": "Never",
		"containers": []any{map[string]any{
			"name": "main", "image": "busybox", "command": []any{"true"},
		}},
	}
	template := map[string]any{
		"spec": map[string]any{"template": map[string]any{"spec": pod}},
	}
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "jobset.x-k8s.io/v1alpha2",
		"kind":       "JobSet",
		"metadata":   map[string]any{"name": "go-set"},
		"spec": map[string]any{"replicatedJobs": []any{
			map[string]any{"name": "w", "replicas": int64(1), "template": template},
		}},
	}}
	check("28 a JobSet", func() error {
		_, err := sets.Create(background, set, nothing)
		return err
	})
	check("28 a merge patch", func() error {
		body := []byte(`{"metadata":{"labels":{"x":"y"}}}`)
		got, err := sets.Patch(
			background, "go-set", types.MergePatchType, body, metav1.PatchOptions{})
		if err != nil {
			return err
		}
		return same(got.GetLabels()["x"], "y")
	})
	check("28 no strategic one", func() error {
		_, err := sets.Patch(background, "go-set", types.StrategicMergePatchType,
			[]byte(`{}`), metav1.PatchOptions{})
		return refused(err, 415, "the body of the request was in an unknown format")
	})
	check("28 apply", func() error {
		wanted := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "jobset.x-k8s.io/v1alpha2",
			"kind":       "JobSet",
			"metadata": map[string]any{
				"name": "go-set", "annotations": map[string]any{"a": "b"},
			},
		}}
		got, err := sets.Apply(background, "go-set", wanted, metav1.ApplyOptions{FieldManager: "one"})
		if err != nil {
			return err
		}
		return same(got.GetAnnotations()["a"], "b")
	})
	check("28 it completes", func() error {
		return until(func() error {
			got, err := sets.Get(background, "go-set", metav1.GetOptions{})
			if err != nil {
				return err
			}
			state, _, err := unstructured.NestedString(got.Object, "status", "terminalState")
			if err != nil {
				return err
			}
			return same(state, "Completed")
		})
	})
}

// deletions: evictions, owners, preconditions.
func (c *clients) deletions() {
	pods, jobs := c.typed.CoreV1().Pods(namespace), c.typed.BatchV1().Jobs(namespace)
	gone := func(name string) error {
		return until(func() error {
			_, err := pods.Get(background, name, metav1.GetOptions{})
			return refused(err, 404, "not found")
		})
	}
	check("65 evict", func() error {
		grace := int64(0)
		eviction := &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: "go-server", Namespace: namespace},
			DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &grace},
		}
		if err := pods.EvictV1(background, eviction); err != nil {
			return err
		}
		return gone("go-server")
	})
	check("51 another of that name", func() error {
		other := types.UID("other")
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}}
		return refused(pods.Delete(background, "go1", options), 409, "the UID in the precondition")
	})
	check("51 a pod with its grace", func() error {
		grace := int64(1)
		options := metav1.DeleteOptions{GracePeriodSeconds: &grace}
		for _, name := range []string{"go1", "go-shell"} {
			if err := pods.Delete(background, name, options); err != nil {
				return err
			}
			if err := gone(name); err != nil {
				return err
			}
		}
		return nil
	})
	check("53 in the foreground", func() error {
		policy := metav1.DeletePropagationForeground
		options := metav1.DeleteOptions{PropagationPolicy: &policy}
		if err := jobs.Delete(background, "go-job", options); err != nil {
			return err
		}
		return until(func() error {
			list, err := pods.List(background, metav1.ListOptions{LabelSelector: "job-name=go-job"})
			if err != nil {
				return err
			}
			return same(len(list.Items), 0)
		})
	})
	check("54 a namespace", func() error {
		spaces := c.typed.CoreV1().Namespaces()
		named := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "go-space"}}
		if _, err := spaces.Create(background, named, nothing); err != nil {
			return err
		}
		if err := spaces.Delete(background, "go-space", metav1.DeleteOptions{}); err != nil {
			return err
		}
		return until(func() error {
			_, err := spaces.Get(background, "go-space", metav1.GetOptions{})
			return refused(err, 404, `namespaces "go-space" not found`)
		})
	})
}
